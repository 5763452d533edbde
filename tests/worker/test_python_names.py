"""Which functions python jobs may name: each module is judged before it is imported, and imported in a child process only."""

from __future__ import annotations

import asyncio
import os
import sys
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.python import PythonConfig, PythonHandler
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.sdk.context import Context
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
CTX = Context("w", "j", "job", "r", 1, 1, "schedule", datetime(2027, 1, 15, tzinfo=UTC))


class Folder:
    """A folder on the import path of the worker and its children. Each module of it leaves a trace when it is executed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trace = path.parent / f"{path.name}.trace"

    def write(self, name: str, code: str = "def run(): return 'ran'\n") -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        leave = f"import pathlib, os\nwith open({str(self.trace)!r}, 'a') as f: f.write(f'{{os.getpid()}} {{__name__}}\\n')\n"
        file.write_text(leave + code)

    @property
    def executed(self) -> list[tuple[int, str]]:
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]


@pytest.fixture
async def python() -> AsyncIterator[PythonHandler]:
    handler = PythonHandler()
    yield handler
    await handler.close()


def on_path(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    for path in paths:
        monkeypatch.syspath_prepend(str(path))
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, paths)))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder of the operator's own."""
    path = tmp_path / "own"
    path.mkdir()
    on_path(monkeypatch, path)
    return Folder(path)


async def call(python: PythonHandler, name: str) -> HandlerResult:
    return await python.run(Assignment(CTX, {"call": name}, {}))


def code(done: HandlerResult) -> str:
    assert isinstance(done.outcome, Failed), done
    return done.outcome.error.code


def fresh() -> str:
    return f"module_{uuid4().hex}"


@pytest.mark.parametrize(
    "name", ["test.__main__:x", "test.support:run_in_subinterp", "idlelib.run:main", "antigravity:webbrowser"]
)
async def test_modules_of_python_are_refused_and_not_imported(python: PythonHandler, name: str) -> None:
    before = set(sys.modules)
    assert code(await call(python, name)) == "call_invalid"
    assert name.partition(":")[0] not in set(sys.modules) - before
    assert not python._pool._idle, "no child was needed to refuse it"


async def test_a_main_module_is_a_program_and_is_never_executed(python: PythonHandler, own: Folder) -> None:
    name = fresh()
    own.write(f"{name}/__init__.py")
    own.write(f"{name}/__main__.py")
    for each in ("__main__", "__init__"):
        assert code(await call(python, f"{name}.{each}:run")) == "call_invalid"
    assert own.executed == []


@pytest.mark.parametrize("how", ["installed", "linked folder", "linked package", "other interpreter", "zip"])
async def test_an_installed_module_is_refused_before_it_is_executed(
    python: PythonHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    name = fresh()
    site = tmp_path / "lib" / "python3.9" / "site-packages"
    site.mkdir(parents=True)
    installed = Folder(site)
    shown = site
    match how:
        case "installed" | "other interpreter":
            installed.write(f"{name}/__init__.py")
            installed.write(f"{name}/deep/__init__.py")
        case "linked folder":  # a folder of one's own that is a link to site-packages
            installed.write(f"{name}/__init__.py")
            shown = tmp_path / "vendor"
            shown.symlink_to(site)
        case "linked package":  # an installer that links its cache
            installed = Folder(tmp_path / "cache")
            installed.write(f"{name}/__init__.py")
            (site / name).symlink_to(installed.path / name)
        case _:
            shown = site / "bundle.zip"
            with zipfile.ZipFile(shown, "w") as bundle:
                bundle.writestr(f"{name}.py", "def run(): return 1")
    on_path(monkeypatch, shown)
    assert code(await call(python, f"{name}:run")) == "call_invalid"
    if how == "installed":
        assert code(await call(python, f"{name}.deep:run")) == "call_invalid", "its parent would be executed"
    assert installed.executed == []


async def test_an_installed_package_that_the_operator_names_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fresh()
    site = Folder(tmp_path / "site-packages")
    site.write(f"{name}/__init__.py")
    site.write(f"{name}/deep.py")
    on_path(monkeypatch, site.path)
    handler = PythonHandler(packages=(f"{name}.deep",))
    assert (await call(handler, f"{name}.deep:run")).output == "ran"
    assert code(await call(handler, f"{name}:run")) == "call_invalid"
    await handler.close()


async def test_a_namespace_package_and_a_zip_of_ones_own_are_open(
    python: PythonHandler, own: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, zipped = fresh(), fresh()
    own.write(f"{name}/inner/jobs.py")
    assert (await call(python, f"{name}.inner.jobs:run")).output == "ran"
    with zipfile.ZipFile(own.path / "mine.zip", "w") as bundle:
        bundle.writestr(f"{zipped}.py", "def run(): return 'zipped'")
    on_path(monkeypatch, own.path / "mine.zip")
    fresh_children = PythonHandler()
    assert (await call(fresh_children, f"{zipped}:run")).output == "zipped"
    await fresh_children.close()


@pytest.mark.parametrize(
    "name",
    ["a..b:c", ".a:b", "a.:b", "a:b.", "a:.b", "a:b..c", "a.b:", ":b", "a:b:c", "a b:c", "a:b c", "a/b:c", "1a:b",
     "a:f.__globals__.clear", "a.__main__:f"],
)  # fmt: skip
async def test_odd_names_are_refused_when_they_are_written_and_when_they_are_called(
    python: PythonHandler, name: str
) -> None:
    with pytest.raises(ValueError):  # pydantic's own
        PythonConfig(call=name)
    assert code(await call(python, name)) == "call_invalid"


async def test_a_name_that_the_module_does_not_define_executes_nothing(
    python: PythonHandler, own: Folder
) -> None:
    name = fresh()
    own.write(f"{name}.py", "print('a script')\n")
    assert code(await call(python, f"{name}:run")) == "call_invalid"
    assert own.executed == []


async def test_a_plain_function_is_imported_by_the_child_alone_and_an_async_one_by_the_child_first(
    python: PythonHandler, own: Folder
) -> None:
    plain, waits = fresh(), fresh()
    own.write(f"{plain}.py")
    own.write(f"{waits}.py", "async def run(): return 'ran'\n")
    assert (await call(python, f"{plain}:run")).output == "ran"
    assert plain not in sys.modules
    assert (await call(python, f"{waits}:run")).output == "ran"
    pids = [pid for pid, name in own.executed if name == waits]
    assert len(pids) == 2
    assert (pids[0] != os.getpid(), pids[1] == os.getpid()) == (True, True)
    del sys.modules[waits]


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_an_import_that_hangs_ends_with_its_attempt_and_never_begins_in_the_worker(
    python: PythonHandler, own: Folder, kind: str
) -> None:
    name = fresh()
    own.write(f"{name}.py", f"import signal\nsignal.pause()\n{kind} run(): return 1\n")
    task = asyncio.create_task(call(python, f"{name}:run"))
    await wait_until(lambda: own.executed)
    task.cancel()
    await asyncio.wait([task])
    assert name not in sys.modules
    assert task.cancelled()
    other = fresh()
    own.write(f"{other}.py")
    assert isinstance((await call(python, f"{other}:run")).outcome, Succeeded)
