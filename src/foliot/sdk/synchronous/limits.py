# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.limits`: how many runs may be under way at once."""

from __future__ import annotations

from foliot.sdk.request import Ask, given
from foliot.sdk.response import check, reader
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.writes import Changed, Gone, Writes
from foliot.wire.fleet import LimitOut, LimitsOut


class LimitWrites(Writes[Changed, Gone]):
    """`key` is a concurrency key of jobs. Without it the limit is for the whole workspace, and an administrator sets it."""

    def set(self, cap: int, *, key: str | None = None) -> Changed:
        """At most `cap` at once. Runs that are under way continue."""
        return self._write(self._changed, Ask("PUT", "/limits", body=given(key=key, cap=cap)))

    def remove(self, *, key: str | None = None) -> Gone:
        """Runs that waited for the limit start."""
        return self._write(self._gone, Ask("DELETE", "/limits", query={"key": key}))


class Limits(LimitWrites[LimitOut, None]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(LimitOut), check)
        self.dry_run = LimitWrites(http, reader(LimitOut), reader(LimitOut), dry_run=True)

    def list(self) -> LimitsOut:
        return self._http.ask(LimitsOut, Ask("GET", "/limits"))
