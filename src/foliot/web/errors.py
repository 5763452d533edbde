"""Errors on the wire: RFC 9457 problem+json with our `code`, `errors[]` and `request_id`.

The only place that knows that Conflict is 409. Sentences come from the errors themselves, so that API, CLI and
console say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from foliot.domain.errors import (
    Conflict,
    Denied,
    FoliotError,
    Invalid,
    KeyInUse,
    NotFound,
    QuotaExceeded,
    StaleRevision,
    Unavailable,
)
from foliot.wire.shape import MEDIA_TYPE, did_you_mean, hint_of, pointer, sentence_of

STATUS: Mapping[type[FoliotError], HTTPStatus] = {
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    StaleRevision: HTTPStatus.PRECONDITION_FAILED,
    Denied: HTTPStatus.FORBIDDEN,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
# Errors of the framework, in our words.
REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("malformed", "The request could not be read."),
    401: ("unauthenticated", "This needs a valid API key."),
    404: ("not_found", "There is no such thing here."),
    405: ("method_not_allowed", "This address does not take that method."),
    408: ("too_slow", "The request did not arrive in time."),
    413: ("too_large", "The request is too large."),
    415: ("unsupported_media_type", "The body must be application/json."),
    429: ("rate_limited", "Too many requests; Retry-After says when the next one passes."),
    503: ("overloaded", "The server has more requests than it can answer now."),
}


MOST_ERRORS = 100  # in one response: it must not outgrow the request


class Refused(HTTPException):
    """A refusal of the edge, before any service is called."""

    def __init__(
        self, status: int, why: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, why, dict(headers or {}))
        self.why = why
        self.hint = hint


def install(app: FastAPI) -> None:
    app.add_exception_handler(FoliotError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, refused)


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    *,
    errors: Iterable[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "errors": list(islice(errors, MOST_ERRORS)),
        "request_id": request.scope.get("state", {}).get("request_id"),
        **(more or {}),
    }
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def internal_error(request: Request) -> JSONResponse:
    """Answer 500 without details. The request id leads to the log line with the traceback."""
    detail = "Foliot failed at this; its log holds the reason under this request id."
    return problem(request, 500, "internal", detail)


def status_of(error: FoliotError) -> HTTPStatus:
    """Return the status of the nearest class in the error tree that has one."""
    return next(
        (STATUS[each] for each in type(error).__mro__ if each in STATUS), HTTPStatus.INTERNAL_SERVER_ERROR
    )


async def refused(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal of the framework or of the edge."""
    assert isinstance(error, HTTPException)
    code, detail = REFUSALS.get(error.status_code, ("error", HTTPStatus(error.status_code).phrase + "."))
    errors: list[dict[str, Any]] = []
    if isinstance(error, Refused):
        detail = error.why
        errors = [{"pointer": "", "message": error.why, "hint": error.hint}] if error.hint else []
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = request.app.state.addresses.allowed(request.url.path) or ""
    return problem(request, error.status_code, code, detail, errors=errors, headers=headers)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FoliotError)
    errors = [
        {"pointer": each.pointer or "", "message": each.message, "hint": each.hint}
        for each in error.parts or (error,)
        if each.pointer or each.hint
    ]
    status = status_of(error)
    is_passing = status == HTTPStatus.SERVICE_UNAVAILABLE or isinstance(error, KeyInUse)
    headers = {"Retry-After": "1"} if is_passing else {}
    if isinstance(error, StaleRevision) and error.revision is not None:
        headers["ETag"] = getattr(request.state, "etag", f'"{error.revision}"')
    more = None
    if isinstance(error, QuotaExceeded):
        more = {"quota": {"name": error.quota, "limit": error.limit, "used": error.used}}
    return problem(request, status, error.code, error.message, errors=errors, headers=headers, more=more)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return problem(request, 400, "malformed", "The body is not JSON.")
    errors = field_problems(found[:MOST_ERRORS])
    return problem(request, 422, "invalid", summarize_errors(len(found)), errors=errors)


SENTENCES: Mapping[str, str] = {
    "missing": "This field is needed.",
    "string_type": "This must be text.",
    "int_type": "This must be a whole number.",
    "int_parsing": "This must be a whole number.",
    "int_from_float": "This must be a whole number.",
    "float_type": "This must be a number.",
    "finite_number": "This must be a number.",
    "bool_type": "This must be true or false.",
    "list_type": "This must be a list.",
    "dict_type": "This must be an object.",
    "model_type": "This must be an object.",
    "model_attributes_type": "This must be an object.",
}
KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def field_problems(errors: Iterable[Any]) -> list[dict[str, Any]]:
    """Return all problems at once, so that a caller can correct them in one round."""
    return [
        {"pointer": _where(each["loc"]), "message": _message(each), "hint": _hint(each)} for each in errors
    ]


def summarize_errors(count: int) -> str:
    few = "1 field is not as it" if count == 1 else f"{count} fields are not as they"
    return f"{few} should be."


def _where(location: tuple[int | str, ...]) -> str:
    """Return a pointer into the body or the name of the parameter. Services use the same form, because they do not know the origin of a value."""
    return pointer(location[1:])


def _message(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing" and error["loc"] == ("body",):
        return "The request has no body; this needs a JSON object."
    if kind in SENTENCES:
        got = KINDS.get(type(error["input"])) if kind.endswith("_type") else None
        if error["input"] is None and kind != "missing":
            got = "null"
        return SENTENCES[kind] if got is None else f"{SENTENCES[kind][:-1]}, not {got}."
    match kind:
        case "literal_error" | "enum":
            return f"This must be {_choices(context)}."
        case "greater_than_equal":
            return f"This must be at least {context['ge']:,}."
        case "less_than_equal":
            return f"This must be at most {context['le']:,}."
        case "string_too_short" | "too_short":
            return "This must not be empty."
        case "string_too_long" | "too_long":
            what = "characters" if kind.startswith("string") else "items"
            return f"This must have at most {context['max_length']:,} {what}."
        case "string_pattern_mismatch":
            return sentence_of(context["pattern"])
        case _:
            return error["msg"]


def _hint(error: ErrorDetails) -> str | None:
    given = error["input"]
    if error["type"] in {"literal_error", "enum"} and isinstance(given, str):
        return did_you_mean(
            given, _choices(error.get("ctx", {})).replace("'", "").replace(" or ", ", ").split(", ")
        )
    return hint_of(error)


def _choices(context: Mapping[str, Any]) -> str:
    return str(context.get("expected", "one of the known words"))
