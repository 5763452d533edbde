"""Members, workspaces and the audit on the command line; and what a job can be of."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Ask
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)


async def test_a_member_is_added_changed_given_a_key_and_removed(ask: Ask) -> None:
    made = (await ask("members", "add", "Ada", "--role", "editor", "--email", "ada@example.test")).json
    assert (made["kind"], made["role"]) == ("user", "editor")
    assert (await ask("members", "change", "ada@example.test", "--role", "viewer")).json["role"] == "viewer"
    assert (await ask("members", "change", "Ada")).code == 2
    key = (await ask("keys", "create", "--member", "Ada", "--name", "laptop")).json["secret"]
    assert (await ask("whoami", FOLIOT_API_KEY=key)).json["principal"]["name"] == "Ada"
    assert (await ask("members", "remove", "Ada")).code == 2  # nobody is there to say yes
    assert (await ask("members", "remove", "Ada", "--yes")).code == 0
    assert (await ask("members", "list")).json["items"] == []
    assert (await ask("members", "list", "--removed", "-o", "table")).out.count("(removed)") == 1
    assert (await ask("members", "remove", "Bob", "--yes")).code == 3


async def test_a_workspace_is_made_changed_worked_in_and_put_away(ask: Ask) -> None:
    made = (await ask("workspaces", "create", "acme", "--tz", "Europe/Paris", "--quota", "jobs=1,000")).json
    assert (made["default_timezone"], made["quotas"]["jobs"]) == ("Europe/Paris", 1000)
    changed = (await ask("workspaces", "change", "acme", "--name", "Acme", "--quota", "jobs=default")).json
    assert (changed["name"], changed["quotas"]["jobs"]) == ("Acme", None)
    wrong = await ask("workspaces", "change", "acme", "--quota", "jbos=3")
    assert wrong.code == 2
    assert 'Unknown quota "jbos".' in wrong.err
    assert (await ask("whoami", "-w", "acme")).json["workspace"]["slug"] == "acme"
    assert (await ask("workspaces", "archive", "acme", "--yes")).code == 0
    listed = (await ask("workspaces", "list")).json["items"]
    assert [each["slug"] for each in listed] == ["default"]


async def test_the_audit_names_who_did_what_to_which(ask: Ask) -> None:
    await ask("jobs", "create", "nightly", "--python", "work:hello", "--manual")
    await ask("jobs", "pause", "nightly", "--reason", "month end")
    lines = (await ask("audit", "list", "--job", "nightly", "--actor", "me", "-o", "table")).out.splitlines()
    assert lines[0].split() == ["AT", "WHO", "ACTION", "WHAT", "CHANGED", "FROM"]
    assert sorted(line.split()[4:6] for line in lines[1:]) == [
        ["job.created", "nightly"],
        ["job.paused", "nightly"],
    ]
    assert [
        each["action"] for each in (await ask("audit", "list", "--action", "job.paused")).json["items"]
    ] == ["job.paused"]


async def test_the_types_of_jobs_are_listed_with_what_their_config_takes(ask: Ask) -> None:
    assert {each["name"] for each in (await ask("job-types")).json["items"]} >= {"http", "python"}
    assert "url" in (await ask("job-types", "http", "-o", "table")).out
    assert (await ask("job-types", "htp")).code == 3
