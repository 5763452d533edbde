"""Jobs as a file: planned, applied, applied again, pruned, exported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foliot.cli.job_file import read_job_file
from foliot.cli.yaml_text import read_yaml
from foliot.domain.errors import Invalid
from foliot.sdk.sync.job_export import write_yaml
from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)

SHEET = """
set: etl
jobs:
  - name: extract
    type: python
    config: {call: "work:extract"}
    schedule: every weekday at 6am
    window: {start: 22:00, end: 06:30}
  - name: load
    type: python
    config: {call: "work:load"}
    schedule: {kind: manual}
    depends_on: [{job: extract, on: success}]
    tags: [etl]
  - name: beat
    type: http
    config: {url: "https://example.test/"}
    schedule: every 10 minutes
"""


async def plan_of(run_command: RunCommand, path: Path, *flags: str) -> dict[str, list[str]]:
    reported = (await run_command("apply", "-f", str(path), "--plan", *flags)).json
    return {
        name: [each["name"] for each in reported[name]]
        for name in ("create", "change", "archive", "same", "untouched")
    }


async def test_a_file_is_planned_applied_and_then_changes_nothing(
    run_command: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SHEET)
    await run_command("jobs", "create", "--name", "by hand", "--python", "a:b", "--every", "1h")
    plan = await plan_of(run_command, path)
    assert sorted(plan["create"]) == ["beat", "extract", "load"]
    assert plan["untouched"] == ["by hand"]
    assert [job["name"] for job in (await run_command("jobs", "list")).json["items"]] == ["by hand"]
    applied = await run_command("apply", "-f", str(path))
    assert applied.code == 0, applied.err
    again = await plan_of(run_command, path)
    assert (again["create"], again["change"]) == ([], [])
    assert sorted(again["same"]) == ["beat", "extract", "load"]
    assert "No changes." in (await run_command("apply", "-f", str(path), "-o", "table")).out
    load = (await run_command("jobs", "show", "load")).json
    assert load["depends_on"][0]["job"] == (await run_command("jobs", "show", "extract")).json["id"]
    assert load["tags"] == ["etl", "file:etl"]


@pytest.mark.requirement("S4-8", "C-10")
async def test_enabled_in_a_file_counts_where_it_is_written(run_command: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SHEET)
    await run_command("apply", "-f", str(path))
    edited = await run_command("jobs", "edit", "beat", "--disabled", "-o", "table")
    assert "/enabled  true  ->  false" in edited.out
    assert (await plan_of(run_command, path))["change"] == [], "left out, a disabled job stays disabled"
    path.write_text(f"{SHEET}    enabled: true\n")
    assert (await plan_of(run_command, path))["change"] == ["beat"]
    assert (await run_command("apply", "-f", str(path), "--yes")).code == 0
    assert (await run_command("jobs", "show", "beat")).json["status"] == "active"
    path.write_text(f"{SHEET}    enabled: false\n")
    assert (await run_command("apply", "-f", str(path), "--yes")).code == 0
    assert (await run_command("jobs", "show", "beat")).json["enabled"] is False


async def test_what_is_exported_applies_as_no_change(run_command: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SHEET)
    await run_command("apply", "-f", str(path))
    flags = (
        "--tz",
        "Asia/Tokyo",
        "--retries",
        "2",
        "--retry-delays",
        "1m,2m",
        "--payload",
        "22:00",
        "--max-runs",
        "3",
    )
    made = await run_command(
        "jobs", "create", "--name", "odd", "--http", "https://example.test/", "--every", "90s", *flags
    )
    assert made.code == 0, made.err
    exported = tmp_path / "all.yaml"
    exported.write_text((await run_command("export")).out)
    plan = await plan_of(run_command, exported)
    assert (plan["create"], plan["change"], plan["untouched"]) == ([], [], [])
    assert sorted(plan["same"]) == ["beat", "extract", "load", "odd"]


async def test_prune_archives_what_this_file_made_and_nothing_else(
    run_command: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SHEET)
    await run_command("jobs", "create", "--name", "by hand", "--python", "a:b", "--every", "1h")
    await run_command("apply", "-f", str(path))
    path.write_text(SHEET[: SHEET.index("  - name: beat")].replace("6am", "7am"))
    plan = await plan_of(run_command, path, "--prune")
    assert (plan["change"], plan["archive"], plan["untouched"]) == (["extract"], ["beat"], ["by hand"])
    asked = await run_command("apply", "-f", str(path), "--prune")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert (await run_command("apply", "-f", str(path), "--prune", "--yes")).code == 0
    names = sorted(job["name"] for job in (await run_command("jobs", "list")).json["items"])
    assert names == ["by hand", "extract", "load"]


async def test_a_name_that_means_nothing_is_reported_before_anything_is_done(
    run_command: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "jobs: [{name: a, type: x, schedule: {kind: manual}, depends_on: [nobody], calendars: [none]}]"
    )
    done = await run_command("apply", "-f", str(path))
    assert done.code == 2
    assert '"a" /depends_on: job not found: "nobody".' in done.err
    assert 'calendar not found: "none"' in done.err


async def test_wrong_words_of_a_job_that_exists_are_reported_with_its_name_and_line(
    run_command: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(SHEET)
    assert (await run_command("apply", "-f", str(path))).code == 0
    path.write_text(SHEET.replace("6am", "6am in the year of the dog"))
    for flags in (("--plan",), ()):
        done = await run_command("apply", "-f", str(path), *flags)
        assert done.code == 2
        assert re.search(r'jobs.yaml, line \d+: "extract" /schedule/words: ', done.err), done.err


async def test_a_name_that_several_jobs_have_is_refused_with_their_ids(
    run_command: RunCommand, tmp_path: Path
) -> None:
    create = ("jobs", "create", "twin", "--python", "a:b", "--every")
    ids = [(await run_command(*create, every)).json["id"] for every in ("1h", "2h")]
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "jobs:\n"
        "  - {name: twin, type: python, config: {call: 'a:b'}, schedule: {kind: manual}}\n"
        "  - {name: b, type: python, config: {call: 'a:b'}, schedule: {kind: manual}, depends_on: [twin]}\n"
    )
    done = await run_command("apply", "-f", str(path))
    assert done.code == 2
    assert '"twin": 2 jobs on the server have this name: ' in done.err
    assert all(job_id in done.err for job_id in ids)
    assert "Every 2 hours" in done.err
    path.write_text(
        "jobs: [{name: b, type: python, config: {call: 'a:b'}, schedule: {kind: manual}, depends_on: [twin]}]"
    )
    done = await run_command("apply", "-f", str(path))
    assert '"b" /depends_on: "twin": 2 jobs on the server have this name: ' in done.err
    assert "Write an id here instead." in done.err
    path.write_text(path.read_text().replace("[twin]", f"['{ids[1]}']"))
    assert (await run_command("apply", "-f", str(path))).code == 0


def test_all_that_is_wrong_with_a_file_is_reported_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        read_job_file("jobs: [{name: a, type: http, shedule: x}, {name: b, schedule: daily}]", "jobs.yaml")
    assert 'jobs.yaml, line 1: "a" /shedule: There is no field "shedule" here. Did you mean "schedule"?' in (
        caught.value.hint or ""
    )
    assert '"b" /type: Field required' in (caught.value.hint or "")


def test_yaml_has_no_surprises() -> None:
    text = "on: success\nat: 22:00\nday: 2027-01-02\nno: off\nzero: 010\nnumber: 1.5\ntrue_: true\nnothing: null\n"
    assert read_yaml(text, "x") == {
        "on": "success",
        "at": "22:00",
        "day": "2027-01-02",
        "no": "off",
        "zero": "010",
        "number": 1.5,
        "true_": True,
        "nothing": None,
    }


@pytest.mark.parametrize(
    "value", ["22:00", "on", "1.5", "null", "true", "010", "~", "- x", "", "a: b", "é\n", "1e3"]
)
def test_what_is_written_reads_back(value: str) -> None:
    assert read_yaml(write_yaml({"x": [value]}), "x") == {"x": [value]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2", "line 2"),
        ("a: &x 1\nb: *x", "line 2"),
        ("a: [1", "line"),
        ("!!python/none x", "line 1"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(text: str, line: str) -> None:
    with pytest.raises(Invalid, match=line):
        read_yaml(text, "jobs.yaml")


async def test_prune_stays_inside_the_set_of_its_file(run_command: RunCommand, tmp_path: Path) -> None:
    """Two files without `set:` used to share one, and pruning one archived the jobs of the other."""
    one, other = tmp_path / "billing" / "jobs.yaml", tmp_path / "reports" / "jobs.yaml"
    for path, name in ((one, "invoice"), (other, "report")):
        path.parent.mkdir()
        path.write_text(
            f"jobs: [{{name: {name}, type: python, config: {{call: 'a:b'}}, schedule: daily at 6am}}]"
        )
        assert (await run_command("apply", "-f", str(path), "--prune", "--yes")).code == 0
    assert (await run_command("jobs", "show", "invoice")).json["tags"] == ["file:billing-jobs"]
    other.write_text("jobs: []")
    assert (await run_command("apply", "-f", str(other), "--prune", "--yes")).code == 0
    assert [job["name"] for job in (await run_command("jobs", "list")).json["items"]] == ["invoice"]
    other.write_text(one.read_text().replace("6am", "7am"))
    refused = await run_command("apply", "-f", str(other))
    assert (refused.code, '"invoice" belongs to the set "billing-jobs"' in refused.err) == (4, True)
    assert (await run_command("apply", "-f", str(other), "--force")).code == 0
    assert (await run_command("jobs", "show", "invoice")).json["tags"] == ["file:reports-jobs"]


@pytest.mark.parametrize("flags", [("--plan",), ()])
async def test_a_plan_refuses_what_a_write_would_refuse_and_names_job_and_line(
    run_command: RunCommand, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "jobs:\n"
        "  - name: fine\n    type: python\n    config: {call: 'a:b'}\n    schedule: every day at 6am\n"
        "  - name: crowded\n    type: python\n    config: {call: 'a:b'}\n    schedule:\n"
        "      kind: cron\n      expr: 61 * * * *\n"
        "  - name: lost\n    type: http\n    config: {url: 'ftp://x'}\n    schedule: {kind: manual}\n"
    )
    done = await run_command("apply", "-f", str(path), *flags)
    assert done.code == 2
    assert f'{path}, line 11: "crowded" /schedule/expr: ' in done.err
    assert f'{path}, line 14: "lost" /config/url: ' in done.err
    assert "Nothing was done." in done.err
    assert (await run_command("jobs", "list")).json["items"] == []


async def test_calendars_limits_and_rooms_are_in_the_file_too(
    run_command: RunCommand, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    text = """
