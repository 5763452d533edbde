"""Read the values of flags: JSON objects, and text from files or standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from foliot.domain.errors import Invalid, Mark

MAX_BYTES = 4 << 20  # of a file that is read whole


def parse_json_object(text: str, flag: str, *, or_text: bool = False) -> dict[str, Any]:
    """Read a JSON object, or `@FILE` that holds one. With `or_text`, text that is not JSON becomes {"text": …}."""
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
            hint="Examples: '{\"full\": true}', @file.json.",
            mark=Mark(text, at, at + 1) if "\n" not in text else None,
        ) from None
    if not isinstance(found, dict):
        raise Invalid(f"{flag} must be a JSON object.", hint="Example: '{\"full\": true}'.")
    return found


def read_object(file: str, meaning: str) -> dict[str, object]:
    """Read a file of --file that holds one object, in YAML or JSON."""
    from foliot.cli.yaml_text import read_yaml

    found = read_yaml(read_text(file, "--file"), file)
    if not isinstance(found, dict):
        raise Invalid(f"{file} must be {meaning}.")
    return found


def read_text(name: str, flag: str) -> str:
    """Read a file as UTF-8. `-` is standard input."""
    try:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if name == "-" else _read_file(Path(name))
    except OSError as error:
        raise Invalid(f"{flag}: cannot read {name}: {error.strerror or error}.") from None
    if len(raw) > MAX_BYTES:
        raise Invalid(f"{flag}: {name} is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{flag}: {name} is not UTF-8 text.") from None


def _read_file(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)
