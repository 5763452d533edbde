"""PostgreSQL processes that an earlier, killed Foliot or postmaster left on our cluster.

They are identified by their working folder, which PostgreSQL sets to the cluster: a pid from a stale file may be another process.

Why: docs/decisions/002-private-postgresql-own-launcher.md
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from foliot.domain.errors import DatabaseUnavailable


def clear(cluster: Path) -> str | None:
    """End processes that still run on the cluster, gently first, and remove a stale pid file. Return a note if there were any."""
    found = running(cluster)
    if not found:
        # PostgreSQL would trust the pid in it, which after a reboot may be any process.
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        return None
    leader = postmaster_pid(cluster)
    steps: tuple[tuple[signal.Signals | None, float], ...]
    if any(pid == leader for pid in found):
        note = f"Stopped a PostgreSQL (pid {leader}) that an earlier Foliot left running."
        steps = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 6.0), (signal.SIGKILL, 6.0))
    else:
        note = f"Ended {len(found)} PostgreSQL processes whose server had been killed."
        steps = ((None, 1.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 6.0))  # most notice by themselves
        leader = None
    for step, seconds in steps:
        for pid in running(cluster):
            # The postmaster stops its children; to them these signals mean other things.
            if step and (pid == leader or leader is None or step == signal.SIGKILL):
                _send(pid, step)
        if not _wait(cluster, seconds):
            (cluster / "postmaster.pid").unlink(missing_ok=True)
            return note
    left = ", ".join(str(pid) for pid in running(cluster))
    raise DatabaseUnavailable(
        f"PostgreSQL processes (pid {left}) still use {cluster} and do not end, even when killed.",
        hint="They most likely wait for a disk or network file system that does not answer.",
    )


def signal_all(cluster: Path, step: signal.Signals) -> None:
    for pid in running(cluster):
        _send(pid, step)


def running(cluster: Path) -> list[int]:
    try:
        ours = cluster.stat()
    except FileNotFoundError:
        return []
    entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for entry in entries if (pid := _examine(entry, ours))]


def postmaster_pid(cluster: Path) -> int | None:
    """Return the pid in the pid file, which may be stale."""
    try:
        return int((cluster / "postmaster.pid").read_bytes().split(b"\n", 1)[0])
    except (OSError, ValueError):
        return None


def _examine(entry: Path, ours: os.stat_result) -> int | None:
    try:
        if not os.path.samestat((entry / "cwd").stat(), ours):
            return None
        name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        state = rest.split()[0]
    except OSError:
        return None  # ended meanwhile, or another user's and therefore not on our files
    if name != "postgres" or state in "ZX":  # a zombie holds nothing; it only awaits its parent
        return None
    return int(entry.name)


def _send(pid: int, step: signal.Signals) -> None:
    """Signal a process and wake it: a stopped one would receive the signal only later."""
    try:
        os.kill(pid, step)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def _wait(cluster: Path, seconds: float) -> list[int]:
    """Poll until all have ended, and return those left. They are not our children, so there is nothing to wait on."""
    deadline = time.monotonic() + seconds
    nap = threading.Event()
    while (left := running(cluster)) and time.monotonic() < deadline:
        nap.wait(0.02)
    return left
