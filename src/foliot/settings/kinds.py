"""The kinds of values that settings have: how each is read from text or TOML, and what it must be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Protocol


class Kind(Protocol):
    """How one kind of value is read from text (environment, flag) or TOML. `must_be` completes "it must be …"."""

    @property
    def must_be(self) -> str: ...

    def read(self, raw: object, base: Path) -> Any:
        """The value, or ValueError. `base` is the folder that relative paths start from."""


@dataclass(frozen=True, slots=True)
class Text:
    must_be: str = "text"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str):
            raise ValueError  # noqa: TRY004  # one exception says "not that", whatever TOML held
        return raw


@dataclass(frozen=True, slots=True)
class Folder:
    must_be: str = "a path"

    def read(self, raw: object, base: Path) -> Path:
        if not isinstance(raw, str) or "\0" in raw:
            raise ValueError
        try:
            return base / Path(raw).expanduser()
        except RuntimeError as unknown_user:
            raise ValueError from unknown_user


@dataclass(frozen=True, slots=True)
class WholeNumber:
    low: int
    high: int

    @property
    def must_be(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, raw: object, base: Path) -> int:
        if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < 20:
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool) or not self.low <= raw <= self.high:
            raise ValueError
        return raw


@dataclass(frozen=True, slots=True)
class Octal:
    most: int

    @property
    def must_be(self) -> str:
        return f"an octal number between 0 and {self.most:o}, such as 027"

    def read(self, raw: object, base: Path) -> int:
        text = raw.strip() if isinstance(raw, str) else ""
        number = int(text.removeprefix("0o") or "x", 8)
        if not 0 <= number <= self.most:
            raise ValueError
        return number


@dataclass(frozen=True, slots=True)
class YesOrNo:
    must_be: str = "yes or no"

    def read(self, raw: object, base: Path) -> bool:
        words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, str) or raw.lower() not in words:
            raise ValueError
        return words[raw.lower()]


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    @property
    def must_be(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str) or raw.lower() not in self.words:
            raise ValueError
        return raw.lower()


@dataclass(frozen=True, slots=True)
class Url:
    schemes: tuple[str, ...]

    @property
    def must_be(self) -> str:
        return f"an address that starts with {' or '.join(f'{scheme}://' for scheme in self.schemes)}"

    def read(self, raw: object, base: Path) -> str:
        if not isinstance(raw, str) or not raw.startswith(tuple(f"{scheme}://" for scheme in self.schemes)):
            raise ValueError
        return raw


@dataclass(frozen=True, slots=True)
class PostgresUrl(Url):
    """As libpq reads it. What it would misread is refused here, because its errors quote pieces of the password."""

    schemes: tuple[str, ...] = ("postgresql", "postgres")

    @property
    def must_be(self) -> str:
        return (
            "an address such as postgresql://user:password@host:5432/database, "
            "in whose password % is written %25, @ %40, / %2F and a blank %20"
        )

    def read(self, raw: object, base: Path) -> str:
        url = Url.read(self, raw, base)  # super() does not survive slots
        if not url.isprintable() or " " in url or _BROKEN_ESCAPE.search(url):
            raise ValueError
        front, _, path = url.partition("://")[2].partition("/")
        hosts = front.partition("@")[2] if "@" in front else front
        hosts = hosts.partition("?")[0]
        if "@" in hosts + path.partition("?")[0] or not all(map(_HOST.fullmatch, hosts.split(","))):
            raise ValueError
        return url


@dataclass(frozen=True, slots=True)
class Networks:
    must_be: str = "networks such as 10.0.0.0/8, divided by commas, or none"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        names = _words(raw)
        return () if names == ("none",) else tuple(str(ip_network(name)) for name in names)


_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")


@dataclass(frozen=True, slots=True)
class Queues:
    must_be: str = "names of queues divided by commas, or * for all of them"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        names = _words(raw)
        if not names or ("*" in names and len(names) > 1):
            raise ValueError
        return names


@dataclass(frozen=True, slots=True)
class SomeOf:
    """One or more of these words, kept in the order given here."""

    words: tuple[str, ...]

    @property
    def must_be(self) -> str:
        return f"one or more of {', '.join(self.words)}, divided by commas"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        named = {word.lower() for word in _words(raw)}
        if not named or named - set(self.words):
            raise ValueError
        return tuple(word for word in self.words if word in named)


@dataclass(frozen=True, slots=True)
class Variables:
    must_be: str = "names of environment variables divided by commas"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        names = _words(raw)
        if not all(_VARIABLE.fullmatch(name) for name in names):
            raise ValueError
        return names


_VARIABLE = re.compile(
    r"(?!FOLIOT_)[A-Za-z_][A-Za-z0-9_]*", re.ASCII
)  # ours may hold what opens the database


@dataclass(frozen=True, slots=True)
class Packages:
    must_be: str = "names of Python packages divided by commas"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        names = _words(raw)
        if not all(_PACKAGE.fullmatch(name) for name in names):
            raise ValueError
        return names


_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Patterns:
    must_be: str = "names or patterns divided by commas, where ** stands for anything, or none"

    def read(self, raw: object, base: Path) -> tuple[str, ...]:
        names = _words(raw)
        if not names or any(not _PATTERN.fullmatch(name) for name in names):
            raise ValueError
        return () if names == ("none",) else names


_PATTERN = re.compile(r"[^\s\x00-\x1f]{1,500}")


def _words(raw: object) -> tuple[str, ...]:
    """Divided by commas, or a list already; each once, in the order given."""
    parts = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
