"""`client.calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone, each_of
from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import raise_for_error, reader
from foliot.wire.calendars import (
    YEARS,
    CalendarIn,
    CalendarOut,
    CalendarUser,
    CalendarYearOut,
    CountriesOut,
    DateRulesOut,
)
from foliot.wire.dry_run import CalendarDryRunOut
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page


class AsyncCalendarWrites(AsyncWrites[Changed, Gone]):
    async def create(self, calendar: CalendarIn | Mapping[str, Any]) -> Changed:
        return await self._change(post("/calendars", body=calendar))

    async def replace(self, calendar_id: Ref, calendar: CalendarIn | Mapping[str, Any]) -> Changed:
        """Replace a calendar. The jobs that use it are planned anew at once."""
        request = ApiRequest("PUT", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=calendar)
        return await self._change(request)

    async def change(self, calendar_id: Ref, **fields: Any) -> Changed:
        """Change the given fields; `rules` is one field."""
        request = ApiRequest("PATCH", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, body=fields)
        return await self._change(request)

    async def delete(self, calendar_id: Ref, *, force: bool = False) -> Gone:
        """Delete a calendar. Refused while jobs use it, unless `force` removes it from them."""
        request = ApiRequest(
            "DELETE", "/calendars/{calendar_id}", {"calendar_id": calendar_id}, {"force": force}
        )
        return await self._remove(request)


class AsyncCalendarsApi(AsyncCalendarWrites[CalendarOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(CalendarOut), raise_for_error)
        preview = reader(CalendarDryRunOut)
        self.dry_run = AsyncCalendarWrites(http, preview, preview, dry_run=True)

    async def list(self, *, limit: int = PAGE, cursor: str | None = None) -> Page[CalendarOut]:
        """Return one page, ordered by name."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(Page[CalendarOut], "/calendars", query=query)

    def each(self) -> AsyncIterator[CalendarOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, calendar_id: Ref) -> CalendarOut:
        return await self._http.get(CalendarOut, "/calendars/{calendar_id}", {"calendar_id": calendar_id})

    async def year(self, calendar_id: Ref, year: int | None = None) -> CalendarYearOut:
        """Return the days of a year on which it closes, whole or in part. Default: this year."""
        return await self._http.get(
            CalendarYearOut, "/calendars/{calendar_id}/year", {"calendar_id": calendar_id}, {"year": year}
        )

    async def countries(self) -> CountriesOut:
        """Return the countries whose public holidays are known."""
        return await self._http.get(CountriesOut, "/calendars/countries")

    async def holidays(
        self,
        country: str,
        *,
        subdivision: str | None = None,
        first_year: int | None = None,
        years: int = YEARS,
    ) -> DateRulesOut:
        """Return the public holidays of a country, as rules for a calendar."""
        query = {"country": country, "subdivision": subdivision, "first_year": first_year, "years": years}
        return await self._http.get(DateRulesOut, "/calendars/holidays", {}, query)

    async def read_ics(self, text: str, *, first_year: int | None = None, years: int = YEARS) -> DateRulesOut:
        """Return the days of an iCalendar file, as rules for a calendar."""
        body = {"text": text, "first_year": first_year, "years": years}
        return await self._http.read(DateRulesOut, post("/calendars/ics", body=body))

    async def jobs(
        self, calendar_id: Ref, *, limit: int = PAGE, cursor: str | None = None
    ) -> Page[CalendarUser]:
        """Return one page of the jobs that use it."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(
            Page[CalendarUser], "/calendars/{calendar_id}/jobs", {"calendar_id": calendar_id}, query
        )
