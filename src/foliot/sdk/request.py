"""A request as a value, and when it may be sent again. Nothing here speaks to the network, so both clients share it.

Why: docs/decisions/801-client-address-key-and-repeats.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from secrets import SystemRandom
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx2

from foliot.sdk.errors import Invalid, mistrust, retry_after
from foliot.wire.durations import write_duration
from foliot.wire.instants import write_instant
from foliot.wire.shape import Shape

BASE = "/api/v1"
FIRST_WAIT = 0.1  # seconds; doubles with each attempt
LONGEST_WAIT = 30.0  # a server that asks for more patience than this is given up on
LONGEST_GAP = 5.0  # between two tries to resume a stream
TRIES_TO_RESUME = 15  # about a minute without a server
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
NOT_NOW = frozenset({429, 502, 503, 504})

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Ref = UUID | str
_chance = SystemRandom()


@dataclass(frozen=True, slots=True)
class Ask:
    """`path` is written as in OpenAPI, and `ids` fill its braces; what is None in `query` is not sent."""

    method: Method
    path: str
    ids: Mapping[str, Ref] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_repeatable(self) -> bool:
        """May it be sent again when nobody knows whether it was done? With If-Match the repeat would be refused as stale."""
        if self.method == "POST":
            return "Idempotency-Key" in self.headers
        return "If-Match" not in self.headers


def post(
    path: str,
    ids: Mapping[str, Ref] | None = None,
    *,
    body: Any = None,
    query: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Ask:
    """A POST under an idempotency key, so that it may be repeated: done once, answered alike."""
    return Ask("POST", path, ids or {}, query or {}, body, {"Idempotency-Key": key or str(uuid4())})


def seen(revision: int | None) -> dict[str, str]:
    """The header by which a change is made only to what its author has seen."""
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def request_of(ask: Ask, build: Any) -> httpx2.Request:
    """`build` is the build_request of either client."""
    headers = {**ask.headers}
    content = None
    if ask.body is not None:
        content = to_json(ask.body)
        headers["Content-Type"] = "application/json"
    request: httpx2.Request = build(
        ask.method, BASE + _filled(ask), params=_params(ask.query), content=content, headers=headers
    )
    return request


def wait_before_retry(ask: Ask, attempt: int, came: httpx2.Response | httpx2.TransportError) -> float | None:
    """Seconds until it is sent again; None where the answer stands. `attempt` counts from 1."""
    backoff = FIRST_WAIT * float(2 ** (attempt - 1)) * (1 + _chance.random())
    if isinstance(came, httpx2.Response):
        if not _is_passing(ask, came):
            return None
        asked = retry_after(came) or 0.0
        return None if asked > LONGEST_WAIT else max(asked, backoff)
    if mistrust(came) is not None:
        return None
    return backoff if ask.is_repeatable or isinstance(came, NEVER_SENT) else None


def _is_passing(ask: Ask, came: httpx2.Response) -> bool:
    """Would the same request fare better in a while? A 409 says so where our own first try is still under way."""
    if came.status_code == 429:
        return True
    is_in_flight = (
        came.status_code == 409 and "Idempotency-Key" in ask.headers and "Retry-After" in came.headers
    )
    return ask.is_repeatable and (came.status_code in NOT_NOW or is_in_flight)


def wait_before_resuming(tries: int, came: httpx2.Response | httpx2.TransportError | None) -> float | None:
    """Seconds until a stream that ended is asked for again; None where it is over. `tries` without an event so far, from 1."""
    asked = 0.0
    if isinstance(came, httpx2.Response):
        if came.status_code not in NOT_NOW:
            return None
        asked = retry_after(came) or 0.0
    if tries > TRIES_TO_RESUME or asked > LONGEST_WAIT:
        return None
    gap: float = min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_GAP)
    return max(asked, gap * (1 + _chance.random()))


def to_json(value: Any) -> bytes:
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"This cannot be sent as JSON: {error}", code="invalid") from None


def given(**fields: Any) -> dict[str, Any]:
    """Those that were given: None means "not said" here."""
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    """JSON for what Python says better."""
    if isinstance(value, Shape):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, timedelta):
        return write_duration(value)
    if isinstance(value, datetime):
        # One without an offset stays without, and the server refuses it: guessing a zone here would be worse.
        return write_instant(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _filled(ask: Ask) -> str:
    parts = {}
    for name, value in ask.ids.items():
        if str(value) in {"", ".", ".."}:  # would name another resource
            raise Invalid(f"{str(value)!r} is not an id.", code="invalid")
        parts[name] = quote(str(value), safe="")
    return ask.path.format(**parts)


def _params(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A list is the name said several times."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        several = value if isinstance(value, list | tuple | set | frozenset) else (value,)
        pairs += [(name, _text(each)) for each in several if each is not None]
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = value if isinstance(value, str | int | float) else _plain(value)
    return str(plain)
