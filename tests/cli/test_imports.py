"""`foliot import` over the real API: disabled, idempotent, and honest about every record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)
FILES = Path(__file__).parents[1] / "importers" / "files"
LEGACY = (FILES / "openclaw-legacy.json").read_text()


def results(said: Any) -> dict[str, str]:
    return {each["key"]: each["result"] for each in said["records"]}


@pytest.mark.requirement("S4-30", "S4-32")
async def test_records_are_imported_once_reviewed_edited_and_imported_again(
    run_command: RunCommand, tmp_path: Path
) -> None:
    file = str(FILES / "openclaw-legacy.json")
    plan = await run_command("import", "openclaw", file, "--plan")
    assert plan.json["counts"] == {"imported": 5, "updated": 0, "unchanged": 0, "skipped": 0, "rejected": 2}
    assert (await run_command("jobs", "list")).json["items"] == []

    first = await run_command("import", "openclaw", file)
    assert first.code == 1, "some records were rejected"
    assert sum(first.json["counts"].values()) == 7
    reasons = {each["key"]: each["notes"] for each in first.json["records"] if each["result"] == "rejected"}
    assert "hour" in reasons["bad-6"][0]
    assert reasons["bad-7"] == ["The record has no payload."]
    jobs = {job["name"]: job for job in (await run_command("jobs", "list")).json["items"]}
    assert len(jobs) == 5
    assert {job["status"] for job in jobs.values()} == {"disabled"}
    assert jobs["Inbox sweep"]["external_ref"]["raw"]["jobId"] == "old-1"

    again = (await run_command("import", "openclaw", file)).json
    assert again["counts"]["unchanged"] == 5

    # The file changes: untouched jobs follow it, a job that was edited here does not.
    await run_command("jobs", "edit", "Inbox sweep", "--priority", "7")
    records = json.loads(LEGACY)
    for record in records[:2]:
        record["message" if "message" in record else "payload"] = (
            "Sweep it all." if "message" in record else {"kind": "agentTurn", "message": "Write two notes."}
        )
    changed = tmp_path / "jobs.json"
    changed.write_text(json.dumps(records))
    third = results((await run_command("import", "openclaw", str(changed))).json)
    assert (third["old-1"], third["42"], third["old-4"]) == ("skipped", "updated", "unchanged")
    forced = results((await run_command("import", "openclaw", str(changed), "--update")).json)
    assert (forced["old-1"], forced["42"]) == ("updated", "unchanged")
    swept = {job["name"]: job for job in (await run_command("jobs", "list")).json["items"]}["Inbox sweep"]
    assert (swept["status"], swept["config"]["text"]) == ("disabled", "Sweep it all.")


async def test_a_table_shows_each_record_and_how_to_review(run_command: RunCommand) -> None:
    said = await run_command("import", "system-crontab", str(FILES / "system-crontab"), "-o", "table")
    assert "4 imported, 2 rejected" in said.out
    assert "@fortnightly is not a schedule of cron." in " ".join(said.out.split())
    assert "foliot jobs list status:disabled" in said.out
    again = await run_command(
        "import", "system-crontab", str(FILES / "system-crontab"), "--shadow", "-o", "table"
    )
    assert "4 unchanged" in again.out
    assert "foliot cutover" not in again.out  # they stay disabled


async def test_a_plan_shows_the_schedule_in_words_and_the_next_time(run_command: RunCommand) -> None:
    planned = await run_command(
        "import", "system-crontab", str(FILES / "system-crontab"), "--plan", "-o", "table"
    )
    assert "SCHEDULE" in planned.out
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\dZ", planned.out)


async def test_a_list_says_which_jobs_are_in_shadow_mode(run_command: RunCommand) -> None:
    await run_command("import", "system-crontab", str(FILES / "system-crontab"), "--shadow")
    assert (await run_command("jobs", "list", "-o", "table")).out.count("Shadow (nothing runs)") == 4


@pytest.mark.parametrize(("source", "file"), [("systemd", "timers.txt"), ("kubernetes", "cronjobs.yaml")])
async def test_other_schedulers_pass_the_checks_of_the_server(
    run_command: RunCommand, source: str, file: str
) -> None:
    said = (await run_command("import", source, str(FILES / file))).json
    assert said["counts"]["imported"] >= 1
    assert said["counts"]["rejected"] == 1
