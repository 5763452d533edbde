"""Members, workspaces and the audit on the command line; and what a job can be of."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)


async def test_a_member_is_added_changed_given_a_key_and_removed(run_command: RunCommand) -> None:
    made = (
        await run_command("members", "add", "Ada", "--role", "editor", "--email", "ada@example.test")
    ).json
    assert (made["kind"], made["role"]) == ("user", "editor")
    assert (await run_command("members", "change", "ada@example.test", "--role", "viewer")).json[
        "role"
    ] == "viewer"
    assert (await run_command("members", "change", "Ada")).code == 2
    key = (await run_command("keys", "create", "--member", "Ada", "--name", "laptop")).json["secret"]
    assert (await run_command("whoami", FOLIOT_API_KEY=key)).json["principal"]["name"] == "Ada"
    assert (await run_command("members", "remove", "Ada")).code == 2  # nobody is there to say yes
    assert (await run_command("members", "remove", "Ada", "--yes")).code == 0
    assert (await run_command("members", "list")).json["items"] == []
    assert (await run_command("members", "list", "--removed", "-o", "table")).out.count("(removed)") == 1
    assert (await run_command("members", "remove", "Bob", "--yes")).code == 3


@pytest.mark.requirement("S4-3", "S4-CLI-1", "S4-CLI-2", "S4-CLI-5")
async def test_a_job_is_made_for_an_agent_listed_with_its_name_and_handed_over(
    run_command: RunCommand,
) -> None:
    for name in ("frank", "nova"):
        await run_command("members", "add", name, "--role", "editor", "--kind", "agent")
    made = (
        await run_command(
            "jobs",
            "create",
            "--agent",
            "frank",
            "--name",
            "mail",
            "--payload",
            "Check mail",
            "--every",
            "30s",
        )
    ).json
    assert (made["type"], made["config"], made["owner_name"]) == ("message", {"text": "Check mail"}, "frank")
    listed = (await run_command("jobs", "list", "--agent", "frank", "-o", "table")).out
    assert "Jobs (1 active):" in listed
    assert "mail  frank" in listed
    assert (await run_command("jobs", "edit", "mail", "--owner", "nova")).json["owner_name"] == "nova"
    refused = await run_command("members", "remove", "nova", "--yes")
    assert (refused.code, "nova owns 1 job." in refused.err) == (4, True), refused.err
    dry = await run_command("members", "remove", "nova", "--to", "frank", "--dry-run", "-o", "table")
    assert "1 job would be archived or handed over." in dry.out
    assert (await run_command("members", "remove", "nova", "--to", "frank", "--yes")).code == 0
    assert (await run_command("jobs", "show", "mail")).json["owner_name"] == "frank"
    assert "owner     frank" in (await run_command("jobs", "show", "mail", "-o", "table")).out


async def test_a_workspace_is_made_changed_worked_in_and_put_away(run_command: RunCommand) -> None:
    made = (
        await run_command("workspaces", "create", "acme", "--tz", "Europe/Paris", "--quota", "jobs=1,000")
    ).json
    assert (made["default_timezone"], made["quotas"]["jobs"]) == ("Europe/Paris", 1000)
    changed = (
        await run_command("workspaces", "change", "acme", "--name", "Acme", "--quota", "jobs=default")
    ).json
    assert (changed["name"], changed["quotas"]["jobs"]) == ("Acme", None)
    wrong = await run_command("workspaces", "change", "acme", "--quota", "jbos=3")
    assert wrong.code == 2
    assert 'Unknown quota "jbos".' in wrong.err
    assert (await run_command("whoami", "-w", "acme")).json["workspace"]["slug"] == "acme"
    added = await run_command("members", "add", "Ada", "--role", "editor", "-w", "acme", "-o", "table")
    assert '--name "its first key" --workspace acme' in added.err
    assert (await run_command("workspaces", "archive", "acme", "--yes")).code == 0
    listed = (await run_command("workspaces", "list")).json["items"]
    assert [each["slug"] for each in listed] == ["default"]


async def test_the_audit_names_who_did_what_to_which(run_command: RunCommand) -> None:
    await run_command("jobs", "create", "nightly", "--python", "work:hello", "--manual")
    await run_command("jobs", "pause", "nightly", "--reason", "month end")
    lines = (
        await run_command("audit", "list", "--job", "nightly", "--actor", "me", "-o", "table")
    ).out.splitlines()
    assert lines[0].split() == ["AT", "WHO", "ACTION", "WHAT", "CHANGED", "FROM"]
    assert sorted(line.split()[4:6] for line in lines[1:]) == [
        ["job.created", "nightly"],
        ["job.paused", "nightly"],
    ]
    assert [
        each["action"]
        for each in (await run_command("audit", "list", "--action", "job.paused")).json["items"]
    ] == ["job.paused"]


async def test_the_types_of_jobs_are_listed_with_what_their_config_takes(run_command: RunCommand) -> None:
    assert {each["name"] for each in (await run_command("job-types")).json["items"]} >= {"http", "python"}
    assert "url" in (await run_command("job-types", "http", "-o", "table")).out
    assert (await run_command("job-types", "htp")).code == 3
