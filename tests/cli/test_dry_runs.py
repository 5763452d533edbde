"""--dry-run on the command line: it says what would be, in words and as JSON, and does nothing."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from foliot.domain.ids import WorkspaceId
from foliot.storage.tx import Database
from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE
from tests.services.remote_hosts import register_host, worker_principal

pytestmark = pytest.mark.timeout(PATIENCE)
BLACKOUT = {
    "name": "holidays",
    "kind": "blackout",
    "rules": [{"kind": "weekly", "start": "00:00", "end": "12:00", "days": ["sat"]}],
}


async def words(run_command: RunCommand, *args: str) -> str:
    said = await run_command(*args, "--dry-run", "-o", "table")
    assert said.code == 0, said.err
    assert said.out.rstrip().endswith("Nothing was done."), said.out
    return said.out


async def test_jobs_and_runs_are_tried(run_command: RunCommand) -> None:
    await run_command("jobs", "create", "nightly", "--python", "work:hello", "--schedule", "0 3 * * *")
    assert "Would create nightly#1" in await words(run_command, "jobs", "run", "nightly")
    assert "Would skip 2 planned times of nightly" in await words(
        run_command, "jobs", "skip-next", "nightly", "-n", "2"
    )
    assert (await run_command("jobs", "history", "nightly")).json["items"] == []
    run = (await run_command("jobs", "run", "nightly")).json
    assert "Would cancel nightly#1" in await words(run_command, "runs", "cancel", run["id"])
    assert (await run_command("runs", "retry", run["id"], "--dry-run")).code != 0
    await run_command("runs", "cancel", run["id"])
    assert "Would create nightly#2" in await words(run_command, "runs", "retry", run["id"])


async def test_calendars_and_freezes_are_tried(run_command: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "holidays.json"
    file.write_text(json.dumps(BLACKOUT))
    assert "Would create holidays" in await words(run_command, "calendars", "create", "-f", str(file))
    await run_command("calendars", "create", "-f", str(file))
    assert "No job uses it." in await words(run_command, "calendars", "replace", "holidays", "-f", str(file))
    assert "Would delete holidays" in await words(run_command, "calendars", "delete", "holidays")
    assert len((await run_command("calendars", "list")).json["items"]) == 1
    spain = ("calendars", "create", "spain", "--country", "ES", "--first-year", "2027", "--years", "1")
    assert "Would create spain" in await words(run_command, *spain)
    await run_command(*spain, "--date", "2027-12-24..2027-12-26", "--tz", "Europe/Madrid")
    year = (await run_command("calendars", "show", "spain", "--year", "2027", "-o", "table")).out
    assert "spain 2027, Europe/Madrid" in year
    assert "20  21  22  23  24# 25# 26#" in year
    assert "2027-01-01  New Year's Day" in year
    await run_command("freeze", "on", "--all", "--reason", "move", "--yes")
    assert 'Would turn off "move"' in await words(run_command, "freeze", "off")
    assert (await run_command("freeze", "list")).json["items"][0]["status"] == "in_force"


async def test_keys_members_and_workspaces_are_tried(run_command: RunCommand) -> None:
    reported = await words(run_command, "keys", "create", "--name", "laptop", "--scope", "viewer")
    assert "Would create laptop" in reported
    assert "fol_" not in reported
    assert "secret" not in (await run_command("keys", "create", "--name", "laptop", "--dry-run")).out
    assert "Would add Ada: user, editor" in await words(
        run_command, "members", "add", "Ada", "--role", "editor"
    )
    await run_command("members", "add", "Ada", "--role", "editor")
    await run_command("keys", "create", "--member", "Ada", "--name", "hers")
    assert "Would change Ada" in await words(run_command, "members", "change", "Ada", "--role", "viewer")
    assert "1 key would be revoked." in await words(run_command, "members", "remove", "Ada")
    assert "Would revoke hers" in await words(run_command, "keys", "revoke", "hers")
    assert len((await run_command("keys", "list")).json["items"]) == 2
    assert "Would create acme" in await words(run_command, "workspaces", "create", "acme")
    await run_command("workspaces", "create", "acme")
    assert "Would change acme" in await words(run_command, "workspaces", "change", "acme", "--name", "ACME")
    assert "0 jobs would be archived" in await words(run_command, "workspaces", "archive", "acme")
    assert len((await run_command("workspaces", "list")).json["items"]) == 2


async def test_limits_are_set_listed_tried_and_removed(run_command: RunCommand) -> None:
    assert "key db: at most 2" in await words(run_command, "limits", "set", "2", "--key", "db")
    assert (await run_command("limits", "list")).json["items"] == []
    assert (await run_command("limits", "set", "2", "--key", "db")).json["cap"] == 2
    assert (await run_command("limits", "set", "9")).json["key"] is None
    table = (await run_command("limits", "list", "-o", "table")).out.splitlines()
    assert [line.split()[-3:] for line in table[1:]] == [["9", "0", "0"], ["2", "0", "0"]]
    assert "Would remove the limit of key db" in await words(run_command, "limits", "remove", "--key", "db")
    assert (await run_command("limits", "remove", "--key", "db")).json == {"key": "db", "removed": True}
    assert (await run_command("limits", "remove", "--key", "db")).code == 3


async def test_a_leaked_key_is_ended_with_what_it_made(run_command: RunCommand) -> None:
    leaked = (await run_command("keys", "create", "--name", "leaked")).json
    child = (await run_command("keys", "create", "--name", "child", FOLIOT_API_KEY=leaked["secret"])).json
    assert child["made_by"] == leaked["id"]
    alone = await run_command("keys", "revoke", "leaked", "--yes", "-o", "table")
    assert "1 key made with it is still valid" in alone.err
    assert f"foliot keys revoke {leaked['id']} --made-too" in alone.err
    reported = await run_command("keys", "revoke", leaked["id"], "--made-too", "--yes", "-o", "table")
    assert "and 1 key made with it" in reported.out
    assert (await run_command("whoami", FOLIOT_API_KEY=child["secret"])).code != 0


async def test_applying_a_file_to_jobs_of_an_app_needs_force(run_command: RunCommand, tmp_path: Path) -> None:
    managed = {"source": "code", "app": "shop"}
    job = {
        "name": "sync",
        "type": "http",
        "config": {"url": "https://example.test/"},
        "schedule": {"kind": "manual"},
    }
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"jobs": [{**job, "external_ref": managed}]}))
    assert (await run_command("apply", "-f", str(file))).code == 0
    file.write_text(
        json.dumps({"jobs": [{**job, "external_ref": managed, "tags": ["x"]}, {**job, "name": "new"}]})
    )
    planned = await run_command("apply", "-f", str(file), "--plan", "-o", "table")
    assert 'managed by the app "shop": needs --force' in planned.out
    refused = await run_command("apply", "-f", str(file))
    assert (refused.code, 'managed by the app "shop"' in refused.err) == (4, True), refused.err
    assert len((await run_command("jobs", "list")).json["items"]) == 1
    done = await run_command("apply", "-f", str(file), "--force")
    assert done.code == 0, done.err
    assert "x" in (await run_command("jobs", "show", "sync")).json["tags"]


@pytest.mark.requirement("C-4", "C-6")
async def test_defaults_are_shown_tried_set_and_inherited(run_command: RunCommand, tmp_path: Path) -> None:
    tried = await run_command("defaults", "set", "--timeout", "20m", "--dry-run", "-o", "table")
    assert "Would be set. Nothing was done." in tried.out
    assert (await run_command("defaults", "show")).json["timeout"] == "10m"
    await run_command("jobs", "create", "nightly", "--python", "work:hello", "--schedule", "0 3 * * *")
    await run_command("jobs", "create", "own", "--python", "work:hello", "--manual", "--timeout", "10m")
    set_to = ("--timeout", "20m", "--retries", "1", "--keep-last", "5")
    assert (await run_command("defaults", "set", *set_to)).code == 0
    page = (await run_command("jobs", "show", "nightly", "-o", "table")).out
    assert "timeout    20m  (of the workspace)" in page, page
    assert (await run_command("jobs", "show", "own")).json["timeout"] == "10m"
    path = tmp_path / "jobs.yaml"
    await run_command("export", "-f", str(path))
    assert path.read_text().count("timeout: 10m") == 1, "an inherited value is not exported, an own one is"
    plan = (await run_command("apply", "-f", str(path), "--plan")).json
    assert ([each["name"] for each in plan["change"]], len(plan["same"])) == ([], 2)
    await run_command("defaults", "set", "--reset", "timeout", "--reset", "retry")
    assert (await run_command("jobs", "show", "nightly")).json["inherited"]["timeout"] == "installation"
    assert (await run_command("defaults", "set")).code == 2


async def test_budgets_are_set_listed_tried_and_removed(run_command: RunCommand) -> None:
    made = (await run_command("budgets", "set", "usd=25", "tokens=1e6/day,warn_at=none,action=warn")).json[
        "items"
    ]
    assert [(each["unit"], each["amount"], each["period"], each["warn_at"]) for each in made] == [
        ("tokens", "1000000", "day", None),
        ("usd", "25", "month", 0.8),
    ]
    assert (
        "Nothing was done." in (await run_command("budgets", "set", "usd=5", "--dry-run", "-o", "table")).out
    )
    changed = (await run_command("budgets", "set", "usd=5")).json["items"]
    assert [each["amount"] for each in changed] == ["1000000", "5"]
    assert "5 usd a month" in (await run_command("budgets", "list", "-o", "table")).out
    assert [each["unit"] for each in (await run_command("budgets", "remove", "usd")).json["items"]] == [
        "tokens"
    ]
    assert (await run_command("budgets", "remove", "usd")).code != 0
    assert (await run_command("budgets", "set", "25usd")).code != 0
    assert (await run_command("usage")).json["totals"] == {}
    job = await run_command(
        "jobs", "create", "models", "--http", "https://example.test", "--manual", "--budget", "usd=1/day"
    )
    assert job.json["budgets"][0]["period"] == "day"


async def test_rooms_and_types_are_tried(run_command: RunCommand) -> None:
    assert "Would create the room Support." in await words(
        run_command, "rooms", "create", "Support", "--key", "support"
    )
    assert (await run_command("rooms", "list")).json["items"] == []
    await run_command("rooms", "create", "Support", "--key", "support")
    assert "Would send message 1 to Support" in await words(run_command, "rooms", "send", "support", "hello")
    url = "https://chat.example.com/in"
    assert f"Would send to {url} the messages of Support" in await words(
        run_command, "rooms", "webhook", "support", url
    )
    assert (await run_command("rooms", "show", "support")).json["webhook"] is None
    await run_command("rooms", "webhook", "support", url)
    assert "Would remove the webhook of Support" in await words(
        run_command, "rooms", "webhook", "support", "--remove"
    )
    assert "Would send 0 deliveries again" in await words(run_command, "rooms", "redeliver", "support")
    assert "Would delete Support and 0 messages" in await words(run_command, "rooms", "delete", "support")
    left = (await run_command("rooms", "show", "support")).json
    assert (left["last_seq"], left["webhook"]["url"]) == (0, url)
    assert "Would disable http" in await words(run_command, "job-types", "http", "--disable")
    assert (await run_command("job-types", "http")).json["enabled"] is True


async def test_hosts_and_their_servers_are_tried(run_command: RunCommand, database: Database) -> None:
    [workspace] = (await run_command("workspaces", "list")).json["items"]
    principal = worker_principal(WorkspaceId(UUID(workspace["id"])))
    for name, server in (("h1", "pvp"), ("h2", "pve")):
        await (await register_host(database, principal, name, server)).leave()
    assert "Would change h1" in await words(run_command, "hosts", "change", "h1", "--max-reads", "7")
    assert "Would add pvq to h1" in await words(run_command, "hosts", "add-server", "h1", "pvq")
    assert "Would move pvp to h2" in await words(run_command, "hosts", "move-server", "pvp", "--to", "h2")
    assert "Would remove pvp from h1" in await words(run_command, "hosts", "remove-server", "pvp")
    assert "Would delete h1 and 1 server instance" in await words(run_command, "hosts", "delete", "h1")
    hosts = (await run_command("hosts", "list")).json["items"]
    assert [[one["name"] for one in host["instances"]] for host in hosts] == [["pvp"], ["pve"]]
