"""The real `foliot` command as a process: version, settings, preview, and errors that a stranger can read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from foliot import __version__
from tests.fork_server import FOLIOT, environ_without_foliot

PATIENCE = 600  # seconds: a machine under load takes ten for what it does in half a second else
pytestmark = pytest.mark.timeout(PATIENCE)


def foliot(*args: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (FOLIOT, *args),
        capture_output=True,
        text=True,
        check=False,
        env=environ_without_foliot() | environ,
        cwd=cwd,
        timeout=PATIENCE,
    )


def test_the_version_is_one_line() -> None:
    done = foliot("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"foliot {__version__}\n", "")


@pytest.mark.parametrize("argv", [["--version"], ["preview", "0 9 * * *"], ["settings"], ["--help"]])
def test_light_commands_load_neither_the_web_nor_the_database(argv: list[str]) -> None:
    heavy = "('fastapi', 'uvicorn', 'psycopg', 'foliot.storage', 'foliot.wiring')"
    code = (
        f"import sys; sys.argv = ['foliot', *{argv!r}]\n"
        "from foliot.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('LOADED', [name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_a_mistyped_command_gets_a_suggestion_and_exit_code_2() -> None:
    done = foliot("previw", "0 9 * * *")
    assert done.returncode == 2
    assert "Did you mean 'preview'?" in done.stderr


def test_settings_name_value_and_origin_and_hide_secrets(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text("port = 9000\n")
    done = foliot(
        "settings", cwd=tmp_path, FOLIOT_DATABASE_URL="postgresql://me:hunter2@here/db", FOLIOT_HOST="::1"
    )
    assert done.returncode == 0
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert rows["FOLIOT_PORT"] == ["9000", "foliot.toml"]
    assert rows["FOLIOT_HOST"] == ["::1", "FOLIOT_HOST from the environment"]
    assert rows["FOLIOT_DATABASE_URL"][0] == "postgresql://me:********@here/db"
    assert rows["FOLIOT_LOG_LEVEL"] == ["info", "default"]
    assert "hunter2" not in done.stdout
    assert json.loads(foliot("settings", "-o", "json", cwd=tmp_path).stdout)[3] == {
        "name": "port",
        "env": "FOLIOT_PORT",
        "value": "9000",
        "origin": "foliot.toml",
    }


def test_wrong_settings_are_reported_without_a_traceback(tmp_path: Path) -> None:
    done = foliot("settings", cwd=tmp_path, FOLIOT_PORT="abc", FOLIOT_LOG_LEVLE="x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error[setting.invalid]: FOLIOT_LOG_LEVLE is not a setting of Foliot.\n"
        "  Did you mean FOLIOT_LOG_LEVEL?\n"
        "error[setting.invalid]: FOLIOT_PORT from the environment is 'abc'; "
        "it must be a whole number from 0 to 65535.\n"
    )


def test_a_reader_that_leaves_early_causes_no_noise() -> None:
    done = subprocess.run(
        f"{FOLIOT} preview '* * * * *' -n 1000 | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_keys_are_made_where_the_database_is(tmp_path: Path) -> None:
    assert foliot("keys", "create", cwd=tmp_path).returncode == 7  # by the API, and there is no key for it
    assert foliot("keys", "create", "--admin", "--data-dir", "data", cwd=tmp_path).returncode == 3
    assert foliot("migrate", "--data-dir", "data", cwd=tmp_path).returncode == 0
    created = foliot("keys", "create", "--admin", "--data-dir", "data", cwd=tmp_path)
    assert created.returncode == 0, created.stderr
    (key,) = created.stdout.splitlines()
    assert key.startswith("fol_")


def test_an_unreachable_database_is_exit_code_6_and_names_no_password(tmp_path: Path) -> None:
    done = foliot("migrate", cwd=tmp_path, FOLIOT_DATABASE_URL="postgresql://me:hunter2@127.0.0.1:1/db")
    assert done.returncode == 6
    assert done.stderr.startswith("error[database_unavailable]: ")
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("argv", [["--version"], ["preview", "0 9 * * *"]])
def test_output_that_cannot_be_written_is_one_clear_error(argv: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run((FOLIOT, *argv), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "Cannot write to standard output: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
