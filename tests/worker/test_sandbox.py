"""Commands as another user, and within bounds of the kernel. Who is not root cannot become another user: then only the refusal is tried."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.errors import Invalid
from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.command import CommandHandler
from foliot.handlers.registry import HandlerResult
from foliot.handlers.sandbox import Sandbox, resolve_user
from foliot.handlers.supervised_process import ProcessLimits
from foliot.settings import SettingsError, load
from foliot.wiring.policies import reject_database_user, sandbox_of
from tests.worker.test_command import by

pytestmark = pytest.mark.anyio
NOBODY = "nobody"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
MIB = 1024 * 1024


@pytest.fixture
def handler() -> CommandHandler:
    return CommandHandler(("PATH", "HOME"), ProcessLimits(), Sandbox(resolve_user(NOBODY)))


def out(done: HandlerResult) -> str:
    assert isinstance(done.outcome, Succeeded), done
    found: str = done.output["stdout_tail"]
    return found.strip()


@as_root
@pytest.mark.requirement("S2-37")
async def test_a_command_is_another_user_with_its_groups_and_its_home(handler: CommandHandler) -> None:
    account = pwd.getpwnam(NOBODY)
    groups = {str(each) for each in os.getgrouplist(NOBODY, account.pw_gid)}
    assert out(await by(handler, "sh", "-c", "id -u; id -g")).split() == [
        str(account.pw_uid),
        str(account.pw_gid),
    ]
    assert set(out(await by(handler, "id", "-G")).split()) == groups
    reported = out(await by(handler, "sh", "-c", "echo $HOME $USER; pwd")).splitlines()
    home = account.pw_dir if os.path.isdir(account.pw_dir) else "/"  # noqa: PTH112, ASYNC240
    assert reported == [f"{home} {NOBODY}", home]


@as_root
async def test_it_reads_nothing_of_the_workers_and_can_write_to_its_own_streams(
    handler: CommandHandler, tmp_path: Path
) -> None:
    key = tmp_path / "master.key"
    key.write_text("s3cret")
    key.chmod(0o600)
    os.chmod(tmp_path, 0o755)  # noqa: PTH101
    assert isinstance((await by(handler, "cat", str(key))).outcome, Failed)
    assert isinstance((await by(handler, "cat", f"/proc/{os.getpid()}/environ")).outcome, Failed)
    assert out(await by(handler, "sh", "-c", "echo hello > /dev/stdout")) == "hello"
    no_new_privileges = out(await by(handler, "sh", "-c", "grep NoNewPrivs /proc/self/status"))
    assert no_new_privileges.split()[-1] == "1"


@as_root
async def test_it_dies_with_everything_it_started_though_it_is_somebody_else(handler: CommandHandler) -> None:
    done = await by(handler, "sh", "-c", "setsid sleep 600 & echo $!")
    with pytest.raises(ProcessLookupError):
        os.kill(int(out(done)), 0)


@as_root
async def test_numbers_will_do_and_a_group_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    handler = CommandHandler(("PATH",), ProcessLimits(), Sandbox(resolve_user("54321:54322")))
    assert out(await by(handler, "sh", "-c", "id -u; id -G; pwd")).split() == ["54321", "54322", "/"]
    named = resolve_user("nobody:daemon")
    assert named is not None
    assert named.groups == (named.gid,)


@as_root
async def test_the_kernel_bounds_how_many_processes_that_user_has() -> None:
    handler = CommandHandler(("PATH",), ProcessLimits(), Sandbox(resolve_user("54323:54323"), processes=8))
    done = await by(handler, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; wait")
    assert isinstance(done.outcome, Failed)
    assert "fork" in done.output["stderr_tail"].lower()


async def test_files_are_bounded_and_made_with_the_umask(tmp_path: Path) -> None:
    handler = CommandHandler(("PATH",), ProcessLimits(), Sandbox(umask=0o077, file_size=MIB))
    small, large = tmp_path / "small", tmp_path / "large"
    await by(handler, "sh", "-c", f"echo x > {small}")
    assert stat.S_IMODE(small.stat().st_mode) == 0o600
    done = await by(handler, "sh", "-c", f"exec head -c 3000000 /dev/zero > {large}")
    assert isinstance(done.outcome, Failed)
    assert large.stat().st_size == MIB


async def test_a_user_that_is_not_there_is_refused_by_name() -> None:
    for written in ("nobody-like-this", "54321", "nobody:no-such-group"):
        with pytest.raises(Invalid, match="there is no"):
            resolve_user(written)


async def test_who_is_not_root_becomes_nobody_else_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(Invalid, match="does not run as root"):
        resolve_user(NOBODY)
    assert resolve_user("54321:54321") is None


@pytest.mark.parametrize(("written", "umask"), [("077", 0o077), ("27", 0o27), ("0", 0)])
async def test_settings_say_it(tmp_path: Path, written: str, umask: int) -> None:
    environ: dict[str, Any] = {"FOLIOT_COMMAND_UMASK": written, "FOLIOT_COMMAND_FILE_SIZE": "5"}
    found = sandbox_of(load(environ, {}, tmp_path))
    assert (found.user, found.umask, found.file_size, found.processes) == (None, umask, 5 * MIB, None)


@pytest.mark.parametrize("written", ["8", "1000", "rw", "-1"])
async def test_a_umask_that_is_none_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(SettingsError):
        load({"FOLIOT_COMMAND_UMASK": written}, {}, tmp_path)


@as_root
async def test_commands_are_not_run_as_who_the_private_database_runs_as(tmp_path: Path) -> None:
    account = pwd.getpwnam(NOBODY)
    os.chown(tmp_path, account.pw_uid, account.pw_gid)
    for written in (NOBODY, f"{account.pw_uid}:54321"):
        with pytest.raises(Invalid, match="and so does the private PostgreSQL"):
            reject_database_user(Sandbox(resolve_user(written)), tmp_path)
    for other in (None, "54321:54321"):
        reject_database_user(Sandbox(resolve_user(other)), tmp_path)
