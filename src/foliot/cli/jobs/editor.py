"""Edit a job as YAML in the user's editor, until the server accepts it or the text is left unchanged."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foliot.cli.output import escape_control
from foliot.domain.errors import FoliotError, Invalid

if TYPE_CHECKING:
    from foliot.wire.jobs import JobOut

Saved = TypeVar("Saved")
ERROR_MARK = "#! "


def job_to_text(job: JobOut) -> str:
    """Write the fields that differ from their defaults. Ids stay ids."""
    from foliot.sdk.sync.job_export import job_file_of, write_yaml

    [fields] = job_file_of([job], {}, {})["jobs"]
    return (
        f"# {job.name}: {job.schedule.words}\n"
        "# Fields that are left out have their defaults. Save it unchanged to cancel.\n" + write_yaml(fields)
    )


def text_to_job(text: str, job: JobOut) -> dict[str, Any]:
    """Read the whole definition. An unchanged schedule keeps its anchor."""
    from foliot.cli.yaml_text import read_yaml
    from foliot.sdk.sync.job_export import job_file_of

    found = read_yaml(text, "The text")
    if not isinstance(found, dict):
        raise Invalid("A job is a mapping of fields: name, type, schedule and more.")
    schedule = found.get("schedule")
    if isinstance(schedule, str):
        found["schedule"] = {"words": schedule}
    elif schedule == job_file_of([job], {}, {})["jobs"][0]["schedule"]:
        found["schedule"] = job.schedule.model_dump(mode="json")
    return found


def edit_text(text: str, save: Callable[[str], Saved]) -> Saved | None:
    """Open the text and save it. An error of `save` is shown above the text and the editor opens again.

    Return None if the text was not changed.
    """
    from foliot.sdk import FoliotApiError, Stale

    command = _editor_command()
    with tempfile.TemporaryDirectory(prefix="foliot-") as folder:
        path = Path(folder, "job.yaml")
        shown = text
        last_error: Exception | None = None
        while True:
            path.write_text(shown, encoding="utf-8")
            if subprocess.run((*command, path), check=False).returncode != 0:
                raise Invalid(f"The editor {command[0]} failed.", hint="Nothing was changed.")
            edited = _without_errors(path.read_text(encoding="utf-8"))
            if edited.strip() in {_without_errors(shown).strip(), text.strip(), ""}:
                if last_error is not None:
                    raise last_error
                return None
            try:
                return save(edited)
            except Stale:
                raise
            except FoliotError as error:
                last_error = error
                lines = [error.message, *(error.hint or "").splitlines()]
            except FoliotApiError as error:
                last_error = error
                lines = str(error).splitlines()
            shown = "".join(f"{ERROR_MARK}{escape_control(line)}\n" for line in lines if line) + edited


def _editor_command() -> list[str]:
    if not sys.stdin.isatty():
        raise Invalid(
            "Nothing to change.", hint="Use flags such as --timeout 5m, or a terminal to open an editor."
        )
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    command = shlex.split(editor)
    if not command or shutil.which(command[0]) is None:
        raise Invalid(f"Editor not found: {editor!r}.", hint="Set EDITOR, or use flags such as --timeout 5m.")
    return command


def _without_errors(text: str) -> str:
    mark = ERROR_MARK.strip()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(mark))
