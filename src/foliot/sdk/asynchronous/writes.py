"""The write verbs of a group. Each is written once and works for real or, by one argument, as a dry run."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.request import Ask
from foliot.sdk.response import Reader

Changed = TypeVar("Changed")
Gone = TypeVar("Gone")
Result = TypeVar("Result")


class AsyncWrites(Generic[Changed, Gone]):
    """Answers are `Changed`, or `Gone` where a verb removes something.

    With `dry_run` the server applies each verb, answers with what it would change, and rolls it back.
    """

    def __init__(
        self, http: AsyncHttp, changed: Reader[Changed], gone: Reader[Gone], *, dry_run: bool = False
    ) -> None:
        self._http, self._changed, self._gone, self._dry_run = http, changed, gone, dry_run

    async def _write(self, read: Reader[Result], ask: Ask) -> Result:
        if self._dry_run:
            ask = replace(ask, query={**ask.query, "dry_run": True})
        return read(await self._http.send(ask))
