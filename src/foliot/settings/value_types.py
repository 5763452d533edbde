"""Value types of settings: how each is parsed from text or TOML, and the sentence that a refusal quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

PARSED = "parsed"  # validation context: the values come from another process that has parsed them


@dataclass(frozen=True, slots=True)
class ValueType:
    """Metadata of a pydantic field. `parse` takes text or a TOML value and raises ValueError."""

    word: str  # in the reference's table
    must_be: str  # completes "it must be …"
    parse: Callable[[Any], Any]
    is_url: bool = False  # its password is masked, the rest is shown

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def parse(raw: Any, info: ValidationInfo) -> Any:
            return raw if info.context == PARSED else self.parse(raw)

        return core_schema.with_info_before_validator_function(parse, handler(source))


def whole_number(low: int, high: int) -> ValueType:
    def parse(raw: Any) -> int:
        if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 20:
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
            raise ValueError
        return raw

    return ValueType("whole number", f"a whole number from {low} to {high}", parse)


def whole_numbers(low: int, high: int) -> ValueType:
    """Read one or more numbers, separated by commas."""
    one = whole_number(low, high)

    def parse(raw: Any) -> tuple[int, ...]:
        items = raw if isinstance(raw, list | tuple) else _split(raw)
        numbers = tuple(one.parse(each.strip() if isinstance(each, str) else each) for each in items)
        if not numbers:
            raise ValueError
        return numbers

    return ValueType("whole numbers", f"whole numbers from {low} to {high}, separated by commas", parse)


def octal(most: int) -> ValueType:
    def parse(raw: Any) -> int:
        text = raw.strip() if isinstance(raw, str) else ""
        number = int(text.removeprefix("0o") or "x", 8)
        if not 0 <= number <= most:
            raise ValueError
        return number

    return ValueType("text", f"an octal number between 0 and {most:o}, such as 027", parse)


def one_of(*words: str) -> ValueType:
    def parse(raw: Any) -> str:
        if not isinstance(raw, str) or raw.lower() not in words:
            raise ValueError
        return raw.lower()

    return ValueType("word", f"{', '.join(words[:-1])} or {words[-1]}", parse)


def some_of(*words: str) -> ValueType:
    """Read one or more of the words, in the order given here."""

    def parse(raw: Any) -> tuple[str, ...]:
        named = {word.lower() for word in _split(raw)}
        if not named or named - set(words):
            raise ValueError
        return tuple(word for word in words if word in named)

    return ValueType("words", f"one or more of {', '.join(words)}, separated by commas", parse)


def url(*schemes: str) -> ValueType:
    prefixes = tuple(f"{scheme}://" for scheme in schemes)

    def parse(raw: Any) -> str:
        if not isinstance(raw, str) or not raw.startswith(prefixes):
            raise ValueError
        return raw

    return ValueType("address", f"an address that starts with {' or '.join(prefixes)}", parse, is_url=True)


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError  # noqa: TRY004  # pydantic collects ValueError only
    return raw


def _path(raw: Any) -> Path:
    if isinstance(raw, Path):
        return raw
    if "\0" in _text(raw):
        raise ValueError
    try:
        return Path(raw).expanduser()
    except RuntimeError as unknown_user:
        raise ValueError from unknown_user


def _yes_or_no(raw: Any) -> bool:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or raw.lower() not in words:
        raise ValueError
    return words[raw.lower()]


def _postgres_url(raw: Any) -> str:
    """Refuse what libpq would misread: its errors quote parts of the password."""
    text = _text(raw)
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    if not text.isprintable() or " " in text or _BROKEN_ESCAPE.search(text):
        raise ValueError
    front, _, path = text.partition("://")[2].partition("/")
    hosts = front.partition("@")[2] if "@" in front else front
    hosts = hosts.partition("?")[0]
    if "@" in hosts + path.partition("?")[0] or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise ValueError
    return text


def _networks(raw: Any) -> tuple[str, ...]:
    names = _split(raw)
    return () if names == ("none",) else tuple(str(ip_network(name)) for name in names)


def _queues(raw: Any) -> tuple[str, ...]:
    names = _split(raw)
    if not names or ("*" in names and len(names) > 1):
        raise ValueError
    return names


def _variables(raw: Any) -> tuple[str, ...]:
    return _matching(_VARIABLE, raw)


def _packages(raw: Any) -> tuple[str, ...]:
    return _matching(_PACKAGE, raw)


def _patterns(raw: Any) -> tuple[str, ...]:
    names = _matching(_PATTERN, raw)
    if not names:
        raise ValueError
    return () if names == ("none",) else names


def _matching(pattern: re.Pattern[str], raw: Any) -> tuple[str, ...]:
    names = _split(raw)
    if not all(map(pattern.fullmatch, names)):
        raise ValueError
    return names


def _split(raw: Any) -> tuple[str, ...]:
    """Split text at commas, or take a list; each word once, in the order given."""
    parts = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
# Not FOLIOT_*: those variables may hold the database's password.
_VARIABLE = re.compile(r"(?!FOLIOT_)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_PATTERN = re.compile(r"[^\s\x00-\x1f]{1,500}")

TEXT = ValueType("text", "text", _text)
PATH = ValueType("path", "a path", _path)
YES_OR_NO = ValueType("yes or no", "yes or no", _yes_or_no)
NETWORKS = ValueType("networks", "networks such as 10.0.0.0/8, separated by commas, or none", _networks)
QUEUES = ValueType("names", "names of queues separated by commas, or * for all of them", _queues)
VARIABLES = ValueType("names", "names of environment variables separated by commas", _variables)
PACKAGES = ValueType("text", "names of Python packages separated by commas", _packages)
PATTERNS = ValueType(
    "text", "names or patterns separated by commas, where ** stands for anything, or none", _patterns
)
POSTGRES_URL = ValueType(
    "address",
    "an address such as postgresql://user:password@host:5432/database, "
    "in whose password % is written %25, @ %40, / %2F and a blank %20",
    _postgres_url,
    is_url=True,
)
REDIS_URL = url("redis", "rediss", "unix")
