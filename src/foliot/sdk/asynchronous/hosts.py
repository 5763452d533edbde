"""`client.hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone, each_of
from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.response import raise_for_error, reader
from foliot.wire.fleet import HostOut, InstanceOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncHostWrites(AsyncWrites[Changed, Gone]):
    async def change(self, host_id: Ref, **fields: Any) -> Changed:
        """Change labels, max_mutations or max_reads."""
        return await self._change(ApiRequest("PATCH", "/hosts/{host_id}", {"host_id": host_id}, body=fields))

    async def delete(self, host_id: Ref, *, force: bool = False) -> Gone:
        """Delete a host. Refused while it is online or jobs are bound to it, unless `force`; their runs then wait."""
        return await self._remove(
            ApiRequest("DELETE", "/hosts/{host_id}", {"host_id": host_id}, {"force": force})
        )

    async def add_instance(
        self, host_id: Ref, name: str, *, labels: Mapping[str, str] | None = None
    ) -> InstanceOut:
        body = {"name": name} | without_none(labels=labels)
        request = post("/hosts/{host_id}/instances", {"host_id": host_id}, body=body)
        return await self._write(reader(InstanceOut), request)

    async def change_instance(
        self,
        host_id: Ref,
        instance_id: Ref,
        *,
        to: Ref | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> InstanceOut:
        """Change its labels, or move it to another host with the runs that wait for it."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        body = without_none(host_id=to, labels=labels)
        request = ApiRequest("PATCH", "/hosts/{host_id}/instances/{instance_id}", ids, body=body)
        return await self._write(reader(InstanceOut), request)

    async def remove_instance(self, host_id: Ref, instance_id: Ref, *, force: bool = False) -> Gone:
        """Remove an instance. Refused while jobs are bound to it, unless `force`; their runs then wait."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        return await self._remove(
            ApiRequest("DELETE", "/hosts/{host_id}/instances/{instance_id}", ids, {"force": force}),
        )


class AsyncHostsApi(AsyncHostWrites[HostOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(HostOut), raise_for_error)
        self.dry_run = AsyncHostWrites(http, reader(HostOut), reader(HostOut), dry_run=True)

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[HostOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(Page[HostOut], "/hosts", query=query)

    def each(self) -> AsyncIterator[HostOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, host_id: Ref) -> HostOut:
        return await self._http.get(HostOut, "/hosts/{host_id}", {"host_id": host_id})
