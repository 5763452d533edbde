"""What a function returned or raised, as JSON that a hand can send, and as what came of the attempt. No heavy imports: see python_child.py."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from foliot.sdk.outcomes import Fail, Retry, Skip

if TYPE_CHECKING:
    from foliot.handlers.registry import Done


def raised(error: BaseException) -> dict[str, Any]:
    message = str(error)
    match error:
        case Retry(after=timedelta() as after):
            return {"retry_after": after.total_seconds(), "message": message}
        case Retry():
            return {"error": "retry", "message": message}
        case Skip():
            return {"skip": message}
        case Fail(permanent=permanent, code=code):
            return {"error": code, "message": message, "permanent": permanent}
        case _:
            return {"error": type(error).__name__, "message": message or repr(error)}


def done_of(answer: dict[str, Any]) -> Done:
    from foliot.domain.outcomes import AskedRetry, AskedSkip
    from foliot.domain.schedule import SkipReason
    from foliot.handlers.registry import Done, failed, succeeded

    match answer:
        case {"retry_after": seconds}:
            return Done(AskedRetry(timedelta(seconds=seconds)))
        case {"skip": reason}:
            return Done(AskedSkip(SkipReason.OPERATOR, reason))
        case {"error": code, "message": message}:
            return failed(code, message, permanent=answer.get("permanent", False))
        case _:
            return succeeded(answer["output"])
