"""Send one request of a channel within a deadline; every failure is a value, without the path of the address, which often holds tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from foliot import __version__
from foliot.domain.delivery import Rejected, Unanswered
from foliot.egress.client import AddressRefused, Egress, HttpAnswer, NoAnswer, OutgoingRequest, reason_of
from foliot.egress.url import InvalidTarget, read_target
from foliot.services.messaging.courier import LEASE

WITHIN = LEASE.total_seconds() / 2  # for the whole exchange, names and connections included
KEPT = 16 * 1024  # bytes of an answer


async def post(
    egress: Egress,
    url: str,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    keep: int = KEPT,
    workspace: str | None = None,
) -> HttpAnswer | Unanswered | Rejected:
    """Post a body once and return the answer, or why there is none. `workspace` owns the connection, if it is kept."""
    try:
        target = read_target(url)
    except InvalidTarget as error:
        return Rejected(None, f"{error.message} {error.hint}")
    fixed = {
        "user-agent": f"foliot/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",
    }
    request = OutgoingRequest("POST", target, tuple({**fixed, **(headers or {})}.items()), body, workspace)
    try:
        async with asyncio.timeout(WITHIN) as deadline:
            return await egress.send(request, keep)
    except AddressRefused as error:
        return Unanswered(error.public)
    except NoAnswer as error:
        return Unanswered(str(error))
    except TimeoutError:
        if not deadline.expired():
            raise
        return Unanswered(f"The receiver did not answer within {WITHIN:g} s.")


async def post_json(
    egress: Egress, url: str, value: object, headers: Mapping[str, str] | None = None
) -> HttpAnswer | Unanswered | Rejected:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return await post(
        egress, url, body, {"content-type": "application/json; charset=utf-8", **(headers or {})}
    )


def json_of(answer: HttpAnswer) -> dict[str, Any]:
    """Return the object in an answer, or an empty one."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def sentence_of(answer: HttpAnswer, detail: str = "") -> str:
    base = f"The receiver answered {answer.status} {reason_of(answer)}".rstrip()
    shown = "".join(filter(str.isprintable, detail))[:200]
    return f"{base}: {shown}." if shown else f"{base}."
