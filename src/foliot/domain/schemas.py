"""Check JSON Schemas that remote workers send.

Validating against a schema costs time that its author controls. A schema is accepted only if it is finite and small with all
references followed.

Why: docs/decisions/307-job-type-schemas.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MOST_BYTES = 32 * 1024  # as JSON
DEEPEST = 20
HEAVIEST = 2_000  # parts, those behind a reference counted each time
# They address parts in ways that this module does not follow.
_ELSEWHERE = frozenset(
    {"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
)

_OLD = re.compile("draft-0?[0-5]\\b")


class SchemaTooLarge(Exception):
    """The schema is too large, or its size cannot be computed."""


def problem_of(schema: Mapping[str, Any]) -> str | None:
    """Return why the schema is refused, or None."""
    if _depth(schema) > DEEPEST:
        return f"The schema is nested deeper than {DEEPEST} levels."
    size = len(json.dumps(schema).encode())
    if size > MOST_BYTES:
        return f"The schema has {size:,} bytes as JSON; the most is {MOST_BYTES:,}."
    try:
        weight_of(schema)
    except SchemaTooLarge as error:
        return str(error)
    return None


def weight_of(schema: Mapping[str, Any]) -> int:
    """Count the parts of the schema, with parts behind a reference counted each time. Raises SchemaTooLarge."""
    weight, waiting = 0, [schema]
    while waiting:
        part = waiting.pop()
        weight += 1
        if weight > HEAVIEST:
            raise SchemaTooLarge(
                f"The schema refers to itself, or has more than {HEAVIEST:,} parts with all references followed."
            )
        if isinstance(part, Mapping):
            if named := _ELSEWHERE & part.keys():
                raise SchemaTooLarge(
                    f"The schema has {min(named)}; only $ref into its own parts is followed."
                )
            if isinstance(draft := part.get("$schema"), str) and _OLD.search(draft):
                raise SchemaTooLarge(
                    "The schema is of a draft before the sixth, in which `id` changes what $ref means."
                )
            if (reference := part.get("$ref")) is not None:
                if not isinstance(reference, str) or not reference.startswith("#/"):
                    raise SchemaTooLarge("The schema has a $ref that does not lead into its own parts.")
                if "%" in reference:  # it points to a place that is not followed
                    raise SchemaTooLarge(
                        "The schema has a $ref with a percent sign; write the name as it is."
                    )
                waiting.append(_at(schema, reference))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return weight


def _at(schema: Any, reference: str) -> Any:
    for word in reference[2:].split("/"):
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, Mapping):
            schema = schema.get(name)
        elif isinstance(schema, list) and name.isascii() and name.isdigit() and int(name) < len(schema):
            schema = schema[int(name)]
        else:
            return None
    return schema


def _depth(schema: Any) -> int:
    """Measure the depth level by level, only slightly beyond the limit: input may be as deep as Python can build."""
    level, depth = [schema], 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [
            each
            for part in level
            if isinstance(part, Mapping | list)
            for each in (part.values() if isinstance(part, Mapping) else part)
        ]
    return depth
