"""The base of all shapes: strict types, no unknown fields, and a hint at the field that was probably meant.

Why: docs/decisions/601-strict-requests.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from foliot import wire

UNKNOWN_FIELD = "unknown_field"
_ABSENT = object()
MOST_HINTS = 100  # each hint costs time, and a request may have thousands of unknown fields


class FromValue(BaseModel):
    """A model that is made of another value."""

    @classmethod
    def from_value(cls, source: object, **given: Any) -> Self:
        """Make the shape of a value: its fields are the attributes of the same name, except those that are given."""
        for name in cls.__pydantic_fields__:
            if name not in given and (value := getattr(source, name, _ABSENT)) is not _ABSENT:
                given[name] = value
        return cls(**given)


class Shape(FromValue):
    """Strict: text is not a number and 1 is not true, so that mistakes of a client are reported."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=wire.builds_on_first_use
    )

    @model_validator(mode="wrap")
    @classmethod
    def _say_which_was_meant(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if type(data) is cls:  # a part of an answer, built before and frozen
            return data
        try:
            return handler(data)
        except ValidationError as error:
            found = error.errors(include_url=False)
            details = [
                _with_hint(each, cls.model_fields if place < MOST_HINTS else ())
                for place, each in enumerate(found)
            ]
            raise ValidationError.from_exception_data(cls.__name__, details) from None


def hide_defaults(schema: dict[str, Any]) -> None:
    """Remove defaults from the description of a change: a field that is left out stays as it is."""
    for field in schema["properties"].values():
        field.pop("default", None)


def refusal(kind: str, message: str, hint: str | None = None) -> PydanticCustomError:
    """Return an error for a validator to raise, with the hint in its context. Braces are escaped: pydantic reads a template."""
    context = {} if hint is None else {"hint": hint}
    return PydanticCustomError(kind, _literal(message), context)


def hint_of(error: ErrorDetails) -> str | None:
    hint = error.get("ctx", {}).get("hint")
    return hint if isinstance(hint, str) else None


# What text must be, by the pattern that it must match.
_SENTENCES: dict[str, str] = {}


def described(pattern: str, sentence: str) -> str:
    """Return the pattern. `sentence` is the message for text that does not match it."""
    _SENTENCES[pattern] = sentence
    return pattern


def sentence_of(pattern: str) -> str:
    return _SENTENCES.get(pattern, f"This must match the pattern {pattern}.")


VISIBLE = described(r"\S", "This must have a visible character.")
ONE_LINE = described(
    r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$",
    "A name must be on one line and have a visible character.",
)
TRIMMED = described(r"^\S(.*\S)?$", "This must be on one line, without blanks at either end.")
LOWER_WORD = described(
    r"^[a-z][a-z0-9_.-]{0,63}$",
    "This must begin with a lower-case letter and have only lower-case letters, digits and _ . -, at most 64.",
)
SECRET_NAME = described(
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$",
    "The name of a secret has only letters, digits and _ . -, at most 100, and does not begin with . or -.",
)


def did_you_mean(wrong: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(wrong[:64].lower(), list(known), n=1, cutoff=0.6)
    return f'Did you mean "{close[0]}"?' if close else None


def pointer(location: Sequence[int | str]) -> str:
    """Return a JSON pointer (RFC 6901), without pydantic's names of union members."""
    parts = (str(part) for part in location if not _is_tag(part))
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def tag(kind: str) -> str:
    """Return the name of a union's member; `pointer` knows it by its brackets."""
    return f"({kind})"


def _is_tag(part: int | str) -> bool:
    """Also pydantic's mark for a wrong name instead of a wrong value."""
    return isinstance(part, str) and (part == "[key]" or (part.startswith("(") and part.endswith(")")))


def _with_hint(error: ErrorDetails, fields: Iterable[str]) -> InitErrorDetails:
    """Return the error, with a hint if it is an unknown field of this shape."""
    location = error["loc"]
    if error["type"] == "extra_forbidden" and len(location) == 1:
        name = str(location[0])
        known = sorted(fields)
        hint = did_you_mean(name, known) or (f"Known here: {', '.join(known)}." if known else None)
        kind = refusal(UNKNOWN_FIELD, f'There is no field "{_short(name)}" here.', hint)
    else:
        kind = PydanticCustomError(error["type"], _literal(error["msg"]), dict(error.get("ctx", {})))
    return InitErrorDetails(type=kind, loc=location, input=error["input"])


def _short(name: str) -> str:
    return name if len(name) <= 64 else name[:61] + "..."


def _literal(message: str) -> Any:
    """Escape braces: user text may contain them."""
    return message.replace("{", "(").replace("}", ")")


PAGE = 50
LONGEST_PAGE = 200
Item = TypeVar("Item", bound=Shape)


class Page(Shape, Generic[Item]):
    items: list[Item]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null at the end.")


def _only_if_counted(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name not in {"total", "more"}]


class CountedPage(Page[Item], Generic[Item]):
    """A page, and with `count` the number over all pages."""

    model_config = ConfigDict(json_schema_extra=_only_if_counted)

    total: int = Field(description="With `count`: the number over all pages, counted up to 10,000.")
    more: bool = Field(description="With `count`: true if there are more.")


MEDIA_TYPE = "application/problem+json"


class FieldProblem(Shape):
    pointer: str = Field(
        description="JSON pointer into the body; for a parameter, its name.",
        examples=["/schedule/expr"],
    )
    message: str
    hint: str | None = Field(description="What to do next.")


class QuotaProblem(Shape):
    name: str = Field(examples=["jobs"])
    limit: int
    used: int


class Problem(Shape):
    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; programs may rely on it.")
    errors: list[FieldProblem]
    request_id: str | None
    quota: QuotaProblem | None = Field(
        default=None,
        description="With the code quota_exceeded: which one, how much it allows, how much is used.",
    )
