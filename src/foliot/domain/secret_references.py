"""Find `{"secret": "name"}` in a configuration, and replace names by values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

KEY = "secret"


class Reference(NamedTuple):
    name: str
    pointer: str  # JSON pointer into the configuration, such as /headers/authorization


def may_refer(config: Mapping[str, Any]) -> bool:
    """Return whether the configuration can contain a reference. Most contain only text and numbers."""
    for value in config.values():
        if type(value) is dict or type(value) is list:
            return True
    return KEY in config


def references(config: Any, pointer: str = "") -> Iterator[Reference]:
    if isinstance(config, dict):
        if (name := name_in(config)) is not None:
            yield Reference(name, pointer)
            return
        for key, value in config.items():
            yield from references(value, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(config, list):
        for place, value in enumerate(config):
            yield from references(value, f"{pointer}/{place}")


def names(config: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(each.name for each in references(config)) if may_refer(config) else frozenset()


def resolved(config: Any, values: Mapping[str, str]) -> Any:
    """Return the configuration with secret values in place of names. Raises KeyError for an unknown name."""
    if isinstance(config, dict):
        name = name_in(config)
        return values[name] if name is not None else {key: resolved(it, values) for key, it in config.items()}
    if isinstance(config, list):
        return [resolved(each, values) for each in config]
    return config


def name_in(config: Mapping[str, Any]) -> str | None:
    """Return the name in an object with exactly this text field. Other objects are ordinary."""
    name = config.get(KEY) if len(config) == 1 else None
    return name if isinstance(name, str) else None
