# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.runs`: the records of what ran and what did not."""

from __future__ import annotations

from foliot.sdk.asking import Ask, Ref
from foliot.sdk.synchronous.http import Http
from foliot.wire.runs import RunOut


class Runs:
    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, run_id: Ref) -> RunOut:
        return self._http.ask(RunOut, Ask("GET", "/runs/{run_id}", {"run_id": run_id}))
