# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.limits`: how many runs are under way at once."""

from __future__ import annotations

from foliot.sdk.request import Ask, given
from foliot.sdk.synchronous.http import Http
from foliot.wire.limits import LimitOut, LimitsOut


class Limits:
    """`key` is a concurrency key of jobs; without it the limit is of the whole workspace, which administrators set."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self) -> LimitsOut:
        return self._http.ask(LimitsOut, Ask("GET", "/limits"))

    def set(self, cap: int, *, key: str | None = None, dry_run: bool = False) -> LimitOut:
        """At most `cap` at once. What runs now runs on."""
        ask = Ask("PUT", "/limits", query={"dry_run": dry_run}, body=given(key=key, cap=cap))
        return self._http.ask(LimitOut, ask)

    def remove(self, *, key: str | None = None) -> None:
        """What waited for it goes on."""
        self._http.tell(Ask("DELETE", "/limits", query={"key": key}))

    def would_remove(self, *, key: str | None = None) -> LimitOut:
        """The limit that `remove` would take away."""
        query = {"key": key, "dry_run": True}
        return self._http.ask(LimitOut, Ask("DELETE", "/limits", query=query))
