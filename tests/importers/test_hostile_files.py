"""Files that are damaged or meant to do harm: the text is refused, or the record is named and the others are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from foliot.importers.records import BadRecordError, ImportedHistory
from foliot.importers.sources import read_source
from foliot.wire.imports import ImportIn, ImportSource

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DEEP = "[" * 100_000
LAUGHS = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'x'}]\n" for n in range(9))
CRON_JOB = """kind: CronJob
metadata: {name: good}
spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}
"""
OPENCLAW = {"id": "good", "schedule": "0 8 * * *", "text": "Hello."}
ROW = {"name": "good", "schedule": "0 8 * * *", "job_type": "sync"}
BEAT = {"task": "good", "schedule": 60}
DJANGO = [
    {"model": "django_celery_beat.intervalschedule", "pk": 1, "fields": {"every": 5, "period": "minutes"}},
    {
        "model": "django_celery_beat.periodictask",
        "pk": 1,
        "fields": {"name": "good", "task": "t", "interval": 1},
    },
]


@pytest.mark.parametrize(
    "source", ["openclaw", "kubernetes", "celery-beat", "apscheduler", "airflow", "rows"]
)
@pytest.mark.parametrize(
    "text", [DEEP, '{"jobs": ' * 50_000, "[1e400]", "[NaN", '[{"a": Infinity}', "\x07" * 50]
)
def test_a_text_that_is_damaged_as_a_whole_is_refused(source: str, text: str) -> None:
    given = ImportIn(source=ImportSource(source), text=text)
    try:
        found = read_source(given, NOW)
    except BadRecordError:
        return
    assert not isinstance(found, ImportedHistory)
    assert found.jobs == ()


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS + CRON_JOB,
        "&a [*a]",
        "a: *nothing",
        "- " * 5_000,
        "!!python/object/apply:os.system [id]",
        "a: &a {b: *a}",
    ],
)
def test_yaml_that_grows_contains_itself_or_runs_code_is_refused(text: str) -> None:
    for source in ("kubernetes", "celery-beat"):
        with pytest.raises(BadRecordError):
            read_source(ImportIn(source=ImportSource(source), text=text), NOW)


def openclaw(record: str) -> str:
    return f"[{record}, {json.dumps(OPENCLAW)}]"


def django(**fields: object) -> str:
    bad = {
        "model": "django_celery_beat.periodictask",
        "pk": {"a": 1},
        "fields": {"name": "bad", "task": "t", **fields},
    }
    return json.dumps([bad, *DJANGO])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("openclaw", openclaw('{"id": "a", "schedule": "* * * * *", "text": "\\ud800"}')),
        ("openclaw", openclaw('{"id": "\\ud800", "schedule": "* * * * *"}')),
        ("openclaw", openclaw('{"id": "a", "schedule": {"kind": "at", "at": "99999999999999d"}, "text": "a"}')),
        ("openclaw", openclaw('{"id": "a", "schedule": {"kind": "at", "at": "0001-01-01T00:00:00+23:59"}, "text": "a"}')),
        ("kubernetes", "kind: CronJob\nmetadata: 3\nspec: []\n---\n" + CRON_JOB),
        ("kubernetes", CRON_JOB.replace("good", "bad").replace("'0 0 * * *'", "'0 0 * * *', startingDeadlineSeconds: .inf") + "---\n" + CRON_JOB),
        ("celery-beat", "bad: {task: t, schedule: .nan}\ngood: {task: t, schedule: 60}\n"),
        ("celery-beat", django()),
        ("celery-beat", django(interval=[1])),
        ("celery-beat", django(interval=1, kwargs="&a [*a]")),
        ("rows", json.dumps([{**ROW, "notify_recipients": 5}, ROW])),
        ("rows", json.dumps([{"name": "x", "cronExpression": "0 0 * * *", "jobType": "t", "retryPolicy": {"backoffMs": "y"}}, ROW])),
        ("apscheduler", json.dumps([{"func": "a:b", "trigger": "interval[9999999999999:00:00]"}, {"func": "a:b", "trigger": "interval[0:05:00]"}])),
    ],
    ids=lambda value: value[:60],
)  # fmt: skip
def test_a_record_with_values_of_another_kind_is_named_and_stops_nothing(source: str, text: str) -> None:
    found = read_source(ImportIn(source=ImportSource(source), text=text), NOW)
    assert not isinstance(found, ImportedHistory)
    assert (len(found.jobs), len(found.rejected)) == (1, 1)
    said = json.dumps(
        [found.rejected[0].key, found.rejected[0].reason, found.rejected[0].raw],
        ensure_ascii=False,
        allow_nan=False,
    )
    assert said.encode(), "the answer can name it"


def test_dates_of_yaml_are_kept_as_text() -> None:
    text = CRON_JOB.replace(
        "{name: good}", "{name: good, creationTimestamp: 2026-01-01T00:00:00Z, labels: {1: 2026-01-01}}"
    )
    found = read_source(ImportIn(source=ImportSource.KUBERNETES, text=text), NOW)
    assert not isinstance(found, ImportedHistory)
    [job] = found.jobs
    assert json.loads(json.dumps(job.body)) == job.body
    assert job.body["external_ref"]["raw"]["metadata"]["labels"] == {"1": "2026-01-01"}


@pytest.mark.parametrize(
    ("source", "text"),
    [("crontab", "0 9 * * * a\n"), ("kubernetes", CRON_JOB), ("rows", json.dumps([ROW])), ("openclaw", json.dumps([OPENCLAW]))],
)  # fmt: skip
def test_a_byte_order_mark_and_carriage_returns_do_not_matter(source: str, text: str) -> None:
    whole = "\ufeff" + text.replace("\n", "\r\n")
    found = read_source(ImportIn(source=ImportSource(source), text=whole), NOW)
    assert not isinstance(found, ImportedHistory)
    assert (len(found.jobs), found.rejected) == (1, ())


def test_a_csv_with_a_cell_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(BadRecordError, match="not CSV"):
        read_source(
            ImportIn(source=ImportSource.ROWS, text="name,schedule\n" + "x" * 200_000 + ",0 0 * * *\n"), NOW
        )
