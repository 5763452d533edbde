# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.synchronous.http import Transport, each_of
from foliot.wire.fleet import HostOut, InstanceOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class HostsApi:
    def __init__(self, http: Transport) -> None:
        self._http = http

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[HostOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.read(Page[HostOut], ApiRequest("GET", "/hosts", query=query))

    def each(self) -> Iterator[HostOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, host_id: Ref) -> HostOut:
        return self._http.read(HostOut, ApiRequest("GET", "/hosts/{host_id}", {"host_id": host_id}))

    def change(self, host_id: Ref, **fields: Any) -> HostOut:
        """Change labels, max_mutations or max_reads."""
        request = ApiRequest("PATCH", "/hosts/{host_id}", {"host_id": host_id}, body=fields)
        return self._http.read(HostOut, request)

    def delete(self, host_id: Ref, *, force: bool = False) -> None:
        """Delete a host. Refused while it is online or jobs are bound to it, unless `force`; their runs then wait."""
        self._http.call(ApiRequest("DELETE", "/hosts/{host_id}", {"host_id": host_id}, {"force": force}))

    def add_instance(
        self, host_id: Ref, name: str, *, labels: Mapping[str, str] | None = None
    ) -> InstanceOut:
        body = {"name": name} | without_none(labels=labels)
        request = post("/hosts/{host_id}/instances", {"host_id": host_id}, body=body)
        return self._http.read(InstanceOut, request)

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
        return self._http.read(InstanceOut, request)

    def remove_instance(self, host_id: Ref, instance_id: Ref, *, force: bool = False) -> None:
        """Remove an instance. Refused while jobs are bound to it, unless `force`; their runs then wait."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        self._http.call(
            ApiRequest("DELETE", "/hosts/{host_id}/instances/{instance_id}", ids, {"force": force})
        )
