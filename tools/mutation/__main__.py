"""`./dev mutate`: plant bugs one at a time and print which of them the tests catch.

Each bug is applied to a throw-away copy of this clone, which runs the tests that the table names for it with this clone's
virtual environment. A bug is caught when one of them fails.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutation.table import ROOT, Bug, load_bugs, select_bugs

BAR = 0.95
LONGEST_TEST = 60  # seconds
LONGEST = 240  # seconds of one bug: it may have made the tests hang, which they notice by themselves after LONGEST_TEST
FAILED = 1  # pytest's exit code for tests that failed; others say that none ran
NOT_COPIED = shutil.ignore_patterns(".*", "results")


@dataclass(frozen=True, slots=True)
class Result:
    bug: Bug
    is_caught: bool
    seconds: float
    by: str


class Copy:
    """A copy of the clone whose tests import the code beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=NOT_COPIED, symlinks=True, dirs_exist_ok=True)
        self._python = _make_environment(folder)
        hidden = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PROVE")
        env = {name: value for name, value in os.environ.items() if name not in hidden}
        # CI: properties try the same examples each time.
        self._env = env | {"CI": "yes", "PLANTED_BUG": "yes"}

    @contextmanager
    def with_bug(self, bug: Bug) -> Iterator[None]:
        path = self.folder / bug.file
        text = path.read_text()
        try:
            self._write(path, bug.apply(text))
            yield
        finally:
            self._write(path, text)

    def run_tests(self, tests: Sequence[str], *args: str) -> tuple[int, str]:
        """Return pytest's exit code and output."""
        command = (str(self._python), "-m", "pytest", "-q", f"--timeout={LONGEST_TEST}", *args, *tests)
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self._env,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return FAILED, f"FAILED no end after {LONGEST} s"
        return done.returncode, done.stdout + done.stderr

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # its stamp has whole seconds, and we may write twice in one


def _make_environment(folder: Path) -> Path:
    """Make a virtual environment with the packages of this one and the code of the copy; return its Python.

    PYTHONPATH would not do: processes that handlers start ignore it.
    """
    packages = Path(sysconfig.get_path("purelib"))
    venv = folder / ".venv"
    own = venv / packages.relative_to(sys.prefix)
    own.mkdir(parents=True)
    # A path in a .pth file is added as it is: the editable installation that the packages hold is not read.
    (own / "copy.pth").write_text(f"{folder / 'src'}\n{packages}\n")
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), venv)
    python = venv / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    return python


def try_bug(copy: Copy, bug: Bug) -> Result:
    started = time.monotonic()
    with copy.with_bug(bug):
        code, output = copy.run_tests(bug.tests, "-x", "-p", "no:xdist")
    if code not in (0, FAILED):
        raise SystemExit(f"{bug.name}: the tests do not run: {' '.join(bug.tests)}\n{output[-3000:]}")
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = failed[0].split(" - ")[0].partition(" ")[2] if failed else ""
    return Result(bug, code == FAILED, time.monotonic() - started, by)


def try_all(bugs: Sequence[Bug], at_once: int, until: float) -> Iterator[Result]:
    """Try the bugs and yield the results as they come, until all are tried or the time is over."""
    with ExitStack() as stack:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for _ in range(at_once):
            copies.put(Copy(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foliot-mutate-")))))
        threads = stack.enter_context(ThreadPoolExecutor(at_once))
        results: SimpleQueue[Result | BaseException | None] = SimpleQueue()

        def run(bug: Bug) -> None:
            copy = copies.get()
            try:
                results.put(try_bug(copy, bug) if time.monotonic() < until else None)
            except BaseException as error:  # noqa: BLE001  # raised again where the results are read
                results.put(error)
            finally:
                copies.put(copy)

        for bug in bugs:
            threads.submit(run, bug)
        for _ in bugs:
            result = results.get()
            if isinstance(result, BaseException):
                threads.shutdown(wait=False, cancel_futures=True)
                raise result
            if result is not None:
                yield result


def check_tests(bugs: Sequence[Bug]) -> None:
    """Raise unless the named tests pass without a bug."""
    tests = sorted({test for bug in bugs for test in bug.tests})
    with tempfile.TemporaryDirectory(prefix="foliot-mutate-") as folder:
        code, output = Copy(Path(folder)).run_tests(tests, "-n", "2")
    if code:
        raise SystemExit(f"The tests fail without any bug:\n{output[-5000:]}")


def print_result(result: Result) -> None:
    word = "caught" if result.is_caught else "SURVIVED"
    print(f"{word:<9} {result.seconds:5.1f} s  {result.bug.name:<60} {result.by}", flush=True)


def judge(results: Sequence[Result], left: int, *, is_whole: bool) -> int:
    """Print the totals and return the exit code: 0 with every survivor explained and, of the whole table, enough bugs caught."""
    caught = sum(result.is_caught for result in results)
    share = caught / len(results) if results else 1.0
    print(
        f"\nCaught {caught} of {len(results)} planted bugs ({share:.1%}).",
        f"Not tried: {left}." if left else "",
    )
    unexplained = 0
    for result in results:
        if not result.is_caught:
            unexplained += result.bug.survives is None
            print(
                f"  survived: {result.bug.name}: {result.bug.survives or 'NOT EXPLAINED. ' + result.bug.effect}"
            )
        elif result.bug.survives is not None:
            print(f"  caught by now, so delete its `survives`: {result.bug.name}")
    return int(unexplained > 0 or (is_whole and share < BAR))


def main(args: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__)
    parser.add_argument(
        "bugs", nargs="*", help="names of bugs, tables or files, with * and ?; all without one"
    )
    parser.add_argument("--list", action="store_true", help="show the table and stop")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="bugs tried at the same time (2)")
    parser.add_argument(
        "--minutes", type=float, help="try bugs in random order, as many as begin in this time"
    )
    parser.add_argument("--seed", type=int, default=None, help="of that order")
    parser.add_argument("--check", action="store_true", help="first run all named tests without any bug")
    chosen = parser.parse_args(args)
    table = load_bugs()
    bugs = select_bugs(table, chosen.bugs)
    for bug in bugs:
        bug.apply((ROOT / bug.file).read_text())
    if chosen.list:
        for bug in bugs:
            print(f"{bug.table:<9} {bug.name:<60} {bug.file}\n{'':10}{bug.effect}")
        return 0
    if chosen.check:
        check_tests(bugs)
    until = float("inf")
    if chosen.minutes is not None:
        seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
        print(f"Order: --seed {seed}", flush=True)
        random.Random(seed).shuffle(bugs)
        until = time.monotonic() + chosen.minutes * 60
    results: list[Result] = []
    for result in try_all(bugs, chosen.at_once, until):
        print_result(result)
        results.append(result)
    return judge(results, len(bugs) - len(results), is_whole=len(results) == len(table))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