calendars:
  - name: Holidays
    kind: blackout
    rules: [{kind: absolute, start: 2027-01-01T00:00:00Z, end: 2027-01-02T00:00:00Z}]
limits:
  - {key: reports, cap: 2}
rooms:
  - {key: ops, name: Operations}
jobs:
  - name: report
    type: message
    config: {text: Write it., room: ops}
    schedule: every day at 6am
    calendars: [Holidays]
    concurrency_key: reports
"""
    path.write_text(text)
    done = await run_command("apply", "-f", str(path), "-o", "table")
    assert done.code == 0, done.err
    assert "4 created." in done.out
    assert "No changes." in (await run_command("apply", "-f", str(path), "-o", "table")).out
    path.write_text(text.replace("cap: 2", "cap: 3").replace("Operations", "Ops").replace("01-02T", "01-03T"))
    planned = (await run_command("apply", "-f", str(path), "--plan")).json
    assert [(each["noun"], each["changes"][0]["path"]) for each in planned["things"]] == [
        ("calendar", "/rules"),
        ("limit", "/cap"),
        ("room", "/name"),
    ]
    assert (await run_command("apply", "-f", str(path))).code == 0
    assert (await run_command("limits", "list")).json["items"][0]["cap"] == 3


async def test_a_job_that_returns_to_its_file_is_restored(run_command: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    text = "set: etl\njobs: [{name: a, type: python, config: {call: 'a:b'}, schedule: every day at 6am}]"
    path.write_text(text)
    await run_command("apply", "-f", str(path))
    first = (await run_command("jobs", "show", "a")).json["id"]
    path.write_text("set: etl\njobs: []")
    await run_command("apply", "-f", str(path), "--prune", "--yes")
    path.write_text(text.replace("6am", "7am"))
    assert (await run_command("apply", "-f", str(path))).json["create"] == [{"name": "a", "restored": True}]
    back = (await run_command("jobs", "show", "a")).json
    assert (back["id"], back["status"], back["schedule"]["expr"]) == (first, "active", "0 7 * * *")
    await run_command("jobs", "delete", "a", "--yes")
    assert (await run_command("jobs", "restore", "a", "--resume")).json["status"] == "active"
    assert (await run_command("jobs", "restore", "nobody")).code == 3
