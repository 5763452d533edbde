"""`foliot jobs` against a real server: made, seen, changed, stopped, gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)

HELLO = ("jobs", "create", "--name", "hello", "--python", "work:hello")


async def test_a_job_is_made_by_each_of_the_four_ways_to_say_when(run_command: RunCommand) -> None:
    ways = (
        ("--schedule", "*/30 * * * *"),
        ("--every", "30s"),
        ("--at", "2099-02-12T18:00:00-07:00"),
        ("--when", "every weekday at 9am"),
    )
    made = [
        (
            await run_command(
                "jobs", "create", "--name", f"job {place}", "--http", "https://example.test/", *way
            )
        ).json
        for place, way in enumerate(ways)
    ]
    assert [job["schedule"]["kind"] for job in made] == ["cron", "interval", "once", "cron"]
    assert made[2]["schedule"]["at"] == "2099-02-13T01:00:00Z"
    assert made[3]["schedule"]["expr"] == "0 9 * * 1-5"
    listed = (await run_command("jobs", "list")).json
    assert sorted(job["name"] for job in listed["items"]) == ["job 0", "job 1", "job 2", "job 3"]
    assert listed["next_cursor"] is None


async def test_the_name_may_stand_first_and_is_said_once(run_command: RunCommand) -> None:
    flags = ("--python", "work:hello", "--every", "30s")
    assert (await run_command("jobs", "create", "ping", *flags)).json["name"] == "ping"
    assert (await run_command("jobs", "create", "pong", "--name", "pong", *flags)).json["name"] == "pong"
    both = await run_command("jobs", "create", "ping", "--name", "pong", *flags)
    assert both.code == 2
    assert 'Two different names: "ping" and "pong".' in both.err
    neither = await run_command("jobs", "create", *flags)
    assert neither.code == 2
    assert "The name is missing." in neither.err


async def test_a_sentence_with_a_task_names_its_job(run_command: RunCommand) -> None:
    work = ("--python", "builtins:print", "-o", "json")
    made = await run_command("jobs", "create", "--when", "check the deployment every 10 minutes", *work)
    assert (made.json["name"], made.json["schedule"]["every"]) == ("check the deployment", "10m")
    named = await run_command("jobs", "create", "other", "--when", "check the deployment every hour", *work)
    assert named.json["name"] == "other"


@pytest.mark.parametrize("flags", [(), ("--every", "5m", "--when", "every day at 9am")])
async def test_exactly_one_schedule_is_asked_for(run_command: RunCommand, flags: tuple[str, ...]) -> None:
    done = await run_command(*HELLO, *flags)
    assert done.code == 2
    assert "exactly one of --schedule CRON, --every 30s, --at TIME, --when WORDS or --manual" in done.err


async def test_the_list_has_the_shape_that_people_know(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--every", "3h")  # far off, however slow the machine
    await run_command(
        "jobs", "create", "--name", "Deploy Watch", "--python", "work:watch", "--schedule", "0 9 * * 1-5"
    )
    await run_command("jobs", "pause", "Deploy Watch", "--reason", "too loud")
    listed = await run_command(
        "jobs", "list", "--sort", "name", "-o", "table"
    )  # both were made at one instant
    heading, paused, active = listed.out.splitlines()
    assert heading == "Jobs (1 active, 1 paused):"
    assert paused.split()[:9] == ["‖", "Deploy", "Watch", "python", "0", "9", "*", "*", "1-5"]
    assert "Paused (too loud)" in paused
    assert active.split()[:6] == ["✓", "hello", "python", "every", "3h", "Never"]
    assert "Next: in " in active


async def test_a_job_answers_to_its_id_its_beginning_and_its_name(run_command: RunCommand) -> None:
    job_id = (await run_command(*HELLO, "--every", "30s")).json["id"]
    for called in (job_id, job_id[:14], "hello"):
        assert (await run_command("jobs", "show", called)).json["id"] == job_id


async def test_a_name_that_several_have_lists_them_and_one_that_nobody_has_is_not_found(
    run_command: RunCommand,
) -> None:
    ids = [(await run_command(*HELLO, "--every", "30s")).json["id"] for _ in range(2)]
    several = await run_command("jobs", "show", "hello")
    assert several.code == 2
    assert all(job_id in several.err for job_id in ids)
    assert "hello: active, Every " in several.err
    assert ", created 20" in several.err
    nobody = await run_command("jobs", "show", "hell")
    assert nobody.code == 3
    assert 'Job not found: "hell".' in nobody.err
    assert 'Did you mean "hello"?' in nobody.err


async def test_a_misspelt_name_gets_the_near_ones(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--manual")
    await run_command("rooms", "create", "ops-room")
    await run_command("members", "add", "Amelia", "--role", "editor")
    for noun, ref, near in (("jobs", "helo", "hello"), ("rooms", "ops-rom", "ops-room")):
        refused = await run_command(noun, "show", ref)
        assert (refused.code, refused.out) == (3, "")
        assert f'Did you mean "{near}"?' in refused.err
    assert 'Did you mean "Amelia"?' in (await run_command("members", "remove", "amelai", "--yes")).err
    assert "Did you mean http?" in (await run_command("job-types", "htp")).err
    far = await run_command("jobs", "show", "zzz")
    assert "List them with `foliot jobs list`." in far.err
    rule = await run_command("notify", "rules", "show", "zzz")
    assert "List them with `foliot notify rules list`." in rule.err


async def test_a_dry_run_shows_the_sentence_and_the_times_and_makes_nothing(run_command: RunCommand) -> None:
    done = await run_command(
        *HELLO, "--when", "every weekday at 9am", "--tz", "Europe/Paris", "--dry-run", "-o", "table"
    )
    assert done.code == 0
    assert done.out.startswith("Would create hello: Every weekday at 09:00, Europe/Paris.")
    assert done.out.count("09:00 CE") == 5
    assert (await run_command("jobs", "list")).json["items"] == []


async def test_every_rule_of_a_job_has_its_flag(run_command: RunCommand, tmp_path: Path) -> None:
    upstream = (await run_command(*HELLO, "--manual")).json["id"]
    (tmp_path / "c.json").write_text(
        '{"name": "holidays", "kind": "blackout", "rules": [{"kind": "weekly", "days": ["sun"], "start": "02:00", "end": "03:00"}]}'
    )
    calendar = (await run_command("calendars", "create", "--file", str(tmp_path / "c.json"))).json["id"]
    made = await run_command(
        "jobs", "create", "night", "--python", "work:x", "--schedule", "0 1 * * *",
        "--window", "fri-mon 22:00-6:00", "--outside-window", "skip", "--calendar", "holidays",
        "--depends-on", "hello,on=any,mode=gate,max_age=2h", "--breaker", "3:fail", "--retries", "4",
        "--retry-strategy", "exponential", "--retry-base", "2s", "--retry-cap", "1m", "--keep", "30d",
        "--keep-last", "10", "--start-deadline", "5m", "--concurrency-key", "printer",
    )  # fmt: skip
    assert made.code == 0, made.err
    job = made.json
    assert job["window"] == {
        "start": "22:00", "end": "06:00", "days": ["mon", "fri", "sat", "sun"], "otherwise": "skip",
    }  # fmt: skip
    assert job["calendars"] == [calendar]
    [edge] = job["depends_on"]
    assert (edge["job"], edge["on"], edge["mode"], edge["max_age"]) == (upstream, "any", "gate", "2h")
    assert job["breaker"] == {"after": 3, "action": "fail"}
    retry = job["retry"]
    assert (retry["max"], retry["strategy"], retry["base"], retry["cap"]) == (4, "exponential", "2s", "1m")
    assert (job["retention"]["keep"], job["retention"]["keep_last"]) == ("30d", 10)
    assert (job["start_deadline"], job["concurrency_key"]) == ("5m", "printer")
    cleared = await run_command(
        "jobs",
        "edit",
        "night",
        "--window",
        "none",
        "--calendar",
        "none",
        "--depends-on",
        "none",
        "--breaker",
        "none",
    )
    after = cleared.json
    assert (after["window"], after["calendars"], after["depends_on"]) == (None, [], [])
    assert after["breaker"] == {"after": 3, "action": "none"}
    for wrong in ("25-26", "moon 01:00-02:00"):
        refused = await run_command("jobs", "edit", "night", "--window", wrong)
        assert (refused.code, "--window" in refused.err) == (2, True)


@pytest.mark.requirement("S4-CLI-3")
async def test_pause_resume_run_history_and_delete(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--schedule", "0 9 * * *")
    paused = (await run_command("jobs", "pause", "hello", "--until", "2h")).json
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    waits = await run_command("jobs", "next", "hello", "-o", "table")
    assert "The job is paused until " in waits.err
    await run_command("jobs", "resume", "hello")
    again = await run_command("jobs", "pause", "hello", "--until", "3h", "-o", "table")
    assert again.out.startswith("Paused hello until ")
    longer = await run_command("jobs", "pause", "hello", "--until", "2099-01-02 18:00", "-o", "table")
    assert longer.out.startswith("hello is paused until Fri 02 Jan 2099 18:00 UTC")
    assert longer.out.rstrip().endswith("(changed).")
    same = await run_command("jobs", "pause", "hello", "--until", "2099-01-02 18:00", "-o", "table")
    assert same.out.rstrip().endswith("(as before).")
    await run_command("jobs", "resume", "hello")
    await run_command("jobs", "pause", "hello")
    why = await run_command("why", "hello", "-o", "table")
    assert " the job is paused by an administrator of the installation" in " ".join(why.out.split())
    assert (await run_command("jobs", "resume", "hello")).json["status"] == "active"
    run = (await run_command("jobs", "run", "hello", "--input", '{"full": true}')).json
    assert (run["trigger"], run["status"], run["number"]) == ("manual", "ready", 1)
    assert (await run_command("jobs", "history", "hello")).json["items"][0]["id"] == run["id"]
    assert (await run_command("runs", "show", "hello#1")).json["id"] == run["id"]
    assert (await run_command("runs", "show", "hello#2")).code == 3
    assert (await run_command("runs", "cancel", "hello#1", "--reason", "a test")).json[
        "status"
    ] == "cancelled"
    ended = await run_command("why", "hello#1", "-o", "table")
    assert "cancelled" in ended.out
    refused = await run_command("jobs", "delete", "hello")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert (await run_command("jobs", "delete", "hello", "--yes")).code == 0
    assert (await run_command("jobs", "list")).json["items"] == []


async def test_a_manual_job_says_that_it_has_no_schedule_and_has_not_run(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--manual")
    times = await run_command("jobs", "next", "hello", "-o", "table")
    assert times.err == 'It has no schedule: it runs on request, with: foliot jobs run "hello"\n'
    why = (await run_command("why", "hello", "last run")).json
    assert why["sentence"].startswith("hello has not run yet. This job has no planned times: it waits for")


async def test_a_freeze_is_shown_where_the_next_time_is(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--every", "10m")
    freeze = ("freeze", "on", "--all", "--reason", "release day", "--until", "2h", "--yes")
    await run_command(*freeze, "--after", "latest")
    listed = (await run_command("jobs", "list", "-o", "table")).out
    assert "Held by a freeze" in listed
    assert "Next:" not in listed
    for command in (("jobs", "status"), ("jobs", "show", "hello")):
        shown = " ".join((await run_command(*command, "-o", "table")).out.split())
        assert "by a freeze until" in shown
        assert "(release day): the newest planned time within it runs then" in shown


async def test_an_edit_is_a_revision_and_can_be_taken_back(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--every", "30s")
    changed = await run_command(
        "jobs", "edit", "hello", "--timeout", "1m", "--note", "shorter", "-o", "table"
    )
    assert changed.out.splitlines()[1].split() == ["/timeout", "10m", "->", "1m"]
    revisions = (await run_command("jobs", "revisions", "hello")).json["items"]
    assert [(each["revision"], each["note"]) for each in revisions] == [(2, "shorter"), (1, None)]
    tried = await run_command("jobs", "revert", "hello", "1", "--dry-run", "-o", "table")
    assert "Nothing was done." in tried.out
    assert (await run_command("jobs", "revert", "hello", "1", "--yes")).json["timeout"] == "10m"


@pytest.mark.requirement("S4-CLI-4")
async def test_next_agenda_why_status_and_whoami_answer(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--when", "every day at 09:00", "--tz", "Asia/Tokyo")
    times = (await run_command("jobs", "next", "hello", "-n", "2", "-o", "table")).out.splitlines()
    assert len(times) == 3
    assert "09:00 JST" in times[1]
    assert "hello" in (await run_command("agenda", "--until", "2d", "-o", "table")).out
    assert "hello" in (await run_command("agenda")).json["items"][0]["job_name"]
    assert (await run_command("jobs", "why", "hello", "09:00")).json["verdict"] == "not_created"
    assert "1 active" in (await run_command("jobs", "status", "-o", "table")).out
    assert "system administrator" in (await run_command("whoami", "-o", "table")).out


async def test_each_kind_of_refusal_has_its_exit_code_and_no_traceback(run_command: RunCommand) -> None:
    await run_command(*HELLO, "--every", "30s")
    cases = {
        2: await run_command("jobs", "create", "--name", "x", "--python", "a:b", "--when", "every blue moon"),
        3: await run_command("runs", "show", "01920000-0000-7000-8000-000000000000"),
        4: await run_command("jobs", "resume", "hello"),
        6: await run_command("jobs", "list", FOLIOT_API_URL="http://127.0.0.1:9"),
        7: await run_command("jobs", "list", FOLIOT_API_KEY="fol_nobody"),
    }
    assert {wanted: said.code for wanted, said in cases.items()} == {code: code for code in cases}
    for said in cases.values():
        assert said.out == ""
        assert said.err.startswith("error[")
        assert "Traceback" not in said.err
