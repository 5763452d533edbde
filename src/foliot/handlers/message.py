"""`message`: post a message into a room, for a person or an agent to read. `{"text", "kind" (message), "room", "new_room"}`.

A run posts once: a later attempt finds the message of the first.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from foliot.domain.errors import NotFound, QuotaExceeded
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.domain.rooms import LONGEST_TEXT, MessageKind
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.placeholders import (
    FilledTextTooLarge,
    check_growth,
    check_names,
    fill_text,
    placeholder_values,
)
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.services import Database
from foliot.services.hints import Announce, Hint
from foliot.services.messaging import messages
from foliot.services.messaging.messages import RunMessage
from foliot.wire.instants import read_id
from foliot.wire.rooms import KEY
from foliot.wire.shape import VISIBLE, Shape, refusal


def _room(value: str) -> str:
    if read_id(value) is None and not KEY.fullmatch(value):
        raise refusal("room", "This names no room.", "Use its id, or its key.")
    return value


class MessageConfig(Shape):
    text: Annotated[
        str,
        StringConstraints(min_length=1, max_length=LONGEST_TEXT, pattern=VISIBLE),
        AfterValidator(check_names),
    ] = Field(description="`{{run.id}}` and the like are filled in.", examples=["Write the weekly report."])
    kind: Literal["message", "system_event"] = Field(
        default="message", description="A message asks for a reply; a system_event says what happened."
    )
    room: Annotated[str, StringConstraints(max_length=100), AfterValidator(_room)] | None = Field(
        default=None, description="Its id or key. Without it the job gets a room of its own."
    )
    new_room: bool = Field(default=False, description="A new room for each run.")

    @model_validator(mode="after")
    def _one_room(self) -> Self:
        if self.new_room and self.room is not None:
            raise refusal("room", "A run has a new room, or the one that is named.", "Leave one of them out.")
        return self


class MessageHandler:
    description: ClassVar = "Post a message or a system event into a room."
    config_shape: ClassVar = MessageConfig

    def __init__(
        self, database: Database, quotas: Quotas = UNLIMITED, announce: Announce | None = None
    ) -> None:
        self._database = database
        self._quotas = quotas
        self._announce = announce or (lambda hint: None)

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> MessageHandler | None:
        return None if deps.database is None else cls(deps.database, deps.quotas, deps.announce)

    async def run(self, assignment: Assignment) -> HandlerResult:
        config, ctx = assignment.config, assignment.ctx
        values = placeholder_values(assignment)
        try:
            check_growth(config["text"], values)
        except FilledTextTooLarge as error:
            return failed("text_invalid", str(error), permanent=True)
        text = fill_text(str(config["text"]), values)
        if not 0 < len(text) <= LONGEST_TEXT:
            return failed("text_invalid", f"The text has {len(text):,} characters.", permanent=True)
        letter = RunMessage(
            RunId(UUID(ctx.run_id)),
            JobId(UUID(ctx.job_id)),
            ctx.job,
            MessageKind(config.get("kind", "message")),
            text,
            config.get("room"),
            bool(config.get("new_room")),
        )
        try:
            workspace_id = WorkspaceId(UUID(ctx.workspace_id))
            left = await messages.deliver(self._database, workspace_id, letter, self._quotas)
        except NotFound as error:
            return failed("room_unknown", f"{error.message} {error.hint}", permanent=True)
        except QuotaExceeded as error:
            return failed(error.code, f"{error.message} {error.hint}")
        if left.is_sent_on:
            self._announce(Hint.OUTBOX)
        sent = left.message
        return succeeded({"message_id": str(sent.id), "room_id": str(sent.room_id), "seq": sent.seq})

    async def close(self) -> None:
        pass
