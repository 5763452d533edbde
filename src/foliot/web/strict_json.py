"""A strict JSON parser. It refuses input that two programs could read differently, or that no database can store.

Python's own parser accepts NaN, keeps the last of two equal keys, reads 1e999 as infinity, and accepts NUL and unpaired surrogates.

Why: docs/decisions/601-strict-requests.md
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

LARGEST = 1 << 20  # bytes of body
DEEPEST = 32

_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


class InvalidJson(ValueError):
    """The body is not JSON, or ambiguous; the message says why."""


def read_json(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8: byte {error.start} cannot be read.") from None
    if _is_deep(raw):
        raise InvalidJson(f"The body is nested deeper than {DEEPEST} levels.")
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from None


def has_unstorable_text(value: Any) -> bool:
    """Return whether some text holds NUL or half a surrogate pair, which PostgreSQL cannot store."""
    match value:
        case str():
            return _UNKEEPABLE.search(value) is not None
        case dict():
            return any(has_unstorable_text(key) or has_unstorable_text(item) for key, item in value.items())
        case list():
            return any(has_unstorable_text(item) for item in value)
        case _:
            return False


def _is_deep(raw: bytes) -> bool:
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_TEXTS.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidJson(f"The body names {twice[:64]!a} twice in one object.")
    return made


def _constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is no number in JSON.")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidJson(f"{text[:32]} is too large for a number.")
    return number


def _integer(text: str) -> int:
    if len(text) > 1_000:
        raise InvalidJson("A whole number has at most 1,000 digits.")
    return int(text)
