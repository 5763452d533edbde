"""What flags and files hold: JSON objects, text from a file or from standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from foliot.domain.errors import Invalid, Mark

LARGEST = 4 << 20  # bytes of a file that is read whole


def parse_json_object(text: str, flag: str, *, or_text: bool = False) -> dict[str, Any]:
    """A JSON object, or `@file` that holds one. With `or_text`, what is plainly no JSON is {"text": it}."""
    if text.startswith("@"):
        text = read_text(text[1:], flag)
    elif or_text and not text.lstrip().startswith(("{", "[")):
        return {"text": text}
    try:
        found = json.loads(text)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        raise Invalid(
            f"{flag} is not JSON: {getattr(error, 'msg', error)}.",
            hint="Such as '{\"full\": true}', or @file.json.",
            mark=Mark(text, at, at + 1) if "\n" not in text else None,
        ) from None
    if not isinstance(found, dict):
        raise Invalid(f"{flag} must be a JSON object.", hint="Such as '{\"full\": true}'.")
    return found


def read_text(name: str, flag: str) -> str:
    """`-` is standard input."""
    try:
        raw = sys.stdin.buffer.read(LARGEST + 1) if name == "-" else _file(Path(name))
    except OSError as error:
        raise Invalid(f"{flag}: {name} cannot be read: {error.strerror or error}.") from None
    if len(raw) > LARGEST:
        raise Invalid(f"{flag}: {name} is larger than {LARGEST >> 20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{flag}: {name} is not text in UTF-8.") from None


def _file(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(LARGEST + 1)
