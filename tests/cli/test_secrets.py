"""Secrets on the command line: their values come by standard input or a prompt that does not show them, and never back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ask, Said
from tests.cli.test_commands import PATIENCE
from tests.fork_server import FOLIOT, environ_without_foliot, run_foliot
from tests.sdk.conftest import Served

pytestmark = pytest.mark.timeout(PATIENCE)
VALUE = "plain-8c1e0f-value"
IN_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def environment(served: Served) -> dict[str, str]:
    kept = environ_without_foliot()
    return kept | {"FOLIOT_API_URL": served.url, "FOLIOT_API_KEY": served.key}


async def piped(served: Served, folder: Path, value: str, *args: str) -> Said:
    def run() -> Said:
        env = environment(served)
        done = run_foliot("secrets", "set", *args, cwd=folder, env=env, timeout=PATIENCE, stdin=value)
        return Said(done.returncode, done.stdout, done.stderr)

    return await asyncio.to_thread(run)


async def test_a_secret_is_set_shown_without_its_value_and_deleted(
    served: Served, ask: Ask, tmp_path: Path
) -> None:
    made = await piped(served, tmp_path, f"{VALUE}\n", "crm-token")
    assert (made.code, made.json["name"], made.json["version"]) == (0, "crm-token", 1)
    again = await piped(served, tmp_path, f"{VALUE} more", "crm-token")
    assert again.json["version"] == 2
    shown = [made, again, await ask("secrets", "list"), await ask("secrets", "list", "-o", "table")]
    assert shown[-1].out.splitlines()[0].split() == ["NAME", "VERSION", "JOBS", "AGENTS", "CHANGED", "ID"]
    shown.append(await ask("secrets", "show", "crm-token", "-o", "table"))
    assert '{"secret": "crm-token"}' in shown[-1].out
    config = '{"url": "https://example.test", "headers": {"x": {"secret": "crm-token"}}}'
    made_job = await ask("jobs", "create", "nightly", "--type", "http", "--config", config, "--manual")
    assert made_job.code == 0, made_job.err
    refused = await ask("secrets", "delete", "crm-token", "--yes")
    assert refused.code == 4
    assert '"nightly"' in refused.err
    assert (await ask("secrets", "delete", "crm-token")).code == 2  # nobody is there to say yes
    assert (await ask("secrets", "delete", "crm-token", "--yes", "--force")).code == 0
    assert (await ask("secrets", "show", "crm-token")).code == 3
    assert VALUE not in "".join(each.out + each.err for each in shown)


async def test_a_value_is_no_argument_and_nothing_is_no_value(
    served: Served, ask: Ask, tmp_path: Path
) -> None:
    assert (await ask("secrets", "set", "crm-token", VALUE)).code == 2
    empty = await piped(served, tmp_path, "\n", "crm-token")
    assert empty.code == 2
    assert "Standard input is empty." in empty.err


async def test_a_job_that_names_no_secret_is_refused_with_a_guess(
    served: Served, ask: Ask, tmp_path: Path
) -> None:
    await piped(served, tmp_path, VALUE, "crm-token")
    config = '{"url": {"secret": "crm-tokn"}}'
    refused = await ask("jobs", "create", "nightly", "--type", "http", "--config", config, "--manual")
    assert refused.code == 2
    assert 'Did you mean "crm-token"?' in refused.err


async def test_a_secret_is_given_to_an_agent_and_taken_back(served: Served, ask: Ask, tmp_path: Path) -> None:
    agent = (await ask("members", "add", "helper", "--kind", "agent", "--role", "editor")).json["id"]
    made = await piped(served, tmp_path, VALUE, "crm-token", "--agent", "helper")
    assert made.json["agents"] == [agent]
    assert (await ask("secrets", "give", "crm-token")).json["agents"] == []
    assert (await ask("secrets", "give", "crm-token", "helper")).json["agents"] == [agent]


async def test_the_master_key_is_shown_by_its_id_and_rotated(
    served: Served, ask: Ask, tmp_path: Path
) -> None:
    await piped(served, tmp_path, VALUE, "crm-token")
    before = (await ask("secrets", "master-key")).json
    assert (before["is_right"], before["secrets"]) == (True, 1)
    done = (await ask("secrets", "rotate", "--new-key")).json
    assert (done["rotated"], done["left"]) == (1, 0)
    table = (await ask("secrets", "master-key", "-o", "table")).out
    assert done["present"] in table
    assert before["present"] in table
    assert (await ask("secrets", "rotate", "--accept-loss")).code == 2  # nobody is there to say yes


async def test_nothing_is_done_by_a_dry_run(served: Served, ask: Ask, tmp_path: Path) -> None:
    tried = await piped(served, tmp_path, VALUE, "crm-token", "--dry-run")
    assert (tried.code, tried.json["secret"]["version"], VALUE in tried.out) == (0, 1, False)
    assert (await ask("secrets", "list")).json["items"] == []
    await piped(served, tmp_path, VALUE, "crm-token")
    assert (await piped(served, tmp_path, VALUE, "crm-token", "--dry-run")).json["secret"]["version"] == 2
    told = await ask("secrets", "delete", "crm-token", "--dry-run", "-o", "table")
    assert told.out == "Would delete crm-token. Nothing was done.\n"
    told = await ask("secrets", "rotate", "--new-key", "--dry-run", "-o", "table")
    assert told.out == "Would encrypt 1 secret again; 0 unreadable. Nothing was done.\n"
    assert [each["version"] for each in (await ask("secrets", "list")).json["items"]] == [1]


async def test_the_prompt_does_not_show_what_is_typed(served: Served, tmp_path: Path) -> None:
    shown = await asyncio.to_thread(typed, served, tmp_path)
    assert "version" in shown
    assert VALUE not in shown


def typed(served: Served, folder: Path) -> str:
    """What stands on the terminal of somebody who types the value twice."""
    with subprocess.Popen(
        (sys.executable, "-c", IN_A_TERMINAL, FOLIOT, "secrets", "set", "crm-token"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(served),
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
