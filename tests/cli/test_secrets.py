"""Secrets on the command line: their values come by standard input or a prompt that does not show them, and never back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, RunCommand
from tests.cli.test_commands import PATIENCE
from tests.fork_server import FOLIOT, environ_without_foliot, run_foliot
from tests.sdk.conftest import ApiServer

pytestmark = pytest.mark.timeout(PATIENCE)
VALUE = "plain-8c1e0f-value"
IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def environment(api_server: ApiServer) -> dict[str, str]:
    kept = environ_without_foliot()
    return kept | {
        "FOLIOT_API_URL": api_server.url,
        "FOLIOT_API_KEY": api_server.key,
        "FOLIOT_OUTPUT": "json",
    }


async def piped(api_server: ApiServer, folder: Path, value: str, *args: str) -> CommandResult:
    def run() -> CommandResult:
        env = environment(api_server)
        done = run_foliot("secrets", "set", *args, cwd=folder, env=env, timeout=PATIENCE, stdin=value)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    return await asyncio.to_thread(run)


async def test_a_secret_is_set_shown_without_its_value_and_deleted(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    made = await piped(api_server, tmp_path, f"{VALUE}\n", "crm-token")
    assert (made.code, made.json["name"], made.json["version"]) == (0, "crm-token", 1)
    again = await piped(api_server, tmp_path, f"{VALUE} more", "crm-token")
    assert again.json["version"] == 2
    shown = [
        made,
        again,
        await run_command("secrets", "list"),
        await run_command("secrets", "list", "-o", "table"),
    ]
    titles = ["NAME", "VERSION", "JOBS", "OTHER", "USERS", "AGENTS", "CHANGED", "ID"]
    assert shown[-1].out.splitlines()[0].split() == titles
    shown.append(await run_command("secrets", "show", "crm-token", "-o", "table"))
    assert '{"secret": "crm-token"}' in shown[-1].out
    config = '{"url": "https://example.test", "headers": {"x": {"secret": "crm-token"}}}'
    made_job = await run_command(
        "jobs", "create", "nightly", "--type", "http", "--config", config, "--manual"
    )
    assert made_job.code == 0, made_job.err
    refused = await run_command("secrets", "delete", "crm-token", "--yes")
    assert refused.code == 4
    assert '"nightly"' in refused.err
    assert (await run_command("secrets", "delete", "crm-token")).code == 2  # nobody is there to say yes
    assert (await run_command("secrets", "delete", "crm-token", "--yes", "--force")).code == 0
    assert (await run_command("secrets", "show", "crm-token")).code == 3
    assert VALUE not in "".join(each.out + each.err for each in shown)


async def test_a_value_is_no_argument_and_nothing_is_no_value(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    assert (await run_command("secrets", "set", "crm-token", VALUE)).code == 2
    empty = await piped(api_server, tmp_path, "\n", "crm-token")
    assert empty.code == 2
    assert "Standard input is empty." in empty.err


async def test_a_job_that_names_no_secret_is_refused_with_a_guess(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    await piped(api_server, tmp_path, VALUE, "crm-token")
    config = '{"url": {"secret": "crm-tokn"}}'
    refused = await run_command("jobs", "create", "nightly", "--type", "http", "--config", config, "--manual")
    assert refused.code == 2
    assert 'Did you mean "crm-token"?' in refused.err


async def test_a_secret_is_given_to_an_agent_and_taken_back(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    agent = (await run_command("members", "add", "helper", "--kind", "agent", "--role", "editor")).json["id"]
    made = await piped(api_server, tmp_path, VALUE, "crm-token", "--agent", "helper")
    assert made.json["agents"] == [agent]
    assert (await run_command("secrets", "give", "crm-token")).json["agents"] == []
    assert (await run_command("secrets", "give", "crm-token", "helper")).json["agents"] == [agent]


async def test_the_master_key_is_shown_by_its_id_and_rotated(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    await piped(api_server, tmp_path, VALUE, "crm-token")
    before = (await run_command("secrets", "master-key")).json
    assert (before["is_right"], before["secrets"]) == (True, 1)
    done = (await run_command("secrets", "rotate", "--new-key")).json
    assert (done["rotated"], done["left"]) == (1, 0)
    table = (await run_command("secrets", "master-key", "-o", "table")).out
    assert done["present"] in table
    assert before["present"] in table
    assert (await run_command("secrets", "rotate", "--accept-loss")).code == 2  # nobody is there to say yes


async def test_nothing_is_done_by_a_dry_run(
    api_server: ApiServer, run_command: RunCommand, tmp_path: Path
) -> None:
    tried = await piped(api_server, tmp_path, VALUE, "crm-token", "--dry-run")
    assert (tried.code, tried.json["secret"]["version"], VALUE in tried.out) == (0, 1, False)
    assert (await run_command("secrets", "list")).json["items"] == []
    await piped(api_server, tmp_path, VALUE, "crm-token")
    assert (await piped(api_server, tmp_path, VALUE, "crm-token", "--dry-run")).json["secret"]["version"] == 2
    reported = await run_command("secrets", "delete", "crm-token", "--dry-run", "-o", "table")
    assert reported.out == "Would delete crm-token. Nothing was done.\n"
    reported = await run_command("secrets", "rotate", "--new-key", "--dry-run", "-o", "table")
    assert reported.out == "Would encrypt 1 secret again; 0 unreadable. Nothing was done.\n"
    assert [each["version"] for each in (await run_command("secrets", "list")).json["items"]] == [1]


async def test_the_prompt_does_not_show_what_is_typed(api_server: ApiServer, tmp_path: Path) -> None:
    shown = await asyncio.to_thread(typed, api_server, tmp_path)
    assert "version" in shown
    assert VALUE not in shown


def typed(api_server: ApiServer, folder: Path) -> str:
    """What stands on the terminal of a person who types the value twice."""
    with subprocess.Popen(
        (sys.executable, "-c", IN_A_TERMINAL, FOLIOT, "secrets", "set", "crm-token"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(api_server),
        cwd=folder,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        shown = b""
        for prompt in (b"Value of crm-token: ", b"Repeat for confirmation: "):
            while not shown.endswith(prompt):
                piece = process.stdout.read(1)
                assert piece, shown
                shown += piece
            process.stdin.write(f"{VALUE}\n".encode())
            process.stdin.flush()
        shown += process.stdout.read()
        assert process.wait(PATIENCE) == 0, shown
    return shown.decode()
