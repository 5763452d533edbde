"""`client.calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import check, reader
from foliot.wire.calendars import CalendarIn, CalendarOut, CalendarUser
from foliot.wire.dry_run import CalendarDryRunOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncCalendarWrites(AsyncWrites[Changed, Gone]):
    async def create(self, calendar: CalendarIn | Mapping[str, Any]) -> Changed:
        return await self._write(self._changed, post("/calendars", body=calendar))

    async def replace(self, calendar_id: Ref, calendar: CalendarIn | Mapping[str, Any]) -> Changed:
        """Put another in its place; the jobs that use it are planned anew at once."""
        ask = Ask("PUT", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=calendar)
        return await self._write(self._changed, ask)

    async def change(self, calendar_id: Ref, **fields: Any) -> Changed:
        """Change the fields that are named; `rules` is one field."""
        ask = Ask("PATCH", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=fields)
        return await self._write(self._changed, ask)

    async def delete(self, calendar_id: Ref, *, force: bool = False) -> Gone:
        """Refused while jobs use it, unless `force` takes it out of them."""
        ask = Ask("DELETE", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, {"force": force})
        return await self._write(self._gone, ask)


class AsyncCalendars(AsyncCalendarWrites[CalendarOut, None]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(CalendarOut), check)
        preview = reader(CalendarDryRunOut)
        self.dry_run = AsyncCalendarWrites(http, preview, preview, dry_run=True)

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

    async def jobs(
        self, calendar_id: Ref, *, limit: int = PAGE, cursor: str | None = None
    ) -> Page[CalendarUser]:
        """The jobs that use it."""
        query = {"limit": limit, "cursor": cursor}
        ask = Ask("GET", "/calendars/{calendar_id}/jobs", {"calendar_id": calendar_id}, query)
        return await self._http.ask(Page[CalendarUser], ask)
