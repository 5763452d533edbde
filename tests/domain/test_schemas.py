"""Which schemas are taken from afar: finite and small ones."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.schemas import DEEPEST, HEAVIEST, MOST_BYTES, problem_of
from foliot.handlers import registry

TEXT = {"type": "string"}


def doubling(levels: int) -> dict[str, Any]:
    """Small to write, 2 ** levels to check."""
    parts = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{levels}": TEXT}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"source": TEXT}, "required": ["source"]},
        {"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}}, "$defs": {"A": TEXT}},
        {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": TEXT}},
        {"$ref": "#/anyOf/1", "anyOf": [TEXT, TEXT]},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#/anyOf/\u00b2", "anyOf": [TEXT]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"id": TEXT, "$schema": TEXT}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema"},
        doubling(6),
        nested(DEEPEST - 1),
    ],
)
def test_what_is_finite_and_small_is_taken(schema: dict[str, Any]) -> None:
    assert problem_of(schema) is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$defs": {"A": {"$ref": "#/$defs/A"}}}, "refers to itself"),
        ({"properties": {"next": {"$ref": "#/properties/next"}}}, "refers to itself"),
        (
            {"properties": {"definitions": {"$ref": "#/$defs/p0"}}, "$defs": doubling(30)["$defs"]},
            "more than",
        ),
        (doubling(30), "refers to itself, or has more than"),
        ({"enum": list(range(HEAVIEST))}, "more than"),
        ({"description": "x" * MOST_BYTES}, "bytes as JSON"),
        (nested(DEEPEST + 1), "nested deeper"),
        (nested(5_000), "nested deeper"),
        ({"$ref": "https://example.test/schema"}, "does not lead into its own parts"),
        ({"$ref": "#"}, "does not lead into its own parts"),
        ({"$ref": 7}, "does not lead into its own parts"),
        ({"allOf": [{"$dynamicRef": "#a"}]}, "$dynamicRef"),
        ({"$id": "https://example.test"}, "$id"),
        ({"$ref": "#/%24defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/%24defs/A"}] * 2}}}, "percent sign"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "https://example.test"}, "of a draft"),
    ],
)
def test_what_could_take_for_ever_is_not(schema: dict[str, Any], why: str) -> None:
    reported = problem_of(schema)
    assert reported is not None
    assert why in reported


def test_every_type_that_comes_with_foliot_can_be_reported() -> None:
    found = {name: problem_of(each.config_schema) for name, each in registry.describe_types().items()}
    assert set(found.values()) == {None}, found
