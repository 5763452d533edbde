"""--dry-run on the command line: it says what would be, in words and as JSON, and does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ask
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)
BLACKOUT = {
    "name": "holidays",
    "kind": "blackout",
    "rules": [{"kind": "weekly", "start": "00:00", "end": "12:00", "days": ["sat"]}],
}


async def words(ask: Ask, *args: str) -> str:
    said = await ask(*args, "--dry-run", "-o", "table")
    assert said.code == 0, said.err
    assert said.out.rstrip().endswith("Nothing was done."), said.out
    return said.out


async def test_jobs_and_runs_are_tried(ask: Ask) -> None:
    await ask("jobs", "create", "nightly", "--python", "work:hello", "--schedule", "0 3 * * *")
    assert "Would create nightly#1" in await words(ask, "jobs", "run", "nightly")
    assert "Would skip 2 planned times of nightly" in await words(
        ask, "jobs", "skip-next", "nightly", "-n", "2"
    )
    assert (await ask("jobs", "history", "nightly")).json["items"] == []
    run = (await ask("jobs", "run", "nightly")).json
    assert "Would cancel nightly#1" in await words(ask, "runs", "cancel", run["id"])
    assert (await ask("runs", "retry", run["id"], "--dry-run")).code != 0
    await ask("runs", "cancel", run["id"])
    assert "Would create nightly#2" in await words(ask, "runs", "retry", run["id"])


async def test_calendars_and_freezes_are_tried(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "holidays.json"
    file.write_text(json.dumps(BLACKOUT))
    assert "Would create holidays" in await words(ask, "calendars", "create", "-f", str(file))
    await ask("calendars", "create", "-f", str(file))
    assert "No job uses it." in await words(ask, "calendars", "replace", "holidays", "-f", str(file))
    assert "Would delete holidays" in await words(ask, "calendars", "delete", "holidays")
    assert len((await ask("calendars", "list")).json["items"]) == 1
    await ask("freeze", "on", "--all", "--reason", "move", "--yes")
    assert 'Would turn off "move"' in await words(ask, "freeze", "off")
    assert (await ask("freeze", "list")).json["items"][0]["status"] == "in_force"


async def test_keys_members_and_workspaces_are_tried(ask: Ask) -> None:
    told = await words(ask, "keys", "create", "--name", "laptop", "--scope", "viewer")
    assert "Would create laptop" in told
    assert "fol_" not in told
    assert "secret" not in (await ask("keys", "create", "--name", "laptop", "--dry-run")).out
    assert "Would add Ada: user, editor" in await words(ask, "members", "add", "Ada", "--role", "editor")
    await ask("members", "add", "Ada", "--role", "editor")
    await ask("keys", "create", "--member", "Ada", "--name", "hers")
    assert "Would change Ada" in await words(ask, "members", "change", "Ada", "--role", "viewer")
    assert "1 key would be revoked." in await words(ask, "members", "remove", "Ada")
    assert "Would revoke hers" in await words(ask, "keys", "revoke", "hers")
    assert len((await ask("keys", "list")).json["items"]) == 2
    assert "Would create acme" in await words(ask, "workspaces", "create", "acme")
    await ask("workspaces", "create", "acme")
    assert "Would change acme" in await words(ask, "workspaces", "change", "acme", "--name", "ACME")
    assert "0 jobs would be archived" in await words(ask, "workspaces", "archive", "acme")
    assert len((await ask("workspaces", "list")).json["items"]) == 2


async def test_limits_are_set_listed_tried_and_removed(ask: Ask) -> None:
    assert "key db: at most 2" in await words(ask, "limits", "set", "2", "--key", "db")
    assert (await ask("limits", "list")).json["items"] == []
    assert (await ask("limits", "set", "2", "--key", "db")).json["cap"] == 2
    assert (await ask("limits", "set", "9")).json["key"] is None
    table = (await ask("limits", "list", "-o", "table")).out.splitlines()
    assert [line.split()[-3:] for line in table[1:]] == [["9", "0", "0"], ["2", "0", "0"]]
    assert "Would remove the limit of key db" in await words(ask, "limits", "remove", "--key", "db")
    assert (await ask("limits", "remove", "--key", "db")).json == {"key": "db", "removed": True}
    assert (await ask("limits", "remove", "--key", "db")).code == 3


async def test_a_leaked_key_is_ended_with_what_it_made(ask: Ask) -> None:
    leaked = (await ask("keys", "create", "--name", "leaked")).json
    child = (await ask("keys", "create", "--name", "child", FOLIOT_API_KEY=leaked["secret"])).json
    assert child["made_by"] == leaked["id"]
    alone = await ask("keys", "revoke", "leaked", "--yes", "-o", "table")
    assert "1 key made with it is still valid" in alone.err
    assert f"foliot keys revoke {leaked['id']} --made-too" in alone.err
    told = await ask("keys", "revoke", leaked["id"], "--made-too", "--yes", "-o", "table")
    assert "and 1 key made with it" in told.out
    assert (await ask("whoami", FOLIOT_API_KEY=child["secret"])).code != 0


async def test_applying_a_file_to_jobs_of_an_app_needs_force(ask: Ask, tmp_path: Path) -> None:
    managed = {"source": "code", "app": "shop"}
    job = {
        "name": "sync",
        "type": "http",
        "config": {"url": "https://example.test/"},
        "schedule": {"kind": "manual"},
    }
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"jobs": [{**job, "external_ref": managed}]}))
    assert (await ask("apply", "-f", str(file))).code == 0
    file.write_text(
        json.dumps({"jobs": [{**job, "external_ref": managed, "tags": ["x"]}, {**job, "name": "new"}]})
    )
    planned = await ask("apply", "-f", str(file), "--plan", "-o", "table")
    assert 'managed by the app "shop": needs --force' in planned.out
    refused = await ask("apply", "-f", str(file))
    assert (refused.code, 'managed by the app "shop"' in refused.err) == (4, True), refused.err
    assert len((await ask("jobs", "list")).json["items"]) == 1
    done = await ask("apply", "-f", str(file), "--force")
    assert done.code == 0, done.err
    assert "x" in (await ask("jobs", "show", "sync")).json["tags"]
