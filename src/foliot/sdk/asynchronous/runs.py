"""`client.runs`: the records of what ran and what did not."""

from __future__ import annotations

from foliot.sdk.asking import Ask, Ref
from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.wire.runs import RunOut


class AsyncRuns:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def get(self, run_id: Ref) -> RunOut:
        return await self._http.ask(RunOut, Ask("GET", "/runs/{run_id}", {"run_id": run_id}))
