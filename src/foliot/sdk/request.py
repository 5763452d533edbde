"""A request as a value, and when to send it again. Both clients share it: nothing here uses the network.

Why: docs/decisions/801-client-address-key-and-repeats.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote
from uuid import UUID, uuid4

from foliot.clock import pause
from foliot.sdk.errors import Invalid, certificate_problem, retry_after
from foliot.wire.durations import write_duration
from foliot.wire.instants import write_instant
from foliot.wire.shape import Shape

if TYPE_CHECKING:
    import httpx2

BASE = "/api/v1"
FIRST_WAIT = 0.1  # seconds; doubled with each attempt
MAX_WAIT = 30.0  # a longer Retry-After ends the attempts
MAX_RESUME_WAIT = 5.0  # between two attempts to resume a stream
MAX_RESUMES = 15  # about a minute without a server
TEMPORARY_STATUSES = frozenset({429, 502, 503, 504})

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Ref = UUID | str
_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`path` is a template as in OpenAPI, filled from `ids`. Values of None in `query` are not sent."""

    method: Method
    path: str
    ids: Mapping[str, Ref] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_repeatable(self) -> bool:
        """Whether it is safe to send it again after a lost response. With If-Match the repeat would be refused as stale."""
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
) -> ApiRequest:
    """Return a POST with an idempotency key: the server executes repeats only once."""
    return ApiRequest("POST", path, ids or {}, query or {}, body, {"Idempotency-Key": key or str(uuid4())})


def if_match(revision: int | None) -> dict[str, str]:
    """Return the header that makes a change conditional on the revision."""
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def build_request(request: ApiRequest, build: Any) -> httpx2.Request:
    """Build the HTTP request. `build` is the build_request of either HTTP client."""
    headers = {**request.headers}
    content = None
    if request.body is not None:
        content = to_json(request.body)
        headers["Content-Type"] = "application/json"
    built: httpx2.Request = build(
        request.method, BASE + _path(request), params=_query(request.query), content=content, headers=headers
    )
    return built


def wait_before_retry(
    request: ApiRequest, attempt: int, outcome: httpx2.Response | Exception
) -> float | None:
    """Return the seconds to wait before the next attempt, or None to stop. `attempt` counts from 1."""
    backoff = FIRST_WAIT * float(2 ** (attempt - 1)) * (1 + _random.random())
    if not isinstance(outcome, Exception):
        if not _is_temporary(request, outcome):
            return None
        asked = retry_after(outcome) or 0.0
        return None if asked > MAX_WAIT else max(asked, backoff)
    if certificate_problem(outcome) is not None:
        return None
    return backoff if request.is_repeatable or _was_never_sent(outcome) else None


def _was_never_sent(error: Exception) -> bool:
    import httpx2  # noqa: PLC0415  # a request that is answered may do without it

    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _is_temporary(request: ApiRequest, outcome: httpx2.Response) -> bool:
    """Return whether the same request may succeed later. A 409 with Retry-After means that our first attempt is still running."""
    if outcome.status_code == 429:
        return True
    is_in_flight = (
        outcome.status_code == 409
        and "Idempotency-Key" in request.headers
        and "Retry-After" in outcome.headers
    )
    return request.is_repeatable and (outcome.status_code in TEMPORARY_STATUSES or is_in_flight)


def wait_before_resume(tries: int, outcome: httpx2.Response | Exception | None) -> float | None:
    """Return the seconds to wait before resuming a stream, or None to stop. `tries` counts attempts without an event, from 1."""
    asked = 0.0
    if outcome is not None and not isinstance(outcome, Exception):
        if outcome.status_code not in TEMPORARY_STATUSES:
            return None
        asked = retry_after(outcome) or 0.0
    if tries > MAX_RESUMES or asked > MAX_WAIT:
        return None
    gap: float = min(FIRST_WAIT * 2 ** (tries - 1), MAX_RESUME_WAIT)
    return max(asked, gap * (1 + _random.random()))


async def async_sleep(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  # the synchronous client does without it

    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    """Block the thread; the synchronous client uses it in place of `async_sleep`."""
    pause(seconds)


def to_json(value: Any) -> bytes:
    try:
        return json.dumps(value, default=_encode, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"Cannot encode this as JSON: {error}", code="invalid") from None


def without_none(**fields: Any) -> dict[str, Any]:
    """Leave out fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def _encode(value: Any) -> Any:
    """Encode Python values that JSON does not have."""
    if isinstance(value, Shape):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, timedelta):
        return write_duration(value)
    if isinstance(value, datetime):
        # Without an offset the server refuses it: guessing a zone would be worse.
        return write_instant(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")


def _path(request: ApiRequest) -> str:
    parts = {}
    for name, value in request.ids.items():
        if str(value) in {"", ".", ".."}:  # it would change the path
            raise Invalid(f"{str(value)!r} is not an id.", code="invalid")
        parts[name] = quote(str(value), safe="")
    return request.path.format(**parts)


def _query(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Repeat the name for each item of a list."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        several = value if isinstance(value, list | tuple | set | frozenset) else (value,)
        pairs += [(name, _query_value(each)) for each in several if each is not None]
    return pairs


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = value if isinstance(value, str | int | float) else _encode(value)
    return str(plain)
