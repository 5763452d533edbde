"""Output formats, --watch, profiles, and what a light command may import."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE
from tests.cli.test_interrupts import started
from tests.fork_server import environ_without_foliot
from tests.sdk.conftest import ApiServer

pytestmark = pytest.mark.timeout(PATIENCE)
CREATE = ("jobs", "create", "hello", "--python", "work:hello", "--every", "3h")
# Each of these takes longer to import than the command takes to run. httpx2, pydantic and typer are needed.
FORBIDDEN = (
    "cryptography",
    "fastapi",
    "foliot.cli.apply",
    "foliot.cli.jobs.edit",
    "foliot.cli.runs",
    "foliot.cli.serve",
    "foliot.domain.definition",
    "foliot.domain.schedule",
    "foliot.services",
    "foliot.settings.model",
    "foliot.storage",
    "foliot.wire.bulk",
    "foliot.wire.dry_run",
    "foliot.wire.identity",
    "foliot.wire.reports",
    "foliot.wire.worker",
    "foliot.wiring",
    "psycopg",
    "rich",
    "starlette",
    "uvicorn",
    "yaml",
)
PROGRAM = f"""
import sys
from foliot.cli.main import main
sys.argv = ["foliot", "jobs", "list"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
import gc
assert gc.isenabled()
found = [name for name in {FORBIDDEN!r} if name in sys.modules]
built = [each.__name__ for each in sys.modules["foliot.wire.shape"].Shape.__subclasses__() if each.__pydantic_complete__]
print("\\nLOADED", found, len(built))
"""


async def test_listing_jobs_imports_nothing_heavy(run_command: RunCommand, api_server: ApiServer) -> None:
    await run_command(*CREATE)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        env=environ_without_foliot() | {"FOLIOT_API_URL": api_server.url, "FOLIOT_API_KEY": api_server.key},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    *shown, last = out.decode().splitlines()
    assert "hello" in "\n".join(shown)
    assert last.startswith("LOADED [] "), last
    assert int(last.split()[-1]) < 20, "shapes are built on first use"


async def test_a_pipe_gets_a_table_and_json_only_on_request(run_command: RunCommand) -> None:
    await run_command(*CREATE)
    table = await run_command("jobs", "list", FOLIOT_OUTPUT="")
    assert table.out.startswith("Jobs (1 active):\n")
    assert (await run_command("jobs", "list", "-o", "json", FOLIOT_OUTPUT="table")).json["items"]
    assert json.loads((await run_command("jobs", "list", "-o", "jsonl")).out)["name"] == "hello"


async def test_csv_has_a_row_for_each_item_and_json_in_nested_cells(run_command: RunCommand) -> None:
    await run_command(*CREATE)
    await run_command("jobs", "create", 'a "quoted", name', "--python", "work:b", "--manual")
    rows = list(
        csv.DictReader(io.StringIO((await run_command("jobs", "list", "-o", "csv", "--sort", "name")).out))
    )
    assert [row["name"] for row in rows] == ['a "quoted", name', "hello"]
    assert json.loads(rows[1]["schedule"])["every"] == "3h"
    assert rows[1]["last_run_at"] == ""
    shown = list(csv.DictReader(io.StringIO((await run_command("jobs", "show", "hello", "-o", "csv")).out)))
    assert [row["id"] for row in shown] == [rows[1]["id"]]
    assert (await run_command("runs", "list", "-o", "csv")).out == ""


async def test_watch_repeats_until_it_is_interrupted(run_command: RunCommand, api_server: ApiServer) -> None:
    await run_command(*CREATE)
    async with started(api_server, "jobs", "list", "--watch") as process:
        assert process.stdout is not None
        for _ in range(2):
            assert (await process.stdout.readline()).decode() == "Jobs (1 active):\n"
            assert b"hello" in await process.stdout.readline()
            assert await process.stdout.readline() == b"\n"
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130


async def test_a_profile_names_server_and_key(
    run_command: RunCommand, api_server: ApiServer, tmp_path: Path
) -> None:
    await run_command(*CREATE)
    folder = tmp_path / "foliot"
    folder.mkdir()
    (folder / "staging.key").write_text(f"{api_server.key}\n")
    (folder / "profiles.toml").write_text(
        f'[staging]\nurl = "{api_server.url}"\nkey_file = "staging.key"\n\n[keyless]\nurl = "http://127.0.0.1:9"\n'
        '[wrong]\nurl = "http://127.0.0.1:9"\nkye_file = "x"\n'
    )
    # The address and key of the environment lead nowhere: a profile replaces both.
    nowhere = {
        "FOLIOT_API_URL": "http://127.0.0.1:9",
        "FOLIOT_API_KEY": "x",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    assert (await run_command("jobs", "list", "--profile", "staging", **nowhere)).json["items"]
    assert (await run_command("jobs", "list", FOLIOT_PROFILE="staging", **nowhere)).json["items"]
    listed = await run_command("profiles", **nowhere)
    assert "staging" in listed.out
    assert api_server.key not in listed.out
    unknown = await run_command("jobs", "list", "--profile", "prod", **nowhere)
    assert (unknown.code, "Profiles there: staging, keyless, wrong." in unknown.err) == (2, True)
    keyless = await run_command("jobs", "list", "--profile", "keyless", **nowhere)
    assert (keyless.code, 'The profile "keyless" has no key.' in keyless.err) == (7, True)
    wrong = await run_command("jobs", "list", "--profile", "wrong", **nowhere)
    assert (wrong.code, 'unknown key "kye_file"' in wrong.err) == (2, True)
    both = await run_command("jobs", "list", "--profile", "staging", "--url", api_server.url, **nowhere)
    assert (both.code, "not both" in both.err) == (2, True)
    assert "staging.key" not in os.environ


async def test_help_shows_each_summary_whole(run_command: RunCommand) -> None:
    for words in ((), ("jobs",), ("runs",), ("runs", "artifacts")):
        shown = (await run_command(*words, "--help", COLUMNS="60")).out
        assert "..." not in shown.partition("Commands:")[2]
    jobs = " ".join((await run_command("jobs", "--help", COLUMNS="60")).out.split())
    assert (
        "List what happened at the planned times of a job, newest first: runs, and skips with their reasons."
        in jobs
    )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--http", "https://example.test/", "--method", "GTE"), "Did you mean GET?"),
        (("--name", "two\nlines", "--python", "work:x"), "A name must be on one line"),
        (("--python", "work:x", "--queue", "Big"), "begin with a lower-case letter"),
    ],
)
async def test_slips_are_refused_when_the_job_is_created(
    run_command: RunCommand, flags: tuple[str, ...], says: str
) -> None:
    name = () if "--name" in flags else ("x",)
    done = await run_command("jobs", "create", *name, "--manual", *flags)
    assert done.code == 2
    assert says in done.err
    assert "\\S" not in done.err


@pytest.mark.parametrize(
    "flags",
    [
        ("--every", "10"),
        ("--every", "1m", "--timeout", "10"),
        ("--every", "1m", "--retry-delays", "1m,10"),
        ("--every", "1m", "--retry-base", "10"),
        ("--every", "1m", "--keep", "10"),
    ],
)
async def test_a_duration_without_a_unit_is_refused(run_command: RunCommand, flags: tuple[str, ...]) -> None:
    done = await run_command("jobs", "create", "x", "--python", "work:x", *flags)
    assert (done.code, done.out) == (2, "")
    assert "The number 10 has no unit: write 10s for seconds or 10m for minutes." in done.err


async def test_a_method_may_be_rare(run_command: RunCommand) -> None:
    rare = ("--http", "https://example.test/", "--method", "PURGE", "--manual")
    assert (await run_command("jobs", "create", "rare", *rare)).code == 0
