"""A file of jobs, and of the calendars, limits and rooms that they use. Schedules may be words; things go by name.

Why: docs/decisions/804-jobs-as-a-file.md
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from foliot.cli.yaml_text import YamlDocument, read_document
from foliot.domain.errors import Invalid
from foliot.sdk.errors import Invalid as InvalidJob
from foliot.sdk.sync.entries import FILE_TAG, JobEntry, error_lines, read_entry
from foliot.wire.calendars import CalendarIn
from foliot.wire.fleet import LimitIn
from foliot.wire.rooms import RoomIn

MAX_SET = 40
_SET = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{MAX_SET - 1}}}", re.ASCII)
_NOT_IN_SET = re.compile(r"[^a-z0-9_.-]+", re.ASCII)
SECTIONS = ("calendars", "limits", "rooms", "jobs")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class JobFile:
    set: str
    jobs: tuple[JobEntry, ...]
    calendars: tuple[CalendarIn, ...]
    limits: tuple[LimitIn, ...]
    rooms: tuple[RoomIn, ...]
    lines: FileLines = field(repr=False)

    @property
    def marker(self) -> str:
        """The tag of jobs that this file created."""
        return FILE_TAG + self.set

    @property
    def marks(self) -> list[str]:
        """Standard input without a name makes no set."""
        return [self.marker] if self.set else []


@dataclass(frozen=True, slots=True)
class FileLines:
    """Names the line of an item, for error messages."""

    name: str
    document: YamlDocument
    is_list: bool  # the whole file is the list of jobs

    def place(self, section: str, index: int, pointer: str = "") -> str:
        """jobs.yaml, line 12."""
        path: list[str | int] = [index, *pointer.strip("/").split("/")] if pointer.strip("/") else [index]
        return f"{self.name}, line {self.document.line_of(path if self.is_list else [section, *path])}"


def read_job_file(text: str, name: str, default_set: str = "jobs") -> JobFile:
    """Raise Invalid with every problem of every item, and its line."""
    document = read_document(text, name)
    found = {"jobs": document.value} if isinstance(document.value, list) else document.value
    if not isinstance(found, dict) or not any(isinstance(found.get(each), list) for each in SECTIONS):
        raise Invalid(f'{name} must contain "jobs:", a list.', hint="`foliot export` writes such a file.")
    unknown = sorted(found.keys() - {"set", *SECTIONS})
    if unknown:
        raise Invalid(
            f'{name}: unknown key "{unknown[0]}".', hint=f"The top-level keys are set, {', '.join(SECTIONS)}."
        )
    set_name = found.get("set", default_set)
    if not isinstance(set_name, str) or (set_name != default_set and not _SET.fullmatch(set_name)):
        raise Invalid(
            f'"set" of {name} must be a short name.',
            hint=f"Lower-case letters, digits and - _ . up to {MAX_SET} characters.",
        )
    reader = _SectionReader(found, FileLines(name, document, isinstance(document.value, list)))
    wanted = JobFile(
        set_name,
        reader.read("jobs", read_entry, lambda entry: entry.name),
        reader.read("calendars", CalendarIn.model_validate, lambda each: each.name),
        reader.read("limits", LimitIn.model_validate, lambda each: each.key or "the whole workspace"),
        reader.read("rooms", RoomIn.model_validate, lambda each: each.key),
        reader.lines,
    )
    if reader.problems:
        raise Invalid(f"{name} is not valid. Nothing was done.", hint="\n  ".join(reader.problems))
    return wanted


def set_of_path(path: Path) -> str:
    """Return the name of a set from the path of its file: relative to the repository, or the folder and the name."""
    path = path.resolve()
    root = next((each for each in path.parents if (each / ".git").exists()), path.parent.parent)
    relative = path.relative_to(root).with_suffix("").as_posix()
    name = _NOT_IN_SET.sub("-", relative.lower()).strip("-_.") or "jobs"
    return (
        name if len(name) <= MAX_SET else f"{sha256(name.encode()).hexdigest()[:8]}-{name[-31:]}".strip("-_.")
    )


@dataclass(slots=True)
class _SectionReader:
    found: Mapping[str, Any]
    lines: FileLines
    problems: list[str] = field(default_factory=list)

    def read(
        self, section: str, parse: Callable[[Any], Item], name: Callable[[Item], str | None]
    ) -> tuple[Item, ...]:
        listed = self.found.get(section) or []
        if not isinstance(listed, list):
            self.problems.append(f'"{section}" must be a list.')
            return ()
        items: list[Item] = []
        for index, each in enumerate(listed):
            try:
                items.append(parse(each))
            except ValidationError as error:
                label = _label(each, section, index)
                self.problems += [
                    f"{self.lines.place(section, index, line.split(':')[0].strip())}: {label}{line}"
                    for line in error_lines(error)
                ]
            except InvalidJob as error:
                where = self.lines.place(section, index)
                self.problems.append(f"{where}: {_label(each, section, index)} {error.message}")
        names = [name(each) for each in items]
        if section == "rooms" and None in names:
            self.problems.append(
                f"{self.lines.place(section, names.index(None))}: a room in a file needs a key."
            )
        repeated = [each for each, times in Counter(names).items() if times > 1 and each is not None]
        self.problems += [f'"{each}" occurs twice in {section}. Names must be unique.' for each in repeated]
        return tuple(items)


def _label(item: Any, section: str, index: int) -> str:
    name = item.get("name", item.get("key")) if isinstance(item, dict) else None
    return (
        f'"{name}"'
        if isinstance(name, str) and name
        else f"{section.removesuffix('s').capitalize()} {index + 1}"
    )
