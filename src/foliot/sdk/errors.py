"""Errors of the server and of the connection, in one tree that mirrors problem+json.

FoliotApiError
├── Invalid           the request is not valid: 400, 413, 415, 422
├── Unauthorized      no key, or not a valid one: 401
├── Denied            the key lacks permission: 403
├── NotFound          not found, or not visible to you: 404
├── Conflict          the present state does not allow it: 409
│   └── Stale         it was changed since it was read: 412, 428
├── RateLimited       too many requests; `retry_after` says how long to wait: 429
├── Unavailable       the server cannot work right now: 502, 503, 504
│   └── Unreachable   no response
│       └── Untrusted the server's certificate is not trusted
└── Unreadable        a response that this client does not understand
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from foliot.wire.shape import FieldProblem, Problem

if TYPE_CHECKING:
    import httpx2


class FoliotApiError(Exception):
    """`message` is the problem, `hint` the remedy. `code` is stable; `request_id` is in the server's log."""

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
        self.status = status  # None: there was no response
        self.hint = hint
        self.errors = errors
        self.request_id = request_id

    def __str__(self) -> str:
        """Return message, hint and field errors, for tracebacks."""
        fields = (
            f"{each.pointer}: {each.message}{_with_space(each.hint)}" for each in self.errors if each.pointer
        )
        return "\n  ".join((self.message + _with_space(self.hint), *fields))


class Invalid(FoliotApiError):
    """The request is not valid."""


class Unauthorized(FoliotApiError):
    """There is no key, or it is not valid."""


class Denied(FoliotApiError):
    """The key lacks permission."""


class NotFound(FoliotApiError):
    """The object does not exist, or is not visible to you."""


class Conflict(FoliotApiError):
    """The present state of the object does not allow this."""


class Stale(Conflict):
    """The object was changed since it was read."""


class RateLimited(FoliotApiError):
    """Too many requests."""

    retry_after: float | None = None  # seconds


class Unavailable(FoliotApiError):
    """The server cannot work right now."""


class Unreachable(Unavailable):
    """The server did not respond."""


class Untrusted(Unreachable):
    """The server's certificate is not trusted; nothing was sent."""


class Unreadable(FoliotApiError):
    """This client does not understand the response."""


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


def error_from_response(answer: httpx2.Response) -> FoliotApiError:
    """Return the error in a response whose body has been read."""
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
    """Return Retry-After in seconds. Foliot never sends the other form, a date."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def unreachable_error(url: str, error: Exception) -> Unreachable:
    import httpx2  # noqa: PLC0415  # a request that is answered may do without it

    if (why := certificate_problem(error)) is not None:
        return Untrusted(
            f"The certificate of {url} is not trusted: {why}.",
            code="untrusted",
            hint="For your own authority, set FOLIOT_CA_FILE to its certificate, or use --ca of `foliot host`. The host name "
            "in the URL must match the certificate.",
        )
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        message = f"No Foliot server at {url}: {_reason(error)}."
        hint = "Start one with `foliot serve`, or use another with FOLIOT_API_URL or url=."
    elif isinstance(error, httpx2.TimeoutException):
        message = f"Foliot at {url} did not answer in time."
        hint = "It may still execute the request. A longer timeout= gives it more time."
    else:
        message = f"The connection to Foliot at {url} broke: {_reason(error)}."
        hint = "The server may have been stopped or restarted. It may have executed the request."
    return Unreachable(message, code="unreachable", hint=hint)


def certificate_problem(error: BaseException | None) -> str | None:
    """Return the problem with the certificate, if that caused the error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message.rstrip(".") or "it could not be verified"
        error = error.__cause__ or error.__context__
    return None


def unreadable_error(url: str, why: str) -> Unreadable:
    hint = "Check that the URL is that of a Foliot server, and that this client is not much older."
    return Unreadable(f"Cannot read the response from {url}: {why}", code="unreadable", hint=hint)


@dataclass(frozen=True, slots=True)
class _ProblemFields:
    message: str
    code: str
    hint: str | None = None
    errors: tuple[FieldProblem, ...] = ()
    request_id: str | None = None


def _problem(answer: httpx2.Response) -> _ProblemFields:
    try:
        problem = Problem.model_validate_json(answer.content, extra="ignore")
    except ValidationError:  # from a proxy, not from Foliot
        message = f"{answer.url} answered {answer.status_code} {answer.reason_phrase}".rstrip() + "."
        return _ProblemFields(message, "error", request_id=answer.headers.get("X-Request-Id"))
    whole = next((each.hint for each in problem.errors if not each.pointer and each.hint), None)
    return _ProblemFields(problem.detail, problem.code, whole, tuple(problem.errors), problem.request_id)


def _reason(error: Exception) -> str:
    """Return the innermost message: 'Connection refused' rather than 'All connection attempts failed'."""
    while (inner := error.__cause__ or error.__context__) is not None and isinstance(inner, Exception):
        if isinstance(inner, ExceptionGroup):
            inner = inner.exceptions[0]
        error = inner
    if isinstance(error, ssl.SSLError):  # its errno is not a system error number
        return "the server does not speak TLS, or no common version"
    if isinstance(error, OSError) and error.errno and error.errno > 0:  # asyncio replaces strerror
        return os.strerror(error.errno)
    return str(error).rstrip(".") or type(error).__name__


def _with_space(hint: str | None) -> str:
    return f" {hint}" if hint else ""
