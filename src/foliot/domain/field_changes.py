"""Compare two JSON objects field by field. A list counts as one value, so a change shows the whole list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A changed field. `path` is a JSON pointer; a missing value is None."""

    path: str
    before: Any
    after: Any


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], under: str = ""
) -> Iterator[ChangedField]:
    """Compare the objects. Changes follow the order of `after`; removed fields come last."""
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        path = f"{under}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, path)
        elif old != new or type(old) is not type(new):  # Python treats 1 and true as equal; JSON does not
            yield ChangedField(path, old, new)
