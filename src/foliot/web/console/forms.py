"""Forms made from JSON schemas, and instants as people type them. Nothing here knows a type of job by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from foliot.web.console.api import field_refusal, label_of, read_json
from foliot.web.console.text import zone_named

LONG_TEXT = 1_000  # texts that may be longer get a box of several lines
OPTIONS = {"method": ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")}  # where a schema has only a pattern
FIRST = frozenset({"method", "queue", "room"})  # shown at once beside what is required
_DURATION = re.compile(r"(\d{1,5})\s*([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One property of an object as a field of a form. `kind`: text, long, choice, switch, number, lines, numbers or json."""

    name: str
    label: str
    kind: str
    hint: str = ""
    options: tuple[str, ...] = ()
    placeholder: str = ""
    is_required: bool = False
    takes_secret: bool = False
    default: Any = None

    @property
    def is_first(self) -> bool:
        return self.is_required or self.name in FIRST

    def write(self, value: Any) -> str:
        """The value as the text of the field."""
        if value is None:
            return ""
        if self.takes_secret and isinstance(value, dict):
            return json.dumps(value)
        match self.kind:
            case "switch":
                return "true" if value else "false"
            case "lines" if _are(value, str) and not any("\n" in each for each in value):
                return "\n".join(value)
            case "numbers" if isinstance(value, list):
                return ", ".join(str(each) for each in value)
            case "text" | "long" | "choice" if isinstance(value, str):
                return value
            case "number" if isinstance(value, int | float):
                return str(value)
            case _:
                return json.dumps(value, indent=2, ensure_ascii=False)

    def read(self, raw: str, pointer: str) -> Any:
        """The value of the text; raises ApiRefusal, which names `pointer`."""
        text = raw.strip()
        if self.takes_secret and text.startswith("{"):
            return read_json(pointer, text)
        match self.kind:
            case "switch":
                return text == "true"
            case "lines":
                return (
                    read_json(pointer, text)
                    if text.startswith("[")
                    else [line for line in raw.splitlines() if line.strip()]
                )
            case "numbers":
                return read_json(pointer, text if text.startswith("[") else f"[{text}]")
            case "number":
                value = read_json(pointer, text)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise field_refusal(pointer, "This must be a number.")
                return value
            case "json":
                return read_json(pointer, text)
            case _:
                return raw if self.kind == "long" else text  # fmt: skip


def schema_fields(schema: Mapping[str, Any] | None) -> list[SchemaField]:
    """The properties of an object schema: what is required first."""
    if not schema:
        return []
    required = set(schema.get("required", ()))
    found = [
        _field(name, each, is_required=name in required)
        for name, each in schema.get("properties", {}).items()
        if isinstance(each, Mapping)
    ]
    return sorted(found, key=lambda each: (not each.is_required, not each.is_first))


def fields_like(value: Mapping[str, Any], most: int = 30) -> list[SchemaField]:
    """Fields for an object without a schema, by the kinds of its present values."""
    kinds = {bool: "switch", int: "number", float: "number", str: "text"}
    return [
        SchemaField(
            name, name, "long" if isinstance(each, str) and "\n" in each else kinds.get(type(each), "json")
        )
        for name, each in list(value.items())[:most]
    ]


def _field(name: str, schema: Mapping[str, Any], *, is_required: bool) -> SchemaField:
    variants = [schema, *(each for each in schema.get("anyOf", ()) if isinstance(each, Mapping))]
    simple = next((each for each in variants if each.get("type") in _KINDS or "enum" in each), {})
    kind, options = (
        _KINDS.get(str(simple.get("type")), "json"),
        tuple(str(each) for each in simple.get("enum", ())),
    )
    if options or name in OPTIONS:
        kind, options = "choice", options or OPTIONS[name]
    elif kind == "array":
        inner = simple.get("items", {}).get("type")
        kind = {"string": "lines", "integer": "numbers", "number": "numbers"}.get(inner, "json")
    elif kind == "text" and simple.get("maxLength", 0) > LONG_TEXT and "\n" in simple.get("pattern", "\n"):
        kind = "long"
    example = (schema.get("examples") or simple.get("examples") or [""])[0]
    shown = example if isinstance(example, str) else " ".join(map(str, example)) if _are(example, str) else ""
    return SchemaField(
        name,
        label_of(name),
        kind,
        str(schema.get("description", "")),
        options,
        shown,
        is_required,
        any("secret" in each.get("properties", {}) for each in variants),
        schema.get("default"),
    )  # fmt: skip


_KINDS = {"string": "text", "boolean": "switch", "integer": "number", "number": "number", "array": "array"}


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(each, kind) for each in values)


def read_instant(name: str, raw: str, zone: str, now: datetime) -> str | None:
    """An instant as the API takes it. Without an offset it is of this zone; `2h` is counted from now."""
    text = raw.strip()
    if not text:
        return None
    try:
        if found := _DURATION.fullmatch(text):
            at = now + timedelta(**{_UNITS[found[2]]: int(found[1])})
        else:
            read = datetime.fromisoformat(text)
            at = read if read.tzinfo else read.replace(tzinfo=zone_named(zone))
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise field_refusal(name, "This is no time.") from None


def multipart_fields(kind: str, body: bytes, most: int) -> dict[str, str]:
    """Fields of a form with files; a file is its text. Raise ValueError for more than `most`."""
    head = f"Content-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n".encode("latin-1", "replace")
    whole = BytesParser(policy=HTTP).parsebytes(head + body)
    parts = list(whole.iter_parts())
    if len(parts) > most:
        raise ValueError
    fields: dict[str, str] = {}
    for part in parts:
        content = part.get_payload(decode=True)
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str) and isinstance(content, bytes):
            fields[name] = content.decode("utf-8", "replace")
    return fields
