"""Answers of dry runs on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from foliot.wire.calendars import CalendarOut
from foliot.wire.freezes import FreezeOut
from foliot.wire.identity import KeyOut, MemberOut, WorkspaceOut
from foliot.wire.instants import Id, Instant
from foliot.wire.jobs import JobOut
from foliot.wire.runs import RunOut
from foliot.wire.schedules import PlannedOut
from foliot.wire.secrets import SecretOut
from foliot.wire.shape import Shape


class MovedOut(Shape):
    before: Instant
    after: Instant


class DifferenceOut(Shape):
    """Upcoming runs, by start; compared over the next 50 of each or 30 days, whichever ends first."""

    added: list[Instant]
    removed: list[Instant]
    moved: list[MovedOut] = Field(description="On the same day, at another time.")
    unchanged: int
    until: Instant = Field(description="The end of the comparison.")


class DryRunOut(Shape):
    dry_run: Literal[True] = True
    job: JobOut | None = Field(description="After the change; null if it would be deleted.")
    words: str | None = Field(description="Its schedule in words.")
    items: list[PlannedOut] = Field(description="The first upcoming runs.")
    warnings: list[str]
    difference: DifferenceOut


class RunDryRunOut(Shape):
    dry_run: Literal[True] = True
    run: RunOut = Field(description="The run as it would be recorded. A new id exists only in this answer.")
    sentence: str = Field(description="The expected result.")


class MovedJobOut(Shape):
    job_id: Id
    job_name: str
    before: Instant | None
    after: Instant | None = Field(description="Its next run after the change.")


class CalendarDryRunOut(Shape):
    dry_run: Literal[True] = True
    calendar: CalendarOut | None = Field(description="After the change; null if it would be deleted.")
    jobs: int = Field(description="How many jobs use it.")
    moved: list[MovedJobOut] = Field(description="Jobs whose next run would move.")
    complete: bool = Field(description="False if more than 1,000 jobs use it: only the first were compared.")


class FreezeLiftOut(Shape):
    dry_run: Literal[True] = True
    freeze: FreezeOut | None = Field(
        description="After the change; null for a freeze that has not begun: it is removed."
    )
    runs: int = Field(description="Runs that would be released.")
    jobs: int = Field(description="Jobs whose held planned times would be decided.")


class KeyDryRunOut(Shape):
    """It has no secret: the key does not exist."""

    dry_run: Literal[True] = True
    key: KeyOut
    made_valid: int = Field(default=0, description="Of a revocation: keys that it made and that stay valid.")
    made_revoked: int = Field(default=0, description="Of a revocation: keys that would end with it.")


class SecretDryRunOut(Shape):
    """It has no value, like every other answer."""

    dry_run: Literal[True] = True
    secret: SecretOut | None = Field(description="After the change; null if it would be deleted.")
    jobs: int = Field(description="How many jobs name it.")


class RotationDryRunOut(Shape):
    dry_run: Literal[True] = True
    rotated: int = Field(description="How many secrets would be sealed again.")
    unreadable: int = Field(description="How many stay unreadable.")


class MemberDryRunOut(Shape):
    dry_run: Literal[True] = True
    member: MemberOut
    revoked_keys: int = Field(default=0, description="Keys that would end with it.")
    jobs: int = Field(default=0, description="Jobs that would be archived or handed over.")


class WorkspaceDryRunOut(Shape):
    dry_run: Literal[True] = True
    workspace: WorkspaceOut
    jobs: int = Field(default=0, description="Of an archival: jobs that would be archived.")
    keys: int = Field(default=0, description="Of an archival: keys that would end.")
    runs: int = Field(
        default=0, description="Of an archival: runs that would be cancelled; counted up to 10,000 of a kind."
    )
