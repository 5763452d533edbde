"""Apps without a server: what the decorator takes, refuses and leaves as it was."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import foliot
from foliot import Context, Fail, Foliot
from foliot.handlers.python_call import bind_arguments
from foliot.sdk import AppDefinitionError
from foliot.sdk.context import FakeContext
from foliot.sdk.sync.entries import app_entries

app = Foliot("billing")
CTX = Context("w", "j", "charge", "r", 1, 1, "manual", datetime(2027, 1, 15, tzinfo=UTC))


@app.job(cron="0 6 * * *", timezone="Europe/Paris", timeout=timedelta(minutes=5), retry=2, tags=["money"])
def charge(ctx: Context, currency: str = "EUR") -> str:
    """Charge what is open.

    This is for readers of the code.
    """
    return f"{ctx.run_id} {currency}"


@app.job
async def report(day: str, *, full: bool = False) -> str:
    return f"{day} {full}"


def takes_nothing() -> None:
    """For decorating in a test."""


def needs_amount(amount: int) -> int:
    return amount


def entry(job: foliot.Job[..., Any]) -> dict[str, Any]:
    return job.as_json()


async def test_a_decorated_function_stays_what_it_was() -> None:
    assert charge(CTX, currency="USD") == "r USD"
    assert await report("monday", full=True) == "monday True"
    assert inspect.signature(charge) == inspect.signature(charge.function)
    assert charge.name == "charge"
    assert [job.name for job in app.jobs] == ["charge", "report"]


def test_a_job_is_the_json_of_the_api() -> None:
    reported = entry(charge)
    assert reported["schedule"] == {"kind": "cron", "expr": "0 6 * * *", "timezone": "Europe/Paris"}
    assert reported["config"] == {"call": f"{__name__}:charge"}
    assert (reported["timeout"], reported["retry"], reported["tags"]) == ("5m", {"max": 2}, ["money"])
    assert reported["description"] == "Charge what is open."
    assert reported["external_ref"] == {"source": "code", "app": "billing"}
    assert [each.name for each in app_entries(app)] == ["charge", "report"]


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ({"every": "10m"}, {"kind": "interval", "every": "10m"}),
        ({"every": timedelta(seconds=90)}, {"kind": "interval", "every": "1m30s"}),
        ({"at": "2027-01-02T18:00:00Z"}, {"kind": "once", "at": "2027-01-02T18:00:00Z"}),
        ({"at": datetime(2027, 1, 2, tzinfo=UTC)}, {"kind": "once", "at": "2027-01-02T00:00:00+00:00"}),
        ({"when": "every weekday at 9am"}, {"words": "every weekday at 9am"}),
        ({"schedule": {"kind": "interval", "every": "1m"}}, {"kind": "interval", "every": "1m"}),
        ({}, {"kind": "manual"}),
    ],
)
def test_a_schedule_is_named_in_one_way(options: Any, schedule: dict[str, str]) -> None:
    assert entry(Foliot("a").job(**options)(takes_nothing))["schedule"] == schedule


@pytest.mark.parametrize(
    ("options", "function", "reported"),
    [
        ({"cron": "0 6 * * *", "every": "1m"}, takes_nothing, "cron and every"),
        ({"payload": {"x": 1}}, takes_nothing, "has no parameter x"),
        ({"payload": {"amuont": 1}}, needs_amount, "did you mean amount?"),
        ({"every": "1m"}, needs_amount, "needs amount"),
        ({"payload": {"amount": {1}}}, needs_amount, "not JSON"),
        ({"evry": "1m"}, takes_nothing, "no option evry"),
        ({}, lambda: None, "top level of a module"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(options: Any, function: Any, reported: str) -> None:
    with pytest.raises(AppDefinitionError, match=reported.replace("?", r"\?")):
        Foliot("a").job(**options)(function)


def test_what_a_job_needs_may_come_from_its_payload_or_when_it_is_run() -> None:
    assert Foliot("a").job(every="1m", payload={"amount": 1})(needs_amount)(2) == 2
    manual = Foliot("a").job(needs_amount)
    with pytest.raises(TypeError, match="needs amount"):
        manual.run_now()
    with pytest.raises(TypeError, match="did you mean amount"):
        manual.run_now(amuont=1)


def takes_types(
    amount: int, day: date, ratio: float = 1, tags: list[str] | None = None, line: Line | None = None
) -> list[Any]:
    return [amount, day, ratio, tags, line]


@dataclass
class Line:
    item: str
    count: int


def test_an_input_is_read_as_the_annotations_say() -> None:
    job = Foliot("a").job(takes_types)
    given = {"amount": 1, "day": "2027-01-31", "ratio": 2, "tags": ["x"], "line": {"item": "a", "count": 2}}
    call = bind_arguments(job, given, FakeContext())
    assert call() == [1, date(2027, 1, 31), 2.0, ["x"], Line("a", 2)]
    assert bind_arguments(job, {"amount": 1, "day": "2027-01-31"}, FakeContext())()[2:] == [1, None, None]


@pytest.mark.parametrize(
    "given, problem",
    [
        ({"amount": "1", "day": "2027-01-31"}, "amount: .*valid integer"),
        ({"amount": 1, "day": "soon"}, "day: .*date"),
        ({"amount": 1, "day": "2027-01-31", "tags": ["a", 2]}, r"tags\.1: .*string"),
        ({"amount": 1, "day": "2027-01-31", "line": {"item": "a"}}, "line.*count"),
    ],
)
def test_an_input_that_does_not_fit_the_annotations_is_refused(given: dict[str, Any], problem: str) -> None:
    job = Foliot("a").job(takes_types)
    with pytest.raises(Fail, match=problem) as refused:
        bind_arguments(job, given, FakeContext())
    assert refused.value.code == "input_invalid"
    with pytest.raises(TypeError, match=problem):
        job.run_now(**given)
    with pytest.raises(TypeError, match=problem):
        job.run_each([{"amount": 1, "day": "2027-01-31"}, given])


def test_a_wrong_option_is_reported_job_by_job_before_anything_is_sent() -> None:
    wrong = Foliot("a")
    wrong.job(every="1 fortnight")(takes_nothing)
    with pytest.raises(AppDefinitionError, match="takes_nothing /schedule/every"):
        app_entries(wrong)


def test_an_app_has_each_name_once() -> None:
    twice = Foliot("a")
    twice.job(takes_nothing)
    with pytest.raises(AppDefinitionError, match="two jobs called takes_nothing"):
        twice.job(takes_nothing)
    assert twice.job(name="again")(takes_nothing).name == "again"


def test_progress_keeps_a_line_for_each_percent_at_most() -> None:
    lines: list[str] = []
    ctx = Context("w", "j", "n", "r", 1, 1, "manual", CTX.planned_for, lambda _, text: lines.append(text))
    for done in range(1_000):
        ctx.progress(done + 1, 1_000, "rows")
    assert len(lines) == 101
    assert lines[-1] == "100 % (1000 of 1000): rows"


def test_importing_an_app_loads_no_client_and_opens_nothing(tmp_path: Path) -> None:
    """The processes that functions run in load it too."""
    module = "from foliot import Context, Fail, Foliot, Retry, Skip\n"
    module += "app = Foliot('a')\n@app.job(every='1m')\ndef work(ctx: Context) -> None: ...\n"
    (tmp_path / "work.py").write_text(module)
    code = "import sys, work; print([m for m in ('httpx2', 'pydantic', 'fastapi', 'psycopg') if m in sys.modules])"
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_secrets_are_named_in_the_config_by_what_the_function_calls_them() -> None:
    config = entry(Foliot("a").job(secrets={"token": "crm-token"})(takes_nothing))["config"]
    assert config["secrets"] == {"token": {"secret": "crm-token"}}
    assert "secrets" not in entry(Foliot("a").job(takes_nothing))["config"]
