"""Writes `foliot/sdk/job_fields.py` from the fields of `wire.jobs.JobFields`: `python -m tools.job_fields_generator`.

The wire shape is the one declaration of a job's field. Keywords must be visible to type checkers, and the command line must not wait
for pydantic to load, so both read this file instead.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from foliot.wire.jobs import CliFlag, JobFields

TARGET = Path(__file__).resolve().parents[1] / "src" / "foliot" / "sdk" / "job_fields.py"
RUFF = Path(sys.executable).with_name("ruff")
PLAIN = {bool: "bool", int: "int", str: "str", timedelta: "DurationLike", datetime: "InstantLike"}
HEAD = '''# Made from wire/jobs.py by ./dev format; edit it there.
"""The scalar fields of a job: keywords of the client and of `@app.job`, flags of `foliot jobs create` and `edit`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypedDict

DurationLike = timedelta | str
InstantLike = datetime | str


class JobField(NamedTuple):
    name: str
    type: type
    help: str
    choices: tuple[str, ...] = ()
    flag: str | None = None  # where it is not --name


class JobFieldKeywords(TypedDict, total=False):
'''


class Scalar(NamedTuple):
    name: str
    kind: type
    choices: tuple[str, ...]
    is_optional: bool
    help: str
    flag: str | None

    @property
    def keyword(self) -> str:
        text = (
            f"Literal[{', '.join(repr(each) for each in self.choices)}]" if self.choices else PLAIN[self.kind]
        )
        return f"    {self.name}: {text}{' | None' if self.is_optional else ''}"

    @property
    def row(self) -> str:
        more = f", choices={self.choices!r}" if self.choices else ""
        more += f", flag={self.flag!r}" if self.flag else ""
        return f"    JobField({self.name!r}, {self.kind.__name__}, {self.help!r}{more}),"


def main() -> None:
    TARGET.write_text(generate(), encoding="utf-8")


def generate() -> str:
    """Return the text that the file should have."""
    fields = [each for each in map(_scalar, JobFields.model_fields) if each is not None]
    lines = [
        *(each.keyword for each in fields),
        "\n\nJOB_FIELDS = (",
        *(each.row for each in fields),
        ")\n",
    ]
    command = (RUFF, "format", "--stdin-filename", TARGET, "-")
    text = HEAD + "\n".join(lines)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _scalar(name: str) -> Scalar | None:
    """Return the field, or None where it is required or its value is no scalar: those have keywords and flags of their own."""
    field = JobFields.model_fields[name]
    members = [_bare(each) for each in _members(field.annotation)]
    kinds = [each for each in members if each is not NoneType]
    if field.is_required() or len(kinds) != 1:
        return None
    kind, choices = kinds[0], ()
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    if kind not in PLAIN:
        return None
    flag = next((each.name for each in field.metadata if isinstance(each, CliFlag)), None)
    if not field.description:
        raise ValueError(f"JobFields.{name} needs a description: it is the help of its flag")
    return Scalar(name, kind, choices, NoneType in members, field.description, flag)


def _members(annotation: Any) -> tuple[Any, ...]:
    annotation = _bare(annotation)
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


if __name__ == "__main__":
    main()
