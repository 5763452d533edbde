"""What the configuration of `message` looks like."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from foliot.domain.rooms import LONGEST_TEXT
from foliot.handlers.placeholders import checked
from foliot.wire.instants import read_id
from foliot.wire.rooms import KEY
from foliot.wire.shape import Shape, refusal


def _room(value: str) -> str:
    if read_id(value) is None and not KEY.fullmatch(value):
        raise refusal("room", "This names no room.", "Use its id, or its key.")
    return value


class MessageConfig(Shape):
    text: Annotated[
        str, StringConstraints(min_length=1, max_length=LONGEST_TEXT, pattern=r"\S"), AfterValidator(checked)
    ] = Field(description="`{{run.id}}` and the like are filled in.", examples=["Write the weekly report."])
    kind: Literal["message", "system_event"] = Field(
        default="message", description="A message asks for a reply; a system_event is word of what happened."
    )
    room: Annotated[str, StringConstraints(max_length=100), AfterValidator(_room)] | None = Field(
        default=None, description="Its id or key. Without it the job gets a room of its own."
    )
    new_room: bool = Field(default=False, description="A new room for each run.")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.new_room and self.room is not None:
            raise refusal("room", "A run has a new room, or the one that is named.", "Leave one of them out.")
        return self
