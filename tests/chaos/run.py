"""`./dev chaos`: two nodes and their workers under load, on PostgreSQL with a standby, through one fault after another.

`--fault NAME` repeats one fault (`--list` names them), without it a mix of all goes on for `--minutes`. Jobs write down what they do
themselves. A judge holds that against the database while the faults happen and in the end: every planned time has one record, none
began early, every success was seen, nothing ran twice under one fence or past its lease, no lease is held for a run that nobody
executes, and no process is left behind. Exit code 1 where that is not so. `--seed` draws the same faults again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from foliot.clock import SystemClock
from tests.chaos import judge
from tests.chaos.judge import Happened, Witness
from tests.chaos.town import FAULTS, MAY_OVERLAP, Faults, Town, town
from tests.stories.server_process import wait_until

WARM_UP = 5.0  # seconds
PREFIX = "foliot-chaos-"
RECOVER_WITHIN = 30.0  # seconds until a run begins on time again
RECOVER_PAUSE = 15.0  # seconds between two faults, at most, in which leases must become known


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    parser.add_argument(
        "--fault",
        action="append",
        choices=sorted(FAULTS),
        metavar="NAME",
        help="this fault alone; may be repeated",
    )
    parser.add_argument(
        "--minutes", type=float, default=None, help="how long a mix goes on (5); with --fault: once"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="by chance")
    parser.add_argument("--list", action="store_true", help="name the faults and stop")
    asked = parser.parse_args(argv)
    if asked.list:
        for name, fault in FAULTS.items():
            print(f"{name:<22}{(fault.__doc__ or '').partition(chr(10))[0]}")
        return 0
    print(f"Chaos, seed {asked.seed}.", flush=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folder.chmod(0o711)  # PostgreSQL may run as another user
        with town(folder, asked.seed) as made:
            trial = Trial(made)
            trial.upset(asked.fault, asked.minutes)
            trial.settle()
    trial.wrong += [f"process {pid} is left behind" for pid in _left_behind(folder)]
    for each in trial.wrong:
        print(f"WRONG: {each}")
    print(f"{dict(trial.statuses)}; faults: {dict(trial.happened)}; {len(trial.wrong)} findings")
    return 1 if trial.wrong else 0


class Trial:
    def __init__(self, made: Town) -> None:
        self.town = made
        self.witness = Witness(made.sink)
        self.history: list[Happened] = []
        self.wrong: list[str] = []
        self.happened: Counter[str] = Counter()
        self.statuses: dict[str | None, int] = {}

    def upset(self, names: Sequence[str] | None, minutes: float | None) -> None:
        faults = Faults(self.town)
        wait_until(lambda: any(line.what == "ended" for line in self.witness.lines()), "the first run")
        _wait(WARM_UP)
        once = bool(names) and minutes is None
        until = time.monotonic() + (minutes or 5) * 60
        for name in _in_turn(names, self.town.chance, once=once):
            if not once and time.monotonic() > until:
                break
            if name == "disk-stall" and self.town.cluster.preload is None:
                print("Skipped: disk-stall needs a C compiler (cc).", flush=True)
                continue
            self._happen(faults, name)

    def _happen(self, faults: Faults, name: str) -> None:
        began = time.time()  # noqa: TID251
        FAULTS[name](faults)
        mended = time.time()  # noqa: TID251
        self.happened[name] += 1
        self.town.start_missing()
        self.history.append(Happened(name, began, mended, name in MAY_OVERLAP))
        recovered = self._wait_for_recovery(name, mended)
        if self.town.cluster.standby is None:  # it was promoted
            self.town.cluster.attach_standby()
        _wait(max(0.0, RECOVER_PAUSE - (time.time() - mended)))  # noqa: TID251
        with suppress(AssertionError):
            wait_until(lambda: not self._unknown(), "known leases", within=5)
        self.wrong += [f"{name}: {each}" for each in self._unknown()]
        said = f"{recovered:.1f} s" if recovered is not None else "not"
        print(f"{name}: {mended - began:.1f} s; first run on time after it: {said}", flush=True)

    def _wait_for_recovery(self, name: str, mended: float) -> float | None:
        deadline = time.monotonic() + RECOVER_WITHIN
        while time.monotonic() < deadline:
            if (recovered := judge.recovered_after(self.witness.lines(), mended)) is not None:
                return recovered
            _wait(0.2)
        self.wrong.append(f"{name}: no run began on time within {RECOVER_WITHIN:g} s of its end")
        return None

    def _unknown(self) -> list[str]:
        return judge.unknown_leases(self.town.cluster.primary, self.witness.lines())

    def settle(self) -> None:
        """End all jobs, wait for their runs, stop the nodes and compare the books."""
        server = self.town.cluster.primary
        with self.town.client() as client:
            end_at = (SystemClock().now() + timedelta(seconds=8)).isoformat()
            for job in client.jobs.each():
                client.jobs.patch(job.id, {"end_at": end_at})
        wait_until(
            lambda: not server.rows("SELECT 1 FROM foliot.jobs WHERE status = 'active'"),
            "the end of all jobs",
        )
        unfinished = "SELECT count(*) FROM foliot.runs WHERE status IS NULL"
        with suppress(AssertionError):  # the judge says which
            wait_until(lambda: server.rows(unfinished) == [(0,)], "the end of all runs", within=120)
        for node in self.town.nodes:
            if node.is_alive and node.process is not None:
                node.process.stop()
        lines = self.witness.lines()
        self.wrong += judge.books(server, lines) + judge.doubled(lines) + judge.early(lines)
        self.wrong += judge.overlapping(lines, self.history)
        self.statuses = dict(server.rows("SELECT status, count(*) FROM foliot.runs GROUP BY 1"))


def _in_turn(names: Sequence[str] | None, chance: random.Random, *, once: bool) -> Iterator[str]:
    """Name every fault once, in an order by chance, and again."""
    while True:
        turn = list(names or FAULTS)
        if not names:
            chance.shuffle(turn)
        yield from turn
        if once:
            return


def _left_behind(folder: Path) -> list[int]:
    """Return processes that still work for this run."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    sys.exit(main())
