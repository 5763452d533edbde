"""What the configurations of our own handlers look like. Checked when a job is written; a worker checks what it must all the same."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)

from foliot.domain.bridge_policy import DEFAULT_PREFIX, DEFAULT_QUEUE
from foliot.wire.shape import Shape, refusal

_CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NAME = re.compile(r"[^\s:\x00-\x1f]+")
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


def _word(value: str) -> str:
    if "\0" in value:
        raise refusal("word", "Text for a program cannot hold a NUL character.")
    return value


def _word_or_secret(value: Any) -> Any:
    return _word(value) if isinstance(value, str) else value


def _variable(name: str) -> str:
    if name in _NOT_GIVEN or name.startswith(("LD_", "FOLIOT_")):
        raise refusal(
            "variable",
            f"{name} cannot be given to a command.",
            "It would change which programs and libraries are found, or the run's own fields. A worker's setting "
            "command_env lets variables of its own through.",
        )
    return name


# What decides which code runs; those of the dynamic linker besides, which all begin alike, and our own.
_NOT_GIVEN = frozenset({"PATH", "BASH_ENV", "ENV", "IFS", "GCONV_PATH"})
Word = Annotated[str, Field(max_length=65_536), AfterValidator(_word)]
Variable = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"), AfterValidator(_variable)
]


class CommandConfig(Shape):
    argv: list[Word] = Field(
        min_length=1,
        max_length=1_000,
        description="The program and what it is given, word by word; no shell reads them.",
        examples=[["/usr/local/bin/backup", "--full"]],
    )
    env: dict[Variable, Annotated[Text, AfterValidator(_word_or_secret)]] = Field(
        default={}, max_length=200, description="Variables beside those that the worker lets through."
    )
    cwd: Annotated[Word, Field(pattern=r"^/", max_length=4_000)] | None = Field(
        default=None, description="Folder to start in, from the root on; the worker's where left out."
    )
    stdin: Literal["input", "none"] = Field(
        default="input", description="What it reads: the run's input as JSON, or nothing."
    )
    success: list[Annotated[int, Field(ge=0, le=255)]] = Field(
        default=[], max_length=256, description="Exit codes that count as success; 0 where left out."
    )


def _name(value: str) -> str:
    """BullMQ builds keys of Redis from such names and divides them by colons, and so do others."""
    if not _NAME.fullmatch(value):
        raise refusal(
            "name", "This is no name that every engine can take.", "It has no blanks and no colons."
        )
    return value


def _function(value: str) -> str:
    if not _DOTTED.fullmatch(value):
        raise refusal(
            "function",
            "This names no function.",
            "Write it as package.module.function, such as shop.jobs.sync.",
        )
    return value


Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_name)]
QueueName = Annotated[
    Name,
    Field(
        description="The engine's queue; {workspace} stands for the slug of the workspace.",
        examples=["jobs-acme"],
    ),
]
Arguments = Annotated[
    Literal["keywords", "input"],
    Field(
        description="keywords: each key of the run's input is an argument; input: all of it is the only argument."
    ),
]
HANDING = "handing"  # in the context of a validation: what may be handed over, and the slug of the workspace


def _allowed(value: str, info: ValidationInfo) -> str:
    handing, slug = (info.context or {}).get(HANDING, (None, ""))
    if handing is None:
        return value
    if info.field_name == "queue":
        found = handing.refusal_of_queue(value, slug, info.data.get("prefix", DEFAULT_PREFIX))
    else:
        found = handing.refusal_of_task(info.field_name, value)
    if found is not None:
        raise refusal("handing", found.message, found.hint)
    return value


Task = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_allowed)]
AllowedQueue = Annotated[QueueName, AfterValidator(_allowed), Field(validate_default=True)]


class CeleryConfig(Shape):
    task: Task = Field(examples=["shop.tasks.sync"])
    queue: AllowedQueue = DEFAULT_QUEUE
    arguments: Arguments = "keywords"


class RqConfig(Shape):
    function: Annotated[Task, AfterValidator(_function)] = Field(examples=["shop.tasks.sync"])
    queue: AllowedQueue = DEFAULT_QUEUE
    arguments: Arguments = "keywords"
    serializer: Literal["pickle", "json"] = Field(
        default="pickle", description="The one that the workers of this queue use; pickle is RQ's own choice."
    )


class BullmqConfig(Shape):
    name: Task = Field(examples=["sync"], description="The job's name; its data is the run's input.")
    prefix: Name = Field(default=DEFAULT_PREFIX, description="Of all keys that the queue has in Redis.")
    queue: AllowedQueue = DEFAULT_QUEUE  # after the prefix, which is judged with it
