"""Compare two JSON objects field by field. A list counts as one value, so a change shows the whole list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ChangedField:
    """`path` is a JSON pointer. A field that was not there before, or is there no more, is None on that side."""

    path: str
    before: Any
    after: Any


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], under: str = ""
) -> Iterator[ChangedField]:
    """In the order of `after`; what is gone comes last."""
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        path = f"{under}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, path)
        elif old != new or type(old) is not type(
            new
        ):  # 1 and true are equal in Python, and two things in JSON
            yield ChangedField(path, old, new)
