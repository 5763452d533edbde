# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.shared_dry_runs import CalendarDryRuns
from foliot.wire.calendars import CalendarIn, CalendarOut, CalendarUser
from foliot.wire.pages import LONGEST_PAGE, PAGE, Page


class Calendars:
    def __init__(self, http: Http) -> None:
        self._http = http
        self.dry_run = CalendarDryRuns(http)

    def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[CalendarOut]:
        """One page, in the order of their names."""
        query = {"limit": limit, "cursor": cursor}
        return self._http.ask(Page[CalendarOut], Ask("GET", "/calendars", query=query))

    def each(self) -> Iterator[CalendarOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, calendar_id: Ref) -> CalendarOut:
        ask = Ask("GET", "/calendars/{calendar_id}", {"calendar_id": calendar_id})
        return self._http.ask(CalendarOut, ask)

    def create(self, calendar: CalendarIn | Mapping[str, Any]) -> CalendarOut:
        return self._http.ask(CalendarOut, post("/calendars", body=calendar))

    def replace(self, calendar_id: Ref, calendar: CalendarIn | Mapping[str, Any]) -> CalendarOut:
        """Put another in its place; the jobs that use it are planned anew at once."""
        ask = Ask("PUT", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=calendar)
        return self._http.ask(CalendarOut, ask)

    def change(self, calendar_id: Ref, **fields: Any) -> CalendarOut:
        """Change the fields that are named; `rules` is one field."""
        ask = Ask("PATCH", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=fields)
        return self._http.ask(CalendarOut, ask)

    def delete(self, calendar_id: Ref, *, force: bool = False) -> None:
        """Refused while jobs use it, unless `force` takes it out of them."""
        ask = Ask("DELETE", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, {"force": force})
        self._http.tell(ask)

    def jobs(self, calendar_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[CalendarUser]:
        """The jobs that use it."""
        query = {"limit": limit, "cursor": cursor}
        ask = Ask("GET", "/calendars/{calendar_id}/jobs", {"calendar_id": calendar_id}, query)
        return self._http.ask(Page[CalendarUser], ask)
