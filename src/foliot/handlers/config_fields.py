"""Fields that configurations of several handlers share. Configs are checked when a job is written; a worker checks again what it must."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from foliot.wire.shape import refusal

SECRET = {
    "type": "object",
    "properties": {"secret": {"type": "string"}},
    "required": ["secret"],
    "additionalProperties": False,
}


def is_secret(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["secret"] and isinstance(value["secret"], str)


def _text(value: Any) -> Any:
    """Accept text, or the name of a secret whose value is known only when the job runs."""
    if not (isinstance(value, str) or is_secret(value)):
        raise refusal(
            "text",
            "This must be text, or the name of a secret.",
            "Names of secrets stand in an object, under secret.",
        )
    return value


def _secret(value: Any) -> Any:
    if _text(value) is value and isinstance(value, str):
        raise refusal(
            "secret", "This must name a secret.", "Names of secrets stand in an object, under secret."
        )
    return value


_TEXT_OR_SECRET = {"anyOf": [{"type": "string"}, SECRET]}
Text = Annotated[Any, BeforeValidator(_text), WithJsonSchema(_TEXT_OR_SECRET)]
Secret = Annotated[Any, BeforeValidator(_secret), WithJsonSchema(SECRET)]
