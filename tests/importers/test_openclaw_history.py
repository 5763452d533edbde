"""What OpenClaw did before the import: its run lines, the state of its jobs, its deliveries and alerts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.ids import JobId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.past_run import PastState
from foliot.importers.openclaw import OpenClawMapping, read_openclaw
from foliot.importers.openclaw_runs import read_openclaw_runs
from foliot.importers.records import ImportedJob, RuleDraft

FILES = Path(__file__).parent / "files"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
AT = 1769062500412  # 2026-01-22 06:15 UTC


def job_with(**fields: Any) -> ImportedJob:
    record = {
        "id": "a",
        "schedule": "0 8 * * *",
        "payload": {"kind": "systemEvent", "text": "Hello."},
        **fields,
    }
    mapping = OpenClawMapping(channels={"slack": "ops", "telegram:-100555": "phones"}, default_zone="UTC")
    [job] = read_openclaw(json.dumps([record]), mapping, NOW).jobs
    return job


def line(**fields: Any) -> str:
    return json.dumps({"ts": AT + 18230, "jobId": "a", "action": "finished", "status": "ok", **fields})


def test_a_line_with_every_field_becomes_an_ended_run() -> None:
    text = line(
        runAtMs=AT, durationMs=18230, summary="3 beds are dry.", model="sonnet", provider="p", nextRunAtMs=AT + 1000,
        sessionId="s-1", delivered=True, deliveryStatus="delivered", usage={"input_tokens": 120, "output_tokens": 8},
    )  # fmt: skip
    [found] = read_openclaw_runs(text, NOW).lines
    assert (found.index, found.key, found.run.status) == (1, "a", RunStatus.SUCCEEDED)
    assert found.run.started_at == datetime(2026, 1, 22, 6, 15, 0, 412000, tzinfo=UTC)
    assert (found.run.finished_at - found.run.started_at).total_seconds() == 18.23
    assert found.run.output is not None
    assert (found.run.output["summary"], found.run.output["usage"]["input_tokens"]) == (
        "3 beds are dry.",
        120,
    )
    assert found.run.error is None


def test_the_shortest_line_an_error_and_a_skip_are_read() -> None:
    text = "\r\n".join((
        "\ufeff" + json.dumps({"ts": AT, "jobId": 42, "status": "ok"}),
        line(status="error", error="timeout", durationMs=1000),
        "",
        line(status="skipped", error="empty file"),
    ))  # fmt: skip
    history = read_openclaw_runs(text, NOW)
    assert history.rejected == ()
    short, failed, skipped = history.lines
    assert (short.key, short.run.started_at == short.run.finished_at) == ("42", True)
    assert failed.run.error is not None
    assert (failed.run.status, failed.run.error.message) == (RunStatus.FAILED, "timeout")
    assert (skipped.index, skipped.run.status, skipped.run.note) == (4, RunStatus.SKIPPED, "empty file")


@pytest.mark.parametrize(
    "bad",
    [
        "{", "3", "[]", "null", "[" * 100_000, "x" * 70_000, line(jobId=None), line(jobId={"a": 1}), line(status="late"), line(action="started"),
        line(ts="now"), line(ts=1e300), line(ts=-5), line(ts=None), line(ts=True), line(ts=4102444800000), line(durationMs=-1),
        line(durationMs="x"), line(durationMs=1e300), line(runAtMs=AT + 20_000), '{"ts": NaN, "jobId": "a", "status": "ok"}',
    ],
    ids=lambda text: text[:50],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named_and_stops_nothing(bad: str) -> None:
    history = read_openclaw_runs(f"{line()}\n{bad}\n{line(status='error')}\n", NOW)
    assert [each.index for each in history.lines] == [1, 3]
    assert [each.index for each in history.rejected] == [2]
    assert history.rejected[0].reason


def test_a_run_has_one_id_per_job_that_begins_with_its_start() -> None:
    [first] = read_openclaw_runs(line(summary="\u2028 in a text \x00"), NOW).lines
    [again] = read_openclaw_runs(line(summary="told otherwise"), NOW).lines
    one, other = (JobId(first.run.id_for(JobId(each))) for each in (_id(1), _id(2)))
    assert first.run.id_for(JobId(_id(1))) == again.run.id_for(JobId(_id(1)))
    assert one != other
    assert one.int >> 80 == int(first.run.started_at.timestamp() * 1000)
    assert first.run.output == {"summary": "\u2028 in a text "}


def _id(number: int) -> Any:
    from uuid import UUID

    return UUID(int=number)


@pytest.mark.requirement("S4-29")
def test_the_state_of_both_example_files_is_read() -> None:
    read = {
        job.key: job
        for name in ("openclaw-current.json", "openclaw-legacy.json")
        for job in read_openclaw((FILES / name).read_text(), OpenClawMapping(), NOW).jobs
    }
    states = {key: job.state for key, job in read.items() if job.state is not None}
    last = datetime(2026, 1, 22, 6, 15, 0, 412000, tzinfo=UTC)
    assert states == {
        "5d0c2f1e-greenhouse-am": PastState(last, RunStatus.SUCCEEDED),
        "c7-pump-pulse": PastState(None, RunStatus.FAILED, "timeout", 3),
    }


def test_a_legacy_word_of_the_state_counts_and_next_and_running_do_not() -> None:
    state = {
        "lastStatus": "error",
        "lastRunAtMs": AT,
        "lastError": "no\x00thing",
        "nextRunAtMs": 5,
        "runningAtMs": 7,
        "scheduleErrorCount": 2,
    }
    found = job_with(state=state).state
    assert found is not None
    assert (found.last_run_status, found.last_error, found.schedule_errors) == (
        RunStatus.FAILED,
        "nothing",
        2,
    )
    assert job_with(state={"nextRunAtMs": 5, "runningAtMs": 7}).state is None
    assert job_with(state={"lastStatus": "skipped", "lastRunAtMs": AT}).state is None


@pytest.mark.parametrize(
    "state",
    [
        {"lastStatus": "ok", "lastRunAtMs": "x"}, {"lastStatus": "ok", "lastRunAtMs": 1e300}, {"lastStatus": "ok", "lastRunAtMs": 4102444800000},
        {"consecutiveErrors": -1}, {"consecutiveErrors": 1e9}, {"consecutiveErrors": "3"}, {"consecutiveErrors": True},
    ],
)  # fmt: skip
def test_a_state_that_is_wrong_is_named_and_the_job_still_comes(state: dict[str, Any]) -> None:
    job = job_with(state=state)
    assert job.state is None
    assert any("state is not taken over" in each for each in job.warnings)


def test_deliveries_and_alerts_become_rules() -> None:
    both = job_with(
        delivery={"mode": "announce", "channel": "slack", "to": "channel:C0"},
        failureAlert={"after": 3, "cooldownMs": 60000},
    )
    assert both.rules == (
        RuleDraft("delivery", ("run_succeeded",), channel="ops"),
        RuleDraft("failure alert", ("run_failed",), channel="ops", after_n=3, cooldown="60s"),
    )
    hook = job_with(delivery={"mode": "webhook", "to": "https://hooks.example.com/a"})
    assert hook.rules == (
        RuleDraft("delivery", ("run_succeeded", "run_failed"), url="https://hooks.example.com/a"),
    )
    quiet = job_with(delivery={"mode": "deliver", "channel": "telegram", "to": "-100555"}, failureAlert=False)
    assert quiet.rules == (RuleDraft("delivery", ("run_succeeded",), channel="phones"),)
    apart = job_with(
        delivery={
            "mode": "none", "failureDestination": {"mode": "webhook", "to": "http://a.example/f"},
            "completionDestination": {"mode": "webhook", "to": "http://a.example/c"},
        }
    )  # fmt: skip
    assert [(each.title, each.url) for each in apart.rules] == [
        ("completion", "http://a.example/c"),
        ("failure", "http://a.example/f"),
    ]
    skips = job_with(failureAlert={"mode": "webhook", "to": "http://a.example/f", "includeSkipped": True})
    assert skips.rules == (
        RuleDraft(
            "failure alert",
            ("run_failed", "run_skipped"),
            url="http://a.example/f",
            after_n=2,
            cooldown="3600s",
        ),
    )
    assert all(job.warnings == both.warnings for job in (hook, quiet, apart, skips)), "nothing is left out"
    assert job_with().rules == job_with(delivery={"mode": "none"}).rules == ()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"delivery": {"mode": "announce", "channel": "signal", "to": "+1"}}, "signal +1"),
        ({"delivery": {"mode": "announce"}}, "the chat that was used last"),
        ({"delivery": {"mode": "webhook", "to": "ftp://a"}}, "no http(s) address"),
        ({"delivery": {"mode": "webhook"}}, "no http(s) address"),
        ({"delivery": {"mode": "pigeon"}}, "'pigeon' is not known"),
        ({"deliver": True, "channel": "signal"}, "signal"),
        ({"payload": {"kind": "agentTurn", "message": "a", "deliver": True, "channel": "signal"}}, "signal"),
        ({"sessionTarget": "isolated", "payload": {"kind": "agentTurn", "message": "a"}}, "the chat that was used last"),
        ({"failureAlert": {"after": 0, "channel": "slack"}}, "after is 0"),
        ({"failureAlert": {"cooldownMs": "x", "channel": "slack"}}, "cooldownMs is 'x'"),
        ({"notify": True}, "old form"),
    ],
)  # fmt: skip
def test_what_becomes_no_rule_is_named_with_its_reason(fields: dict[str, Any], named: str) -> None:
    job = job_with(**fields)
    assert job.rules == ()
    assert named in " ".join(job.warnings)
