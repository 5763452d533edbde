"""How commands end: one table of exit codes, and which error ends with which. docs/reference/cli.md is made from it."""

from __future__ import annotations

from enum import IntEnum

from foliot.domain.errors import Conflict, Denied, FoliotError, Invalid, NotFound, Unavailable


class Exit(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REFUSED = 5
    UNREACHABLE = 6
    NO_KEY = 7
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "ok",
    Exit.FAILURE: "failure",
    Exit.USAGE: "usage",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict",
    Exit.REFUSED: "refused by policy",
    Exit.UNREACHABLE: "server unreachable",
    Exit.NO_KEY: "no valid key",
    Exit.INTERRUPTED: "interrupted",
}
CODES: tuple[tuple[type[FoliotError], Exit], ...] = (
    (Invalid, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Conflict, Exit.CONFLICT),
    (Denied, Exit.REFUSED),
    (Unavailable, Exit.UNREACHABLE),
)
# What a server answered with, by the HTTP status that its refusals have.
BY_STATUS = {
    400: Exit.USAGE,
    401: Exit.NO_KEY,
    403: Exit.REFUSED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    413: Exit.USAGE,
    415: Exit.USAGE,
    422: Exit.USAGE,
    428: Exit.CONFLICT,
    429: Exit.REFUSED,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}
# What never got that far, by the client's code for it.
BY_CODE = {
    "no_key": Exit.NO_KEY,
    "unreachable": Exit.UNREACHABLE,
    "untrusted": Exit.UNREACHABLE,
    "setting.invalid": Exit.USAGE,
    "invalid": Exit.USAGE,
}


def exit_of(error: FoliotError) -> Exit:
    return next((code for branch, code in CODES if isinstance(error, branch)), Exit.FAILURE)


def exit_of_answer(status: int | None, code: str) -> Exit:
    found = BY_CODE.get(code) if status is None else BY_STATUS.get(status)
    return found or Exit.FAILURE
