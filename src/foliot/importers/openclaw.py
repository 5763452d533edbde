"""OpenClaw's cron jobs: the present file, a bare array, the output of its `cron list --all --json`, and older shapes of records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from foliot.domain.lifecycle import RunStatus
from foliot.domain.past_run import PastState
from foliot.importers.openclaw_delivery import read_rules
from foliot.importers.records import (
    COMMAND_NOTE,
    BadRecordError,
    Draft,
    ImportedRecords,
    clean_text,
    collect,
    instant_of_ms,
    read_json,
    seconds,
)

_CRON_FIELDS = 5
_STAGGERED = re.compile(r"0 (\*|\*/\d+) \* \* \*")
_STAGGER = "5m"  # OpenClaw's own for jobs at the full hour that name none
_LATER = re.compile(r"(\d+)([smhd])")
_TURN_FIELDS = (
    "model", "fallbacks", "thinking", "lightContext", "toolsAllow", "allowUnsafeExternalContent",
)  # fmt: skip
_STATUSES = {"ok": RunStatus.SUCCEEDED, "error": RunStatus.FAILED}  # a skip is no run
_MOST_COUNTED = 1_000_000
_COMMAND_FIELDS = ("noOutputTimeoutSeconds", "outputMaxBytes", "input")


@dataclass(frozen=True, slots=True)
class OpenClawMapping:
    """Whose the jobs become. `agents`, `rooms` and `channels` map OpenClaw's names to names of agents, ids or keys of rooms, and names or ids of
    channels here.
    """

    agents: Mapping[str, str] = field(default_factory=dict)
    rooms: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)
    default_agent: str | None = None
    default_zone: str | None = None


def read_openclaw(text: str, mapping: OpenClawMapping, now: datetime) -> ImportedRecords:
    content = read_json(text, "The file")
    records = content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise BadRecordError('The file holds neither a list of jobs nor {"jobs": […]}.')
    keyed = [(_key(each), each) for each in records]
    return collect("openclaw", keyed, lambda raw: _Reader(raw, mapping, now).draft())


def _key(raw: Any) -> str | None:
    if not isinstance(raw, dict):
        return None
    given = raw.get("id", raw.get("jobId"))
    return None if given in (None, "") else str(given)


class _Reader:
    def __init__(self, raw: Any, mapping: OpenClawMapping, now: datetime) -> None:
        if not isinstance(raw, dict):
            raise BadRecordError("The record is not an object.")
        self._raw = raw
        self._mapping = mapping
        self._now = now
        self._warnings: list[str] = []
        self._notes: dict[str, Any] = {"was_enabled": bool(raw.get("enabled", True))}
        self._fields: dict[str, Any] = {}

    def draft(self) -> Draft:
        schedule = self._schedule()
        kind, config, text = self._payload()
        owner = self._owner()
        if owner is not None:
            self._fields["owner"] = owner
        if kind == "message":
            config |= self._room()
        self._keep_the_rest()
        rules, refused = read_rules(self._raw, self._mapping.channels)
        self._warnings += refused
        name = self._raw.get("name") or text or "OpenClaw job"
        self._fields["description"] = str(self._raw.get("description") or "")
        return Draft(
            str(name),
            kind,
            schedule,
            config,
            self._fields,
            notes=self._notes,
            state=self._state(),
            rules=rules,
            warnings=list(dict.fromkeys(self._warnings)),
        )

    def _schedule(self) -> dict[str, Any]:
        given = self._raw.get("schedule")
        if isinstance(given, str):
            return self._cron(given, None, None)
        if not isinstance(given, dict):
            raise BadRecordError("The record has no schedule.")
        kind = str(given.get("kind") or _kind_by_fields(given)).lower()
        if kind == "at":
            return self._once(given)
        if kind == "every":
            return self._interval(given)
        if kind == "cron":
            return self._cron(given.get("expr", given.get("cron")), given.get("tz"), given.get("staggerMs"))
        self._warnings.append(f"The trigger {kind!r} is not supported: the job is kept as a manual one.")
        self._notes["trigger"] = given
        return {"kind": "manual"}

    def _cron(self, expr: Any, zone: Any, stagger: Any) -> dict[str, Any]:
        if not isinstance(expr, str) or not expr.strip():
            raise BadRecordError("The schedule has no cron expression.")
        expr = " ".join(expr.split())
        schedule: dict[str, Any] = {"kind": "cron", "expr": expr}
        if len(expr.split()) > _CRON_FIELDS:
            schedule["seconds"] = True
            self._warnings.append("The expression has six fields: the first is seconds.")
        if zone is None and self._mapping.default_zone is None:
            self._warnings.append(
                "The schedule has no zone; OpenClaw used that of its host. The workspace's is used."
            )
        if zone or self._mapping.default_zone:
            schedule["timezone"] = str(zone or self._mapping.default_zone)
        if stagger is None and _STAGGERED.fullmatch(expr):
            schedule["spread"] = _STAGGER
        elif isinstance(stagger, int | float) and stagger > 0:
            schedule["spread"] = seconds(stagger / 1000)
        return schedule

    def _interval(self, given: Mapping[str, Any]) -> dict[str, Any]:
        every = given.get("everyMs")
        if not isinstance(every, int | float) or isinstance(every, bool) or every < 1:
            raise BadRecordError("everyMs must be a number of at least 1.")
        if every < 1000:
            raise BadRecordError("The shortest interval is one second.")
        anchor = given.get("anchorMs", self._raw.get("createdAtMs"))
        schedule: dict[str, Any] = {"kind": "interval", "every": seconds(every / 1000), "mode": "fixed_rate"}
        return (
            schedule
            if anchor is None
            else schedule | {"anchor": instant_of_ms(anchor, "anchorMs").isoformat()}
        )

    def _once(self, given: Mapping[str, Any]) -> dict[str, Any]:
        at, at_ms = given.get("at"), given.get("atMs")
        if at_ms is not None:
            instant = instant_of_ms(at_ms, "atMs")
        elif isinstance(at, str) and (later := _LATER.fullmatch(at.strip())):
            unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[later[2]]
            instant = self._now + timedelta(**{unit: int(later[1])})
        elif isinstance(at, str):
            instant = _instant_of_text(at)
        else:
            raise BadRecordError("The schedule names no time.")
        if instant <= self._now:
            self._warnings.append(f"Its time, {instant:%Y-%m-%d %H:%M} UTC, has passed.")
        self._notes["delete_after_run"] = bool(self._raw.get("deleteAfterRun", True))
        return {"kind": "once", "at": instant.isoformat()}

    def _payload(self) -> tuple[str, dict[str, Any], str]:
        payload = self._raw.get("payload")
        if payload is None:  # an old record has its text beside the schedule
            if isinstance(self._raw.get("message"), str):
                payload = {"kind": "agentTurn", "message": self._raw["message"]}
            elif isinstance(self._raw.get("text"), str):
                payload = {"kind": "systemEvent", "text": self._raw["text"]}
        if not isinstance(payload, dict):
            raise BadRecordError("The record has no payload.")
        kind = str(payload.get("kind", "")).lower()
        if timeout := payload.get("timeoutSeconds"):
            if not isinstance(timeout, int | float) or timeout <= 0:
                raise BadRecordError("timeoutSeconds must be a positive number.")
            self._fields["timeout"] = seconds(timeout)
        if kind == "systemevent":
            text = _text(payload.get("text"), "The event has no text.")
            return "message", {"text": text, "kind": "system_event"}, text
        if kind == "agentturn":
            text = _text(payload.get("message"), "The turn has no message.")
            self._keep("agent_turn", payload, _TURN_FIELDS)
            return "message", {"text": text}, text
        if kind == "command":
            return self._command(payload)
        self._warnings.append(f"The payload {kind!r} is not supported: the job only posts its original text.")
        self._notes["payload"] = payload
        text = json.dumps(payload, ensure_ascii=False)
        return "message", {"text": text, "kind": "system_event"}, kind

    def _command(self, payload: Mapping[str, Any]) -> tuple[str, dict[str, Any], str]:
        argv = payload.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(each, str) for each in argv):
            raise BadRecordError("The command has no argv.")
        self._warnings.append(COMMAND_NOTE)
        config: dict[str, Any] = {"argv": argv}
        if env := payload.get("env"):
            config["env"] = env
            self._warnings.append(
                "Its variables are copied: move secrets among them to the secrets of the workspace."
            )
        if cwd := payload.get("cwd"):
            if str(cwd).startswith("/"):
                config["cwd"] = cwd
            else:
                self._notes["cwd"] = cwd
                self._warnings.append(f"Its folder {cwd!r} is relative: name it from the root on.")
        self._keep("command", payload, _COMMAND_FIELDS)
        return "command", config, " ".join(argv)

    def _owner(self) -> str | None:
        named = self._raw.get("agentId")
        if named and str(named) in self._mapping.agents:
            return self._mapping.agents[str(named)]
        if self._mapping.default_agent is not None:
            what = f"the agent {named!r} is not mapped" if named else "no agent is named"
            self._warnings.append(f"{what.capitalize()}: the default agent is used.")
        elif named:
            self._warnings.append(f"The agent {named!r} is not mapped: the job is yours.")
        else:
            self._warnings.append("No agent is named: the job is yours.")
        return self._mapping.default_agent

    def _room(self) -> dict[str, Any]:
        target = str(self._raw.get("sessionTarget") or "main")
        self._notes["session_target"] = target
        plain = target.lower()
        if plain in ("isolated", "current"):
            return {"new_room": True}
        if plain == "main":
            return {}
        room = self._mapping.rooms.get(target) or self._mapping.rooms.get(target.removeprefix("session:"))
        if room is None:
            self._warnings.append(f"{target} is mapped to no room: the job gets a room of its own.")
            return {}
        return {"room": room}

    def _keep_the_rest(self) -> None:
        """What has no field of a job is kept beside it."""
        self._notes["wake"] = self._raw.get("wakeMode", "now")
        for theirs, ours in (("delivery", "delivery"), ("failureAlert", "failure_alert"), ("state", "state")):
            if kept := self._raw.get(theirs):
                self._notes[ours] = kept

    def _state(self) -> PastState | None:
        """Return the last run and the failures in a row. The next time is computed anew, and a run under way is OpenClaw's own."""
        given = self._raw.get("state")
        if not isinstance(given, dict) or not given:
            return None
        try:
            return _past_state(given, self._now)
        except BadRecordError as error:
            self._warnings.append(f"Its state is not taken over: {error}")
            return None

    def _keep(self, name: str, payload: Mapping[str, Any], names: tuple[str, ...]) -> None:
        if kept := {each: payload[each] for each in names if each in payload}:
            self._notes[name] = kept


def _past_state(given: Mapping[str, Any], now: datetime) -> PastState | None:
    status = _STATUSES.get(str(given.get("lastRunStatus") or given.get("lastStatus") or "").lower())
    at = None
    if status is not None and (ms := given.get("lastRunAtMs")) is not None:
        at = instant_of_ms(ms, "lastRunAtMs")
        if at > now:
            raise BadRecordError("lastRunAtMs lies in the future.")
    error = given.get("lastError") if status is RunStatus.FAILED else None
    state = PastState(
        last_run_at=at,
        last_run_status=status,
        last_error=None if error is None else clean_text(error),
        failures_in_a_row=_count(given, "consecutiveErrors"),
        schedule_errors=_count(given, "scheduleErrorCount"),
    )
    return None if state == PastState() else state


def _count(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_COUNTED:
        raise BadRecordError(f"{name} is no count.")
    return value


def _kind_by_fields(schedule: Mapping[str, Any]) -> str:
    if "at" in schedule or "atMs" in schedule:
        return "at"
    return "every" if "everyMs" in schedule else "cron"


def _text(value: Any, missing: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadRecordError(missing)
    return value


def _instant_of_text(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise BadRecordError(f"{text!r} is not a time by ISO 8601.") from None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
