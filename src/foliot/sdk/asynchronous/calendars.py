"""`client.calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.shared_dry_runs import AsyncCalendarDryRuns
from foliot.sdk.request import Ask, Ref, post
from foliot.wire.calendars import CalendarIn, CalendarOut, CalendarUser
from foliot.wire.pages import LONGEST_PAGE, PAGE, Page


class AsyncCalendars:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.dry_run = AsyncCalendarDryRuns(http)

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[CalendarOut]:
        """One page, in the order of their names."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.ask(Page[CalendarOut], Ask("GET", "/calendars", query=query))

    def each(self) -> AsyncIterator[CalendarOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, calendar_id: Ref) -> CalendarOut:
        ask = Ask("GET", "/calendars/{calendar_id}", {"calendar_id": calendar_id})
        return await self._http.ask(CalendarOut, ask)

    async def create(self, calendar: CalendarIn | Mapping[str, Any]) -> CalendarOut:
        return await self._http.ask(CalendarOut, post("/calendars", body=calendar))

    async def replace(self, calendar_id: Ref, calendar: CalendarIn | Mapping[str, Any]) -> CalendarOut:
        """Put another in its place; the jobs that use it are planned anew at once."""
        ask = Ask("PUT", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=calendar)
        return await self._http.ask(CalendarOut, ask)

    async def change(self, calendar_id: Ref, **fields: Any) -> CalendarOut:
        """Change the fields that are named; `rules` is one field."""
        ask = Ask("PATCH", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=fields)
        return await self._http.ask(CalendarOut, ask)

    async def delete(self, calendar_id: Ref, *, force: bool = False) -> None:
        """Refused while jobs use it, unless `force` takes it out of them."""
        ask = Ask("DELETE", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, {"force": force})
        await self._http.tell(ask)

    async def jobs(
        self, calendar_id: Ref, *, limit: int = PAGE, cursor: str | None = None
    ) -> Page[CalendarUser]:
        """The jobs that use it."""
        query = {"limit": limit, "cursor": cursor}
        ask = Ask("GET", "/calendars/{calendar_id}/jobs", {"calendar_id": calendar_id}, query)
        return await self._http.ask(Page[CalendarUser], ask)
