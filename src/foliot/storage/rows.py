"""Turn result rows into typed values.

The columns of a query become the fields of a dataclass or NamedTuple by name; a column named `holder.id` becomes the field `id`
of the nested value `holder`. Field types say how to read a column: an Enum from its value, a tuple or frozenset from an
array, a dataclass from JSON. A query that lacks a required field, or returns a column without a field, is an error.
Any other type (an id, a number, an instant) reads the only column of the query.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from foliot.storage.codec import decode

Values = Sequence[Any]
Convert = Callable[[Any], Any]
Reader = Callable[[Values], Any]


@lru_cache(maxsize=1024)
def row_reader(kind: Any, columns: tuple[bytes | None, ...]) -> Reader:
    """Return the function that makes a value of `kind` from a row with these columns, named as libpq does."""
    names = [name.decode() for name in columns if name is not None]
    if _is_record(kind):
        return _record_reader(kind, {name: index for index, name in enumerate(names)})
    if len(names) != 1:
        raise TypeError(f"{kind} is one value; the query returns {', '.join(names)}")
    return column_reader(kind, 0)


def column_reader(kind: Any, at: int) -> Reader:
    """Return the function that reads one column of a row as a value of `kind`: a dataclass from JSON."""
    convert = _converter(kind)
    return itemgetter(at) if convert is None else _column_reader(at, convert)


def _record_reader(kind: Any, columns: dict[str, int]) -> Reader:
    sources: dict[str, int | Reader] = {}  # of each field: a column to copy, or a function of the row
    hints = get_type_hints(kind)
    unused = set(columns)
    for name, has_default in _fields(kind):
        nested = {
            key.removeprefix(f"{name}."): at for key, at in columns.items() if key.startswith(f"{name}.")
        }
        unused -= {name, *(f"{name}.{key}" for key in nested)}
        if name in columns:
            convert = _converter(hints[name])
            sources[name] = columns[name] if convert is None else _column_reader(columns[name], convert)
        elif nested:
            sources[name] = _nested_reader(hints[name], nested)
        elif not has_default:
            raise TypeError(f"the query returns no column for {kind.__name__}.{name}")
    if unused:
        raise TypeError(f"{kind.__name__} has no field for {', '.join(sorted(unused))}")
    return _assembler(kind, sources)


def _assembler(kind: Any, sources: dict[str, int | Reader]) -> Reader:
    """Copy the plain columns in one C call: most need no conversion, and a page has thousands of them."""
    copy = itemgetter(*(source if isinstance(source, int) else 0 for source in sources.values()), 0)
    special = [(at, read) for at, read in enumerate(sources.values()) if not isinstance(read, int)]
    names = list(sources)
    is_positional = names == [name for name, _ in _fields(kind)][: len(names)]

    def read_row(row: Values) -> Any:
        *values, _ = copy(row)  # the extra index makes itemgetter return a tuple for a single field too
        for at, read in special:
            values[at] = read(row)
        return kind(*values) if is_positional else kind(**dict(zip(names, values, strict=True)))

    return read_row


def _nested_reader(hint: Any, columns: dict[str, int]) -> Reader:
    kind, is_optional = _without_none(hint)
    read = _record_reader(kind, columns)
    if not is_optional:
        return read
    found = tuple(columns.values())  # an outer join without a match leaves all of them NULL
    return lambda row: read(row) if any(row[at] is not None for at in found) else None


def _column_reader(at: int, convert: Convert) -> Reader:
    def read(row: Values) -> Any:
        value = row[at]
        return None if value is None else convert(value)

    return read


def _converter(hint: Any) -> Convert | None:
    """Return how to read a column of this type; None where the driver's value is the field's value."""
    kind, _ = _without_none(hint)
    while isinstance(kind, NewType):
        kind = kind.__supertype__
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        if dataclasses.is_dataclass(get_args(kind)[0]):  # from a JSON array
            return lambda value: decode(kind, value)
        convert: Convert = origin
        return convert
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Enum):
        return kind
    return (lambda value: decode(kind, value)) if dataclasses.is_dataclass(kind) else None


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    members = [member for member in get_args(hint) if member is not types.NoneType]
    return (members[0] if len(members) == 1 else hint), len(members) < len(get_args(hint))


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _fields(kind: Any) -> list[tuple[str, bool]]:
    """Return each field's name and whether it has a default."""
    if not dataclasses.is_dataclass(kind):
        return [(name, name in kind._field_defaults) for name in kind._fields]
    missing = dataclasses.MISSING
    return [
        (field.name, field.default is not missing or field.default_factory is not missing)
        for field in dataclasses.fields(kind)
    ]
