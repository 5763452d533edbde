"""The page of a run: who, where, what it left behind, and what comes next."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from foliot.cli.progress import RunReporter
from foliot.cli.runs import run_page
from foliot.cli.session import Session
from foliot.cli.tables import render
from foliot.wire.runs import RunOut

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)
ID = UUID("0192f0c1-0001-7c4d-8e5f-60718293a4b5")
NOTHING = (
    "skip_reason", "note", "retry_of", "upstream_run_id", "planned_until", "count", "lag_ms", "cancel_requested_at",
    "input", "output", "error", "finished_at", "duration_ms", "triggered_by", "worker",
)  # fmt: skip


def run(**fields: Any) -> RunOut:
    base: dict[str, Any] = {
        **dict.fromkeys(NOTHING),
        "id": ID,
        "job_id": ID,
        "job_name": "restart pvp",
        "number": 7,
        "status": "ready",
        "trigger": "manual",
        "planned_for": NOW,
        "planned_local": NOW.replace(tzinfo=None),
        "created_at": NOW,
        "started_at": NOW,
        "attempt_count": 1,
    }
    return RunOut.model_validate(base | fields, strict=False)


def shown(**fields: Any) -> dict[str, str]:
    lines = render(run_page(run(**fields), "UTC", NOW), 240).splitlines()[1:]
    return dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines if line.strip())


def attempt(number: int, **fields: Any) -> dict[str, Any]:
    base = {"number": number, "status": "failed", "worker": ID, "fence": number, "started_at": NOW}
    return {**base, "finished_at": NOW, "duration_ms": 5, "error": None, **fields}


def test_people_and_machines_go_by_their_names() -> None:
    reported = shown(
        triggered_by=str(ID), triggered_by_name="ada", worker=ID, worker_name="h1/4711", host="h1"
    )
    assert (reported["by"], reported["where"]) == ("manual, ada", "host h1")
    reported = shown(triggered_by=str(ID), worker=ID, worker_name="node-3/815")
    assert (reported["by"], reported["where"]) == (f"manual, {ID}", "node-3/815")
    assert str(ID) in shown(worker=ID)["where"]
    assert "where" not in shown()


def test_a_run_that_is_tried_again_says_when_and_why_and_only_once() -> None:
    planned = {"number": 2, "at": NOW + timedelta(minutes=5), "why": "Attempt 1 failed: boom: It broke."}
    reported = shown(next_attempt=planned, error={"code": "boom", "message": "It broke."})
    assert reported["next try"] == "attempt 2, Fri 15 Jan 2027 12:05 UTC (in 5 m)"
    assert reported["because"] == "Attempt 1 failed: boom: It broke."
    assert "error" not in reported
    assert (
        shown(status="failed", error={"code": "boom", "message": "It broke."})["error"] == "boom: It broke."
    )


def test_a_try_whose_time_has_come_waits_for_a_worker() -> None:
    again = {"number": 2, "at": NOW - timedelta(minutes=1), "why": "it failed"}
    assert shown(next_attempt=again)["next try"] == "attempt 2, as soon as a worker takes it"


def test_one_that_is_asked_to_stop_says_since_when_until_it_has() -> None:
    asked_at = NOW - timedelta(seconds=5)
    assert "5 s ago" in shown(status="running", cancel_requested_at=asked_at)["asked to stop"]
    assert "asked to stop" not in shown(status="cancelled", cancel_requested_at=asked_at)


def test_files_are_named_with_their_sizes_and_many_are_cut_short() -> None:
    files = [
        {
            "name": f"f{n}.csv",
            "media_type": "text/csv",
            "size": size,
            "sha256": "",
            "attempt": 1,
            "created_at": NOW,
        }
        for n, size in enumerate((1, 2_048, 3 * 1024**2, *[5] * 10))
    ]
    reported = shown(artifacts=files)["files"]
    assert reported.startswith("f0.csv (1 byte), f1.csv (2 KiB), f2.csv (3.0 MiB), f3.csv (5 bytes)")
    assert reported.endswith(" and 5 more")
    assert "files" not in shown(artifacts=[])


def test_each_attempt_says_where_it_was() -> None:
    tries = [
        attempt(1, host="h1"),
        attempt(2, host="h2", worker_name="h2/1"),
        attempt(3, worker_name="node/1"),
    ]
    page = render(run_page(run(attempts=tries), "UTC", NOW), 140)
    rows = [line for line in page.splitlines() if line.lstrip()[:1] in {"1", "2", "3"}]
    assert ["host h1" in rows[0], "host h2" in rows[1], "node/1" in rows[2]] == [True, True, True], page


def test_names_of_machines_are_never_read_as_escapes() -> None:
    page = render(
        run_page(run(worker=ID, host="h\x1b[2J", triggered_by_name="[red]"), "UTC", NOW), 140, colour=True
    )
    assert "\x1b[2J" not in page
    assert "[red]" in page


class Listener:
    """A session that keeps the notes for people."""

    def __init__(self, *, is_table: bool) -> None:
        self.is_table, self.notes = is_table, list[str]()
        self.client = SimpleNamespace(runs=SimpleNamespace(explain=self.explain))

    def note(self, text: str) -> None:
        self.notes.append(text)

    @staticmethod
    def explain(run_id: UUID) -> Any:
        return SimpleNamespace(sentence="Run 7 waits for attempt 2 at noon.")


def test_who_waits_for_a_run_reads_of_each_failed_attempt_once() -> None:
    error = {"code": "boom", "message": "It broke."}
    first, second = attempt(1, error=error), attempt(2, status="timed_out")
    steps = [
        run(status="running", attempts=[attempt(1, status="running", finished_at=None)]),
        run(status="ready", attempts=[first]),
        run(status="ready", attempts=[first]),
        run(status="running", attempts=[first, attempt(2, status="running", finished_at=None)]),
        run(status="timed_out", attempts=[first, second]),
    ]
    person, program = Listener(is_table=True), Listener(is_table=False)
    for listener in (person, program):
        reporter = RunReporter(cast(Session, listener))
        for step in steps:
            reporter.report(step, is_long=False)
    assert person.notes == [
        "Attempt 1 failed: It broke.",
        "Run 7 waits for attempt 2 at noon.",
        "Attempt 2 timed out",
    ]
    assert program.notes == []


def test_who_waits_for_a_run_that_does_not_start_reads_why() -> None:
    person = Listener(is_table=True)
    reporter = RunReporter(cast(Session, person))
    for is_long in (False, True, True):
        reporter.report(run(attempt_count=0, attempts=[]), is_long=is_long)
    assert person.notes == ["Run 7 waits for attempt 2 at noon."]
