"""Definitions and specs as they are stored, and the memory of specs already read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from foliot.domain.definition import Definition, Rules, Spec
from foliot.storage.codec import decode, dumps, encode, loads


def spec_text(spec: Spec) -> str:
    return dumps(spec)


@lru_cache(maxsize=50_000)
def rules_of(text: str) -> Rules:
    """Jobs with the same spec share one value, so a million jobs on a few thousand schedules are read a few thousand times."""
    return Rules(loads(Spec, text))


def definition_json(definition: Definition) -> dict[str, Any]:
    encoded: dict[str, Any] = encode(definition)
    return encoded


def definition_of(data: dict[str, Any]) -> Definition:
    found: Definition = decode(Definition, data)
    return found
