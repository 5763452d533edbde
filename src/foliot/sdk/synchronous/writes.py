# Made from sdk/asynchronous by ./dev format; edit it there.
"""The write verbs of a group. Each is written once and works for real or, by one argument, as a dry run."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from foliot.sdk.request import Ask
from foliot.sdk.response import Reader
from foliot.sdk.synchronous.http import Http

Changed = TypeVar("Changed")
Gone = TypeVar("Gone")
Result = TypeVar("Result")


class Writes(Generic[Changed, Gone]):
    """Answers are `Changed`, or `Gone` where a verb removes something.

    With `dry_run` the server applies each verb, answers with what it would change, and rolls it back.
    """

    def __init__(
        self, http: Http, changed: Reader[Changed], gone: Reader[Gone], *, dry_run: bool = False
    ) -> None:
        self._http, self._changed, self._gone, self._dry_run = http, changed, gone, dry_run

    def _write(self, read: Reader[Result], ask: Ask) -> Result:
        if self._dry_run:
            ask = replace(ask, query={**ask.query, "dry_run": True})
        return read(self._http.send(ask))
