"""What the configurations of our own handlers look like. Checked when a job is written; a worker checks what it must all the same."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from foliot.wire.shape import Shape, refusal

_CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_HEADER = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"


def is_secret(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["secret"] and isinstance(value["secret"], str)


def _text(value: Any) -> Any:
    """Text, or the name of a secret in its place, known only when the job runs."""
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


def _call(value: str) -> str:
    if not _CALL.fullmatch(value):
        raise refusal(
            "call", "This names no function.", "Write it as package.module:function, such as shop.jobs:sync."
        )
    return value


SECRET = {
    "type": "object",
    "properties": {"secret": {"type": "string"}},
    "required": ["secret"],
    "additionalProperties": False,
}
_TEXT_OR_SECRET = {"anyOf": [{"type": "string"}, SECRET]}
Text = Annotated[Any, BeforeValidator(_text), WithJsonSchema(_TEXT_OR_SECRET)]
Secret = Annotated[Any, BeforeValidator(_secret), WithJsonSchema(SECRET)]
HeaderName = Annotated[str, StringConstraints(pattern=_HEADER, max_length=200)]


class PythonConfig(Shape):
    call: Annotated[str, AfterValidator(_call)] = Field(max_length=500, examples=["shop.jobs:sync"])
    secrets: dict[str, Secret] = Field(
        default={}, max_length=100, description="What the function finds in ctx.secrets, by these names."
    )
