"""Text in the user's own editor, again and again until it is accepted or left as it was."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from foliot.cli.output import escape_control
from foliot.domain.errors import FoliotError, Invalid

Saved = TypeVar("Saved")
MARK = "#! "


def edited(text: str, save: Callable[[str], Saved]) -> Saved | None:
    """What `save` made of it; None where nothing was changed. A refusal is shown on top of the text."""
    from foliot.sdk import FoliotApiError, Stale

    command = _editor()
    with tempfile.TemporaryDirectory(prefix="foliot-") as folder:
        path = Path(folder, "job.yaml")
        shown = text
        refusal: Exception | None = None
        while True:
            path.write_text(shown, encoding="utf-8")
            if subprocess.run((*command, path), check=False).returncode != 0:
                raise Invalid(f"The editor {command[0]} ended with an error.", hint="Nothing was changed.")
            written = _without_marks(path.read_text(encoding="utf-8"))
            if written.strip() in {_without_marks(shown).strip(), text.strip(), ""}:
                if refusal is not None:
                    raise refusal
                return None
            try:
                return save(written)
            except Stale:
                raise
            except FoliotError as error:
                refusal = error
                lines = [error.message, *(error.hint or "").splitlines()]
            except FoliotApiError as error:
                refusal = error
                lines = str(error).splitlines()
            shown = "".join(f"{MARK}{escape_control(line)}\n" for line in lines if line) + written


def _editor() -> list[str]:
    if not sys.stdin.isatty():
        raise Invalid(
            "What shall change?", hint="Give flags such as --timeout 5m, or call it from a terminal to edit."
        )
    wanted = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    command = shlex.split(wanted)
    if not command or shutil.which(command[0]) is None:
        raise Invalid(
            f"There is no editor {wanted!r}.", hint="Set EDITOR, or give flags such as --timeout 5m."
        )
    return command


def _without_marks(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(MARK.strip()))
