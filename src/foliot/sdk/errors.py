"""What the server refuses, and what never reached it: one tree, mirrored from problem+json.

FoliotApiError
├── Invalid           what was asked for cannot be read or cannot be: 400, 413, 415, 422
├── Unauthorized      no key, or one that is not valid: 401
├── Denied            this key may not do that: 403
├── NotFound          no such thing, or not yours: 404
├── Conflict          it is not in a state that allows this: 409
│   └── Stale         somebody else has edited it since it was read: 412, 428
├── RateLimited       too many requests; `retry_after` says how long to wait: 429
├── Unavailable       Foliot cannot work right now: 502, 503, 504
│   └── Unreachable   no answer at all
│       └── Untrusted who answers cannot show that it is who we meant to ask
└── Unreadable        an answer that this client does not understand
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
from pydantic import ValidationError

from foliot.wire.shape import FieldProblem, Problem


class FoliotApiError(Exception):
    """`message` says what happened, `hint` what to do next; `code` is stable, and `request_id` leads into the server's log."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        hint: str | None = None,
        errors: tuple[FieldProblem, ...] = (),
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status  # None: the server did not answer
        self.hint = hint
        self.errors = errors
        self.request_id = request_id

    def __str__(self) -> str:
        """All that a person needs who sees nothing but a traceback."""
        fields = (
            f"{each.pointer}: {each.message}{_after(each.hint)}" for each in self.errors if each.pointer
        )
        return "\n  ".join((self.message + _after(self.hint), *fields))


class Invalid(FoliotApiError):
    """What was asked for cannot be read, or cannot be."""


class Unauthorized(FoliotApiError):
    """No key, or one that is not valid."""


class Denied(FoliotApiError):
    """This key may not do that."""


class NotFound(FoliotApiError):
    """There is no such thing, or it is not yours."""


class Conflict(FoliotApiError):
    """It is not in a state that allows this."""


class Stale(Conflict):
    """Somebody else has edited it since it was read."""


class RateLimited(FoliotApiError):
    """Too many requests."""

    retry_after: float | None = None  # seconds


class Unavailable(FoliotApiError):
    """Foliot cannot work right now."""


class Unreachable(Unavailable):
    """No answer at all."""


class Untrusted(Unreachable):
    """Who answers cannot show that it is who we meant to ask; nothing was sent."""


class Unreadable(FoliotApiError):
    """An answer that this client does not understand."""


BY_STATUS: Mapping[int, type[FoliotApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Stale,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    428: Stale,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refused(answer: httpx2.Response) -> FoliotApiError:
    """The error in an answer whose body has been read."""
    problem = _problem(answer)
    found = BY_STATUS.get(answer.status_code, FoliotApiError)(
        problem.message,
        code=problem.code,
        status=answer.status_code,
        hint=problem.hint,
        errors=problem.errors,
        request_id=problem.request_id,
    )
    if isinstance(found, RateLimited):
        found.retry_after = retry_after(answer)
    return found


def retry_after(answer: httpx2.Response) -> float | None:
    """Seconds. The other form, a date, is not what Foliot sends."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def unreachable(url: str, error: httpx2.TransportError) -> Unreachable:
    if (why := mistrust(error)) is not None:
        return Untrusted(
            f"The certificate of {url} is not trusted: {why}.",
            code="untrusted",
            hint="Of an authority of your own, name the certificate with FOLIOT_CA_FILE, or --ca of `foliot host`. The name in "
            "the address must be one that the certificate is for.",
        )
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        message = f"No Foliot answers at {url}: {_reason(error)}."
        hint = "Start one with `foliot serve`, or name another with FOLIOT_API_URL or url=."
    elif isinstance(error, httpx2.TimeoutException):
        message = f"Foliot at {url} did not answer in time."
        hint = "It may still do what was asked. A longer timeout= gives it more time."
    else:
        message = f"The connection to Foliot at {url} broke: {_reason(error)}."
        hint = "Was it stopped or restarted? What was asked may have been done all the same."
    return Unreachable(message, code="unreachable", hint=hint)


def mistrust(error: BaseException | None) -> str | None:
    """What is wrong with the certificate, where that is what ended it."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message.rstrip(".") or "it could not be checked"
        error = error.__cause__ or error.__context__
    return None


def unreadable(url: str, why: str) -> Unreadable:
    hint = "Is it Foliot that answers there, and not of a much newer version than this client?"
    return Unreadable(f"The answer from {url} cannot be understood: {why}", code="unreadable", hint=hint)


@dataclass(frozen=True, slots=True)
class _Told:
    message: str
    code: str
    hint: str | None = None
    errors: tuple[FieldProblem, ...] = ()
    request_id: str | None = None


def _problem(answer: httpx2.Response) -> _Told:
    try:
        told = Problem.model_validate_json(answer.content, extra="ignore")
    except ValidationError:  # a proxy speaks, not Foliot
        message = f"{answer.url} answered {answer.status_code} {answer.reason_phrase}".rstrip() + "."
        return _Told(message, "error", request_id=answer.headers.get("X-Request-Id"))
    whole = next((each.hint for each in told.errors if not each.pointer and each.hint), None)
    return _Told(told.detail, told.code, whole, tuple(told.errors), told.request_id)


def _reason(error: Exception) -> str:
    """The innermost sentence: 'Connection refused' rather than 'All connection attempts failed'."""
    while (inner := error.__cause__ or error.__context__) is not None and isinstance(inner, Exception):
        if isinstance(inner, ExceptionGroup):
            inner = inner.exceptions[0]
        error = inner
    if isinstance(error, ssl.SSLError):  # its errno is no number of the system's
        return "what answers there does not speak TLS, or not as we do"
    if (
        isinstance(error, OSError) and error.errno and error.errno > 0
    ):  # asyncio puts words of its own into strerror
        return os.strerror(error.errno)
    return str(error).rstrip(".") or type(error).__name__


def _after(hint: str | None) -> str:
    return f" {hint}" if hint else ""
