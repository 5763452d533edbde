# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.response import raise_for_error, reader
from foliot.sdk.synchronous.http import Changed, Gone, Transport, Writes, each_of
from foliot.wire.fleet import HostOut, InstanceOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class HostWrites(Writes[Changed, Gone]):
    def change(self, host_id: Ref, **fields: Any) -> Changed:
        """Change labels, max_mutations or max_reads."""
        return self._change(ApiRequest("PATCH", "/hosts/{host_id}", {"host_id": host_id}, body=fields))

    def delete(self, host_id: Ref, *, force: bool = False) -> Gone:
        """Delete a host. Refused while it is online or jobs are bound to it, unless `force`; their runs then wait."""
        return self._remove(ApiRequest("DELETE", "/hosts/{host_id}", {"host_id": host_id}, {"force": force}))

    def add_instance(
        self, host_id: Ref, name: str, *, labels: Mapping[str, str] | None = None
    ) -> InstanceOut:
        body = {"name": name} | without_none(labels=labels)
        request = post("/hosts/{host_id}/instances", {"host_id": host_id}, body=body)
        return self._write(reader(InstanceOut), request)

    def change_instance(
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
        return self._write(reader(InstanceOut), request)

    def remove_instance(self, host_id: Ref, instance_id: Ref, *, force: bool = False) -> Gone:
        """Remove an instance. Refused while jobs are bound to it, unless `force`; their runs then wait."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        return self._remove(
            ApiRequest("DELETE", "/hosts/{host_id}/instances/{instance_id}", ids, {"force": force}),
        )


class HostsApi(HostWrites[HostOut, None]):
    def __init__(self, http: Transport) -> None:
        super().__init__(http, reader(HostOut), raise_for_error)
        self.dry_run = HostWrites(http, reader(HostOut), reader(HostOut), dry_run=True)

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[HostOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.get(Page[HostOut], "/hosts", query=query)

    def each(self) -> Iterator[HostOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, host_id: Ref) -> HostOut:
        return self._http.get(HostOut, "/hosts/{host_id}", {"host_id": host_id})
