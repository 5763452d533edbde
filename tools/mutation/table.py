"""The table of planted bugs: the `.toml` files beside this module."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Where a part of a file ends: the next query of an SQL file, the next line of a module without indentation.
_NEXT_PART = {".sql": re.compile(r"^-- name:", re.MULTILINE), ".py": re.compile(r"^[^\s)#]", re.MULTILINE)}


class StaleBugError(Exception):
    """The text that a bug replaces is no longer in its file, or there more than once."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One change of one file. `within` names the part of the file: a query, or the line that begins a function or class."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    effect: str
    table: str
    within: str | None = None
    survives: str | None = None  # why no test can notice it

    def apply(self, text: str) -> str:
        """Return the text of the file with the bug in it."""
        start, end = self._part(text)
        part = text[start:end]
        if (count := part.count(self.old)) != 1:
            place = self.file if self.within is None else f"{self.file} within {self.within!r}"
            raise StaleBugError(f"{self.name}: {self.old!r} occurs {count} times in {place}")
        return text[:start] + part.replace(self.old, self.new) + text[end:]

    def matches(self, pattern: str) -> bool:
        """Return whether a name, a table or a file on the command line means this bug."""
        return any(fnmatch(each, pattern) for each in (self.name, self.table, self.file))

    def _part(self, text: str) -> tuple[int, int]:
        if self.within is None:
            return 0, len(text)
        found = list(re.finditer(rf"^{re.escape(self.within)}(?!\w)", text, re.MULTILINE))
        if len(found) != 1:
            raise StaleBugError(f"{self.name}: {self.within!r} begins {len(found)} lines of {self.file}")
        start = found[0].start()
        following = _NEXT_PART[Path(self.file).suffix].search(text, found[0].end())
        return start, len(text) if following is None else following.start()


def load_bugs(folder: Path = HERE) -> list[Bug]:
    found: list[Bug] = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["bug"]:
            entry["tests"] = tuple(entry["tests"])
            found.append(Bug(**entry, table=path.stem))
    return found


def select_bugs(bugs: Sequence[Bug], patterns: Sequence[str]) -> list[Bug]:
    """Return the bugs that one of the patterns means; all of them without a pattern."""
    for pattern in patterns:
        if not any(bug.matches(pattern) for bug in bugs):
            raise SystemExit(
                f"No planted bug, table or file matches {pattern!r}; `./dev mutate --list` shows them."
            )
    return [bug for bug in bugs if not patterns or any(bug.matches(each) for each in patterns)]
