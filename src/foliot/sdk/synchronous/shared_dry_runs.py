# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.calendars.dry_run`, `client.secrets.dry_run`, `client.freezes.dry_run` and `client.runs.dry_run`: the same verbs, and nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.synchronous.http import Http
from foliot.wire.calendars import CalendarIn
from foliot.wire.dry_run import (
    CalendarDryRunOut,
    FreezeLiftOut,
    RotationDryRunOut,
    RunDryRunOut,
    SecretDryRunOut,
)
from foliot.wire.freezes import FreezeIn, FreezePreviewOut


class CalendarDryRuns:
    """Each answers with the calendar as it would stand, and the jobs whose next run would move."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, calendar: CalendarIn | Mapping[str, Any]) -> CalendarDryRunOut:
        ask = post("/calendars", body=calendar, query={"dry_run": True})
        return self._http.ask(CalendarDryRunOut, ask)

    def replace(self, calendar_id: Ref, calendar: CalendarIn | Mapping[str, Any]) -> CalendarDryRunOut:
        ids, query = {"calendar_id": calendar_id}, {"dry_run": True}
        ask = Ask("PUT", "/calendars/{calendar_id}", ids, query, calendar)
        return self._http.ask(CalendarDryRunOut, ask)

    def change(self, calendar_id: Ref, **fields: Any) -> CalendarDryRunOut:
        ids, query = {"calendar_id": calendar_id}, {"dry_run": True}
        ask = Ask("PATCH", "/calendars/{calendar_id}", ids, query, fields)
        return self._http.ask(CalendarDryRunOut, ask)

    def delete(self, calendar_id: Ref, *, force: bool = False) -> CalendarDryRunOut:
        ids, query = {"calendar_id": calendar_id}, {"force": force, "dry_run": True}
        return self._http.ask(CalendarDryRunOut, Ask("DELETE", "/calendars/{calendar_id}", ids, query))


class SecretDryRuns:
    """Each answers with the secret as it would stand, without a value."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, name: str, value: str, *, agents: Sequence[Ref] = ()) -> SecretDryRunOut:
        body = {"name": name, "value": value, "agents": [str(each) for each in agents]}
        return self._http.ask(SecretDryRunOut, post("/secrets", body=body, query={"dry_run": True}))

    def replace(self, secret_id: Ref, value: str) -> SecretDryRunOut:
        ids, query = {"secret_id": secret_id}, {"dry_run": True}
        return self._http.ask(
            SecretDryRunOut, Ask("PUT", "/secrets/{secret_id}", ids, query, {"value": value})
        )

    def give(self, secret_id: Ref, agents: Sequence[Ref]) -> SecretDryRunOut:
        ids, query, body = (
            {"secret_id": secret_id},
            {"dry_run": True},
            {"agents": [str(each) for each in agents]},
        )
        return self._http.ask(SecretDryRunOut, Ask("PATCH", "/secrets/{secret_id}", ids, query, body))

    def delete(self, secret_id: Ref, *, force: bool = False) -> SecretDryRunOut:
        """`jobs` name it, and would fail without it."""
        ids, query = {"secret_id": secret_id}, {"force": force, "dry_run": True}
        return self._http.ask(SecretDryRunOut, Ask("DELETE", "/secrets/{secret_id}", ids, query))

    def rotate(self, *, new_key: bool = False, accept_loss: bool = False) -> RotationDryRunOut:
        """How many would be sealed anew, and how many cannot be read."""
        body = {"new_key": new_key, "accept_loss": accept_loss}
        ask = post("/master-key/rotate", body=body, query={"dry_run": True})
        return self._http.ask(RotationDryRunOut, ask)


class FreezeDryRuns:
    def __init__(self, http: Http) -> None:
        self._http = http

    def turn_on(self, freeze: FreezeIn | Mapping[str, Any]) -> FreezePreviewOut:
        """What such a freeze would hold: the same as `preview`."""
        return self._http.ask(FreezePreviewOut, post("/freezes", body=freeze, query={"dry_run": True}))

    def lift(self, freeze_id: Ref) -> FreezeLiftOut:
        """What it would let go."""
        ids, query = {"freeze_id": freeze_id}, {"dry_run": True}
        return self._http.ask(FreezeLiftOut, post("/freezes/{freeze_id}/lift", ids, query=query))

    def delete(self, freeze_id: Ref) -> FreezeLiftOut:
        ids, query = {"freeze_id": freeze_id}, {"dry_run": True}
        return self._http.ask(FreezeLiftOut, Ask("DELETE", "/freezes/{freeze_id}", ids, query))


class RunDryRuns:
    """Each answers with the run as it would be recorded, and a sentence about it."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def retry(
        self,
        run_id: Ref,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  # the name on the wire
        override: bool = False,
    ) -> RunDryRunOut:
        body, query = given(input=input, override=override), {"dry_run": True}
        ask = post("/runs/{run_id}/retry", {"run_id": run_id}, body=body, query=query)
        return self._http.ask(RunDryRunOut, ask)

    def cancel(self, run_id: Ref, *, reason: str | None = None, force: bool = False) -> RunDryRunOut:
        body, query = given(reason=reason, force=force), {"dry_run": True}
        ask = post("/runs/{run_id}/cancel", {"run_id": run_id}, body=body, query=query)
        return self._http.ask(RunDryRunOut, ask)
