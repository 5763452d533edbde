"""`delivery` and `failureAlert` of an OpenClaw job become notification rules. What cannot is named with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foliot.importers.records import BadRecordError, RuleDraft, seconds

SUCCEEDED, FAILED, SKIPPED = "run_succeeded", "run_failed", "run_skipped"
_ALERT_AFTER, _ALERT_COOLDOWN = 2, 3_600_000  # OpenClaw's own: failures, milliseconds
_MOST_FAILURES = 1_000
_OLD = "deliver"  # the mode of records in an old form


def read_rules(raw: Mapping[str, Any], channels: Mapping[str, str]) -> tuple[list[RuleDraft], list[str]]:
    """Return the rules of a job, and a sentence for each part that becomes none."""
    reader = _Reader(channels)
    delivery, alert = _delivery(raw), raw.get("failureAlert")
    fails_elsewhere = delivery.get("failureDestination")
    alerts_itself = alert is not None or fails_elsewhere is not None
    if raw.get("notify"):
        reader.refused.append("It asked for delivery in an old form: add a notification rule.")
    reader.add("delivery", delivery, (SUCCEEDED,) if alerts_itself else (SUCCEEDED, FAILED))
    if completion := delivery.get("completionDestination"):
        reader.add("completion", completion, (SUCCEEDED,))
    if fails_elsewhere:
        reader.add("failure", {**_address(delivery), **_object(fails_elsewhere)}, (FAILED,))
    if alert:
        _read_alert(reader, {**_address(delivery), **_object(alert)})
    return reader.rules, reader.refused


def _read_alert(reader: _Reader, alert: Mapping[str, Any]) -> None:
    after, cooldown = alert.get("after", _ALERT_AFTER), alert.get("cooldownMs", _ALERT_COOLDOWN)
    if not isinstance(after, int) or isinstance(after, bool) or not 1 <= after <= _MOST_FAILURES:
        reader.refuse("failure alert", f"after is {after!r}, not a number from 1 to {_MOST_FAILURES}")
        return
    if not isinstance(cooldown, int | float) or isinstance(cooldown, bool) or cooldown < 0:
        reader.refuse("failure alert", f"cooldownMs is {cooldown!r}, not a number of milliseconds")
        return
    events = (FAILED, SKIPPED) if alert.get("includeSkipped") else (FAILED,)
    reader.add(
        "failure alert", alert, events, after_n=after, cooldown=seconds(cooldown / 1000) if cooldown else None
    )


@dataclass(slots=True)
class _Reader:
    channels: Mapping[str, str]
    rules: list[RuleDraft]
    refused: list[str]

    def __init__(self, channels: Mapping[str, str]) -> None:
        self.channels, self.rules, self.refused = channels, [], []

    def refuse(self, title: str, reason: str) -> None:
        self.refused.append(f"Its {title} is not taken over: {reason}.")

    def add(
        self, title: str, given: Any, events: tuple[str, ...], after_n: int = 1, cooldown: str | None = None
    ) -> None:
        try:
            where = self._destination(_object(given))
        except BadRecordError as error:
            self.refuse(title, str(error))
            return
        if where is not None:
            self.rules.append(RuleDraft(title, events, **where, after_n=after_n, cooldown=cooldown))

    def _destination(self, given: Mapping[str, Any]) -> dict[str, str] | None:
        mode = str(given.get("mode") or "announce").lower()
        if mode == "none":
            return None
        channel, to = _text(given.get("channel")), _text(given.get("to"))
        if mode == "webhook":
            if not to.startswith(("http://", "https://")):
                raise BadRecordError(f"{to[:200]!r} is no http(s) address")
            return {"url": to}
        if mode not in ("announce", _OLD):
            raise BadRecordError(f"the mode {mode[:50]!r} is not known")
        name = channel or "last"
        ours = self.channels.get(f"{name}:{to}") or self.channels.get(name)
        if ours is None:
            where = "the chat that was used last" if name == "last" else f"{name} {to}".strip()[:200]
            old = ", in an old form" if mode == _OLD else ""
            raise BadRecordError(f"it went to {where}{old}; map {name} to a channel of this workspace")
        return {"channel": ours}


def _delivery(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the delivery in its present form. A turn in a session of its own is announced unless it says otherwise."""
    given = raw.get("delivery")
    if isinstance(given, Mapping):
        return given
    payload = _object(raw.get("payload"))
    for old in (raw, payload):  # legacy fields of the job, or of its turn
        if old.get("deliver") is True:
            return {"mode": _OLD, "channel": old.get("channel"), "to": old.get("to")}
    is_turn = str(payload.get("kind", "")).lower() == "agentturn" and payload.get("deliver") is not False
    is_isolated = str(raw.get("sessionTarget") or "").lower() in ("isolated", "current")
    return {"mode": "announce"} if is_turn and is_isolated else {"mode": "none"}


def _address(delivery: Mapping[str, Any]) -> dict[str, Any]:
    return {name: delivery[name] for name in ("mode", "channel", "to") if name in delivery}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()
