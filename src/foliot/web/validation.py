"""What is wrong with the fields of a request, in our words: where, what, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from foliot.wire.shape import did_you_mean, hint_of, pointer

SENTENCES: Mapping[str, str] = {
    "missing": "This field is needed.",
    "string_type": "This must be text.",
    "int_type": "This must be a whole number.",
    "int_parsing": "This must be a whole number.",
    "int_from_float": "This must be a whole number.",
    "float_type": "This must be a number.",
    "finite_number": "This must be a number.",
    "bool_type": "This must be true or false.",
    "list_type": "This must be a list.",
    "dict_type": "This must be an object.",
    "model_type": "This must be an object.",
    "model_attributes_type": "This must be an object.",
}
KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def field_problems(errors: Iterable[Any]) -> list[dict[str, Any]]:
    """All of them at once, so that nobody has to find one after the other."""
    return [
        {"pointer": _where(each["loc"]), "message": _message(each), "hint": _hint(each)} for each in errors
    ]


def summary(count: int) -> str:
    few = "1 field is not as it" if count == 1 else f"{count} fields are not as they"
    return f"{few} should be."


def _where(location: tuple[int | str, ...]) -> str:
    """Into the body; for a parameter, its name, as services say it too, who do not know where a value came from."""
    return pointer(location[1:])


def _message(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing" and error["loc"] == ("body",):
        return "The request has no body; this needs a JSON object."
    if kind in SENTENCES:
        got = KINDS.get(type(error["input"])) if kind.endswith("_type") else None
        if error["input"] is None and kind != "missing":
            got = "null"
        return SENTENCES[kind] if got is None else f"{SENTENCES[kind][:-1]}, not {got}."
    match kind:
        case "literal_error" | "enum":
            return f"This must be {_choices(context)}."
        case "greater_than_equal":
            return f"This must be at least {context['ge']:,}."
        case "less_than_equal":
            return f"This must be at most {context['le']:,}."
        case "string_too_short" | "too_short":
            return "This must not be empty."
        case "string_too_long" | "too_long":
            what = "characters" if kind.startswith("string") else "items"
            return f"This must have at most {context['max_length']:,} {what}."
        case "string_pattern_mismatch":
            return f"This must look like {context['pattern']}."
        case _:
            return error["msg"]


def _hint(error: ErrorDetails) -> str | None:
    given = error["input"]
    if error["type"] in {"literal_error", "enum"} and isinstance(given, str):
        return did_you_mean(
            given, _choices(error.get("ctx", {})).replace("'", "").replace(" or ", ", ").split(", ")
        )
    return hint_of(error)


def _choices(context: Mapping[str, Any]) -> str:
    return str(context.get("expected", "one of the known words"))
