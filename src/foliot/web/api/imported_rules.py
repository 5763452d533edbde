"""Notification rules of imported jobs, made through the routes of channels and rules as the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from fastapi.exceptions import RequestValidationError

from foliot.domain.errors import FoliotError, NotFound, Unavailable
from foliot.importers.records import RuleDraft, clean_name
from foliot.web.errors import field_problems
from foliot.wire.shape import LONGEST_PAGE

LONGEST_NAME = 100


class CallRoute(Protocol):
    async def __call__(
        self, method: str, path: str, body: Any = None, if_match: str | None = None
    ) -> Any: ...


@dataclass(frozen=True, slots=True)
class RuleWriter:
    """`is_plan`: check that the channels are there, and write nothing."""

    call: CallRoute
    is_plan: bool

    async def add(self, job_name: str, job_id: str | None, drafts: Sequence[RuleDraft]) -> list[str]:
        """Return a sentence for each rule that was made, or why it was not."""
        said = []
        for draft in drafts:
            try:
                said.append(await self._add_one(job_name, job_id, draft))
            except Unavailable:
                raise
            except (FoliotError, RequestValidationError) as error:
                said.append(f"Its {draft.title} is not taken over: {' '.join(reasons_of(error))}")
        return said

    async def _add_one(self, job_name: str, job_id: str | None, draft: RuleDraft) -> str:
        channel = await self._channel(draft)
        if job_id is not None and not self.is_plan:
            body = {
                "name": _rule_name(job_name, job_id, draft.title), "events": list(draft.events), "channels": [channel["id"]],
                "scope": {"jobs": [job_id]}, "after_n": draft.after_n, "cooldown": draft.cooldown,
            }  # fmt: skip
            known = {each["name"]: each for each in await self._all("/notification-rules")}.get(body["name"])
            if known is None:
                await self.call("POST", "/notification-rules", body)
            else:
                await self.call(
                    "PUT", f"/notification-rules/{known['id']}", body | {"enabled": known["enabled"]}
                )
        return f"Its {draft.title} is a notification rule to the channel {channel['name']}."

    async def _channel(self, draft: RuleDraft) -> dict[str, Any]:
        known = await self._all("/channels")
        for each in known:
            if draft.url is None and draft.channel in (each["id"], each["name"]):
                return each
            if (
                draft.url is not None
                and each["config"].get("url") == draft.url
                and each["config"]["kind"] == "webhook"
            ):
                return each
        if draft.url is None:
            raise NotFound(f"There is no channel {draft.channel}.")
        host = urlsplit(draft.url).hostname or "webhook"
        taken = {each["name"] for each in known}
        name = next(
            name
            for name in (_cut(host, f" {n}" if n > 1 else "") for n in range(1, len(known) + 2))
            if name not in taken
        )
        made: dict[str, Any] = await self.call(
            "POST", "/channels", {"name": name, "config": {"kind": "webhook", "url": draft.url}}
        )
        return made

    async def _all(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            answer = await self.call("GET", f"{path}?limit={LONGEST_PAGE}{cursor}")
            found += answer["items"]
            if answer["next_cursor"] is None:
                return found
            cursor = f"&cursor={quote(answer['next_cursor'])}"


def reasons_of(error: FoliotError | RequestValidationError) -> list[str]:
    if isinstance(error, RequestValidationError):
        return [f"{each['pointer']}: {each['message']}" for each in field_problems(error.errors())]
    return [part.message for part in error.parts or (error,)]


def _rule_name(job_name: str, job_id: str, title: str) -> str:
    """Return one name for one rule of one job: a second import finds it."""
    return _cut(clean_name(job_name), f": {title} ({job_id[-12:]})")


def _cut(text: str, end: str) -> str:
    return text[: LONGEST_NAME - len(end)] + end
