"""Names of jobs are not unique: pick the job that a name means, or say which jobs have it."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.sdk.errors import Invalid, NotFound
from foliot.wire.jobs import JobOut

MAX_LISTED = 10


def the_only_job(name: str, similar: Sequence[JobOut]) -> JobOut:
    """Return the one with exactly this name. Raise NotFound for none, with similar names; for several, Invalid with their ids."""
    exact = [job for job in similar if job.name == name]
    if len(exact) == 1:
        return exact[0]
    if not exact:
        near = ", ".join(dict.fromkeys(f'"{job.name}"' for job in similar[:MAX_LISTED]))
        hint = f"Similar names: {near}." if near else "jobs.list() shows the jobs that you can see."
        raise NotFound(f'Job not found: "{name}".', code="not_found", hint=hint)
    lines = [f"{job.id}: {describe_for_choice(job)}" for job in exact[:MAX_LISTED]]
    more = [f"and {len(exact) - MAX_LISTED} more"] if len(exact) > MAX_LISTED else []
    raise Invalid(
        f'{len(exact)} jobs have the name "{name}".',
        code="invalid",
        hint="\n  ".join(["Use one of these ids, or rename all but one:", *lines, *more]),
    )


def describe_for_choice(job: JobOut) -> str:
    """Say what tells a job from another with the same name: status, schedule, age, owner."""
    owner = f", owner {job.owner_name}" if job.owner_name else ""
    return f"{job.status}, {job.schedule.words}, created {job.created_at:%Y-%m-%d %H:%M} UTC{owner}"
