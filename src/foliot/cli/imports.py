"""`foliot import`: bring jobs of other schedulers over, disabled, for review."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args
from uuid import UUID

import typer

from foliot.cli.input_files import read_text
from foliot.cli.output import pluralize
from foliot.cli.progress import track
from foliot.cli.session import Session, api_command
from foliot.cli.tables import BOLD, DIM, Block, Column, Table, line, stack, styled
from foliot.cli.yaml_text import read_yaml
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.importers.records import ImportedJob, ImportedRecords
    from foliot.sdk import Client
    from foliot.wire.jobs import JobOut

NOTE = "imported again"


class ImportSource(StrEnum):
    OPENCLAW = "openclaw"
    CRONTAB = "crontab"
    SYSTEM_CRONTAB = "system-crontab"
    SYSTEMD = "systemd"
    KUBERNETES = "kubernetes"
    CELERY_BEAT = "celery-beat"


class ImportResult(StrEnum):
    IMPORTED = "imported"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ImportLine:
    """What became of one record."""

    index: int
    key: str | None
    name: str
    result: ImportResult
    job_id: UUID | None = None
    notes: tuple[str, ...] = field(default=())


@api_command
def import_jobs(
    session: Session,
    source: Annotated[ImportSource, typer.Argument(help="Where the file comes from.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - is standard input.")],
    plan: Annotated[
        bool, typer.Option("--plan", "--dry-run", help="Validate everything and show what would happen.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Also overwrite imported jobs that were edited here.")
    ] = False,
    time_zone: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Zone of schedules that name none.")
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="For openclaw: YAML with agents: {theirs: ours} and rooms: {theirs: ours}.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="NAME", help="For openclaw: the agent that owns jobs which name none."
        ),
    ] = None,
) -> None:
    """Import jobs of another scheduler. They arrive disabled: review them, then `foliot jobs resume`.

    Importing the same file again changes nothing. A record that cannot be read is named and stops no other. Each job
    keeps its original in external_ref.
    """
    records = _read(source, file, time_zone, mapping, agent, session.now)
    lines = list(_write(session, records, plan=plan, update=update))
    counts = {each.value: sum(one.result is each for one in lines) for each in ImportResult}
    session.show(
        {
            "source": records.source,
            "planned": plan,
            "counts": counts,
            "records": [_json(each) for each in lines],
        },
        lambda: _page(lines, records.source, plan=plan),
    )
    if counts["rejected"]:
        raise typer.Exit(1)


def _read(
    source: ImportSource, file: str, zone: str | None, mapping: str | None, agent: str | None, now: datetime
) -> ImportedRecords:
    from foliot.importers.celery_beat import read_celery_beat
    from foliot.importers.crontab import read_crontab
    from foliot.importers.kubernetes import read_kubernetes
    from foliot.importers.openclaw import OpenClawMapping, read_openclaw
    from foliot.importers.records import BadRecordError
    from foliot.importers.systemd import read_systemd

    text = read_text(file, "FILE")
    given: dict[str, Any] = read_yaml(read_text(mapping, "--map"), "--map") if mapping is not None else {}
    try:
        match source:
            case ImportSource.OPENCLAW:
                owners = OpenClawMapping(given.get("agents", {}), given.get("rooms", {}), agent, zone)
                return read_openclaw(text, owners, now)
            case ImportSource.CRONTAB | ImportSource.SYSTEM_CRONTAB:
                return read_crontab(text, system=source is ImportSource.SYSTEM_CRONTAB, time_zone=zone)
            case ImportSource.SYSTEMD:
                return read_systemd(text, Path(file).name, time_zone=zone)
            case ImportSource.KUBERNETES:
                return read_kubernetes(text)
            case ImportSource.CELERY_BEAT:
                return read_celery_beat(text, time_zone=zone or "UTC")
    except BadRecordError as error:
        raise Invalid(str(error)) from None


def _write(session: Session, records: ImportedRecords, *, plan: bool, update: bool) -> Iterator[ImportLine]:
    from foliot.importers.records import IMPORTED
    from foliot.wire.jobs import JobStatus

    existing = {
        str(ref.get("id")): job
        for job in session.client.jobs.each(tag=[IMPORTED], status=list(get_args(JobStatus)))
        if (ref := job.external_ref or {}).get("source") == records.source
    }
    lines = [
        ImportLine(each.index, each.key, "", ImportResult.REJECTED, notes=(each.reason,))
        for each in records.rejected
    ]
    lines += [
        _write_one(session.client, each, existing.get(each.key), plan=plan, update=update)
        for each in track("importing", records.jobs)
    ]
    yield from sorted(lines, key=lambda each: each.index)


def _write_one(
    client: Client, job: ImportedJob, found: JobOut | None, *, plan: bool, update: bool
) -> ImportLine:
    from foliot.sdk import FoliotApiError

    body = dict(job.body)
    jobs = client.jobs.dry_run if plan else client.jobs
    try:
        if found is None:
            made = jobs.create(body)
            made_id = None if plan else getattr(made, "id", None)
            return ImportLine(job.index, job.key, job.name, ImportResult.IMPORTED, made_id, job.warnings)
        if (found.external_ref or {}).get("digest") == job.digest:
            return ImportLine(job.index, job.key, found.name, ImportResult.UNCHANGED, found.id)
        if not update and _is_edited(client, found):
            note = "It was edited here; --update overwrites it."
            return ImportLine(job.index, job.key, found.name, ImportResult.SKIPPED, found.id, (note,))
        body.pop("enabled")  # what a person decided stays
        jobs.patch(found.id, body, note=NOTE)
        return ImportLine(job.index, job.key, job.name, ImportResult.UPDATED, found.id, job.warnings)
    except FoliotApiError as error:
        if error.status is None or error.status in (401, 403) or error.status >= 500:
            raise  # not the record's fault
        return ImportLine(
            job.index, job.key, job.name, ImportResult.REJECTED, notes=(" ".join(str(error).split()),)
        )


def _is_edited(client: Client, job: JobOut) -> bool:
    if job.revision == 1:
        return False
    return client.jobs.revisions(job.id, limit=1).items[0].note != NOTE


def _json(one: ImportLine) -> dict[str, Any]:
    return {
        "index": one.index,
        "key": one.key,
        "name": one.name,
        "result": one.result.value,
        "job_id": None if one.job_id is None else str(one.job_id),
        "notes": list(one.notes),
    }


def _page(lines: list[ImportLine], source: str, *, plan: bool) -> Block:
    table = Table(
        (
            Column("#", lambda each: str(each.index)),
            Column("RESULT", lambda each: each.result.value),
            Column("NAME", lambda each: each.name or each.key or "-"),
            Column("NOTES", lambda each: " ".join(each.notes) or "-", wrap=True),
        ),
        lines,
    )
    counts = ", ".join(
        f"{sum(each.result is kind for each in lines)} {kind.value}"
        for kind in ImportResult
        if any(each.result is kind for each in lines)
    )
    done = "Would import" if plan else "Imported"
    return stack(
        table,
        line(
            styled(
                f"{done} {pluralize(len(lines), 'record', 'records')} from {source}: {counts or 'nothing'}.",
                BOLD,
            )
        ),
        line(styled("Imported jobs are disabled. Review: foliot jobs list status:disabled", DIM)),
    )
