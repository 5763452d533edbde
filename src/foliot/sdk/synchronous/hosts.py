# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.hosts`: machines that fetch their own work, and the server instances on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.wire.fleet import HostOut, InstanceOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class Hosts:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[HostOut]:
        """One page, in the order of their names."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.ask(Page[HostOut], Ask("GET", "/hosts", query=query))

    def each(self) -> Iterator[HostOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, host_id: Ref) -> HostOut:
        return self._http.ask(HostOut, Ask("GET", "/hosts/{host_id}", {"host_id": host_id}))

    def change(self, host_id: Ref, **fields: Any) -> HostOut:
        """Labels, max_mutations, max_reads: those that are named."""
        ask = Ask("PATCH", "/hosts/{host_id}", {"host_id": host_id}, body=fields)
        return self._http.ask(HostOut, ask)

    def delete(self, host_id: Ref, *, force: bool = False) -> None:
        """Refused while it is online, and while jobs must run there, unless `force` leaves them to wait."""
        self._http.tell(Ask("DELETE", "/hosts/{host_id}", {"host_id": host_id}, {"force": force}))

    def add_instance(
        self, host_id: Ref, name: str, *, labels: Mapping[str, str] | None = None
    ) -> InstanceOut:
        body = {"name": name} | given(labels=labels)
        ask = post("/hosts/{host_id}/instances", {"host_id": host_id}, body=body)
        return self._http.ask(InstanceOut, ask)

    def change_instance(
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
        return self._http.ask(InstanceOut, ask)

    def remove_instance(self, host_id: Ref, instance_id: Ref, *, force: bool = False) -> None:
        """Refused while jobs are bound to it, unless `force` leaves them to wait."""
        ids = {"host_id": host_id, "instance_id": instance_id}
        self._http.tell(Ask("DELETE", "/hosts/{host_id}/instances/{instance_id}", ids, {"force": force}))
