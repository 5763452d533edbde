"""A job as text to edit, and back."""

from __future__ import annotations

from typing import Any

from foliot.cli.apply.job_file import sheet_of
from foliot.cli.apply.yaml_text import read_yaml, write_yaml
from foliot.domain.errors import Invalid
from foliot.wire.jobs import JobOut


def to_text(job: JobOut) -> str:
    """Only what is not a default; ids stay ids."""
    [written] = sheet_of([job], {}, {})["jobs"]
    written.pop("enabled", None)
    return (
        f"# {job.name}: {job.schedule.words}\n# What is left out has its default. Leave all as it is to change nothing.\n"
        + write_yaml(written)
    )


def from_text(text: str, job: JobOut) -> dict[str, Any]:
    """The whole definition. A pace that is as it was keeps its beat."""
    found = read_yaml(text, "The text")
    if not isinstance(found, dict):
        raise Invalid("A job is a list of fields: name, type, schedule and more.")
    schedule = found.get("schedule")
    if isinstance(schedule, str):
        found["schedule"] = {"words": schedule}
    elif schedule == sheet_of([job], {}, {})["jobs"][0]["schedule"]:
        found["schedule"] = job.schedule.model_dump(mode="json")
    return found
