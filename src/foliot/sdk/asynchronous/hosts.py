"""`client.hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.request import Ask, Ref, given, post
from foliot.wire.fleet import HostOut, InstanceOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncHosts:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[HostOut]:
        """One page, in the order of their names."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.ask(Page[HostOut], Ask("GET", "/hosts", query=query))

    def each(self) -> AsyncIterator[HostOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, host_id: Ref) -> HostOut:
        return await self._http.ask(HostOut, Ask("GET", "/hosts/{host_id}", {"host_id": host_id}))

    async def change(self, host_id: Ref, **fields: Any) -> HostOut:
        """Labels, max_mutations, max_reads: those that are named."""
        ask = Ask("PATCH", "/hosts/{host_id}", {"host_id": host_id}, body=fields)
        return await self._http.ask(HostOut, ask)

    async def delete(self, host_id: Ref, *, force: bool = False) -> None:
        """Refused while it is online, and while jobs must run there, unless `force` leaves them to wait."""
        await self._http.tell(Ask("DELETE", "/hosts/{host_id}", {"host_id": host_id}, {"force": force}))

    async def add_instance(
        self, host_id: Ref, name: str, *, labels: Mapping[str, str] | None = None
    ) -> InstanceOut:
        body = {"name": name} | given(labels=labels)
        ask = post("/hosts/{host_id}/instances", {"host_id": host_id}, body=body)
        return await self._http.ask(InstanceOut, ask)

    async def change_instance(
        self,
        host_id: Ref,
        instance_id: Ref,
        *,
        to: Ref | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> InstanceOut:
        """Other labels, or to another host: the runs that wait for it go along."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        body = given(host_id=to, labels=labels)
        ask = Ask("PATCH", "/hosts/{host_id}/instances/{instance_id}", ids, body=body)
        return await self._http.ask(InstanceOut, ask)

    async def remove_instance(self, host_id: Ref, instance_id: Ref, *, force: bool = False) -> None:
        """Refused while jobs are bound to it, unless `force` leaves them to wait."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        await self._http.tell(
            Ask("DELETE", "/hosts/{host_id}/instances/{instance_id}", ids, {"force": force})
        )
