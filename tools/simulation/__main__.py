"""`./dev simulate`: a long virtual-time run on a throw-away server. Prints figures; a broken invariant ends it with 1 and the seed.

All jobs live through all days. In the mix `light` the one per cent of minutely jobs beat for an hour a day; `full` lets them beat all day,
which doubles the number of occurrences.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime

from foliot.testing.database import databases
from tools.simulation.slices import Progress, simulate_in_slices
from tools.simulation.world import SPRING, Mix, Size


def main() -> int:
    size, processes = _asked()
    with databases() as server:
        try:
            figures = simulate_in_slices(size, server, processes, _tell)
        except AssertionError as broken:
            print(f"BROKEN with seed {size.seed}: {broken}", file=sys.stderr)
            return 1
    print("\n".join(figures.lines()))
    return 0


def _tell(progress: Progress) -> None:
    print(progress.line(), file=sys.stderr, flush=True)


def _asked() -> tuple[Size, int]:
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    parser.add_argument("--workspaces", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=10, help="of each workspace")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mix", type=Mix, choices=list(Mix), default=Mix.LIGHT)
    parser.add_argument("--start", type=datetime.fromisoformat, default=SPRING, help="an aware instant")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--no-caps", action="store_true", help="no workspace has a limit on its runs")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="the history is the same for any number"
    )
    parser.add_argument(
        "--slice", type=int, help="this one alone, counted from 1: to see again what broke in it"
    )
    given = parser.parse_args()
    size = Size(
        workspaces=given.workspaces,
        jobs=given.jobs,
        days=given.days,
        seed=given.seed,
        mix=given.mix,
        start=given.start,
        with_faults=not given.no_faults,
        with_caps=not given.no_caps,
    )
    slices = size.slices()
    if given.slice is not None and not 1 <= given.slice <= len(slices):
        parser.error(f"--slice goes from 1 to {len(slices)} for a world of this size")
    return slices[given.slice - 1] if given.slice else size, max(1, given.processes)


if __name__ == "__main__":
    sys.exit(main())
