"""Values <-> canonical JSON: fields that have their default are left out, so equal values are equal text.

Dataclasses are objects, tuples and sets are lists, durations are seconds, instants, times of day and decimals text. In a union of
dataclasses the key `kind` names the member.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

T = TypeVar("T")


def dumps(value: Any, kind: Any = None) -> str:
    return json.dumps(encode(value, kind), separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def encode(value: Any, kind: Any = None) -> Any:
    """Encode a value. `kind` is its declared type, needed for a member of a union."""
    match value:
        case Enum():
            return value.value
        case bool() | int() | float() | str() | None:
            return value
        case timedelta():
            seconds = value.total_seconds()
            return int(seconds) if seconds == int(seconds) else seconds
        case datetime() | date() | time():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case frozenset():
            return sorted(encode(item) for item in value)
        case tuple() | list():
            return [encode(item, _item_kind(kind)) for item in value]
        case Mapping():
            return {key: encode(item) for key, item in value.items()}
        case _:
            return _encode_object(value, kind)


def loads(kind: type[T], text: str) -> T:
    found: T = decode(kind, json.loads(text))
    return found


def decode(kind: Any, data: Any) -> Any:
    """Decode JSON into a value of `kind`. Raise ValueError or TypeError for data that does not fit."""
    return None if data is None else _reader(kind)(data)


Reader = Callable[[Any], Any]


@lru_cache(maxsize=512)
def _reader(kind: Any) -> Reader:
    """Return the decoder of a declared type. `decode` handles None."""
    if isinstance(kind, NewType):
        return _reader(kind.__supertype__)
    if kind is Any:
        return _identity
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        members = [member for member in args if member is not types.NoneType]
        return _reader(members[0]) if len(members) == 1 else partial(_read_member, members)
    if origin in (tuple, frozenset):
        return partial(_read_items, origin, args[0])
    if origin is not None and issubclass(origin, Mapping):
        return dict
    if dataclasses.is_dataclass(kind):
        return _object_reader(kind)
    if kind is timedelta:
        return _seconds
    if kind in (datetime, date, time):
        reader: Reader = kind.fromisoformat
        return reader
    made: Reader = kind
    return made


def _identity(data: Any) -> Any:
    return data


def _seconds(data: float) -> timedelta:
    return timedelta(seconds=data)


def _read_member(members: list[Any], data: Any) -> Any:
    return decode(_member(members, data), data)


def _read_items(make: Any, kind: Any, data: Any) -> Any:
    return make(decode(kind, item) for item in data)


def _object_reader(make: Any) -> Reader:
    hints, readers = _hints(make), dict[str, Reader]()
    is_tagged = "kind" not in hints  # a tag, unless it is a field

    def read_object(data: Any) -> Any:
        if not isinstance(data, dict):
            raise TypeError(f"an object is expected, not {type(data).__name__}")
        if not readers:  # with the first object: a type may contain itself
            readers.update((name, _reader(kind)) for name, kind in hints.items())
        return make(
            **{
                name: None if item is None else readers[name](item)
                for name, item in data.items()
                if not (is_tagged and name == "kind")
            }
        )

    return read_object


def _encode_object(value: Any, kind: Any) -> dict[str, Any]:
    declared: Any = type(value)
    hints = _hints(declared)
    encoded = {"kind": _tag(declared)} if _is_union_of_objects(kind) else {}
    for field in dataclasses.fields(value):
        if not field.init:
            continue  # computed, not written
        item = getattr(value, field.name)
        default = (
            field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        )
        if item != default:
            encoded[field.name] = encode(item, hints[field.name])
    return encoded


def _is_union_of_objects(kind: Any) -> bool:
    return sum(dataclasses.is_dataclass(member) for member in get_args(kind)) > 1


def _member(members: list[Any], data: Any) -> Any:
    tag = data.get("kind") if isinstance(data, dict) else None
    return next((member for member in members if _tag(member) == tag), members[0])


def _item_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is tuple else None


@lru_cache(maxsize=256)
def _tag(kind: Any) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip(
        "_"
    )


@lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
