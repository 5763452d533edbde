"""Choose the reader of a source."""

from __future__ import annotations

from datetime import datetime

from foliot.importers.airflow import read_airflow
from foliot.importers.apscheduler import read_apscheduler
from foliot.importers.celery_beat import read_celery_beat
from foliot.importers.crontab import read_crontab
from foliot.importers.job_rows import RowMapping, read_rows
from foliot.importers.kubernetes import read_kubernetes
from foliot.importers.openclaw import OpenClawMapping, read_openclaw
from foliot.importers.openclaw_runs import read_openclaw_runs
from foliot.importers.records import ImportedHistory, ImportedRecords
from foliot.importers.systemd import read_systemd
from foliot.wire.imports import ImportIn, ImportSource


def read_source(given: ImportIn, now: datetime) -> ImportedRecords | ImportedHistory:
    """Read the text into jobs, or into runs of jobs that were imported before. Raises BadRecordError where it is nothing of this source."""
    text, zone = given.text.removeprefix("\ufeff"), given.time_zone
    match given.source:
        case ImportSource.OPENCLAW:
            return read_openclaw(
                text, OpenClawMapping(given.agents, given.rooms, given.channels, given.agent, zone), now
            )
        case ImportSource.OPENCLAW_RUNS:
            return read_openclaw_runs(text, now)
        case ImportSource.CRONTAB | ImportSource.SYSTEM_CRONTAB:
            is_system = given.source is ImportSource.SYSTEM_CRONTAB
            return read_crontab(text, system=is_system, time_zone=zone)
        case ImportSource.SYSTEMD:
            return read_systemd(text, given.file_name, time_zone=zone)
        case ImportSource.KUBERNETES:
            return read_kubernetes(text)
        case ImportSource.CELERY_BEAT:
            return read_celery_beat(text, time_zone=zone or "UTC")
        case ImportSource.APSCHEDULER:
            return read_apscheduler(text, time_zone=zone)
        case ImportSource.AIRFLOW:
            return read_airflow(text, time_zone=zone)
        case ImportSource.ROWS:
            return read_rows(text, RowMapping(given.agents, given.rooms, given.agent, zone))
