"""`./dev simulate`: a long virtual-time run on a throw-away server. Prints figures; a broken invariant ends it with 1 and the seed."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from datetime import datetime

from foliot.clock import monotonic
from foliot.testing.database import databases
from foliot.testing.simulation.run import simulate
from foliot.testing.simulation.world import SPRING, Mix, Size


def main() -> int:
    size = _asked()
    logging.disable(logging.WARNING)  # lost workers and refused reports are what this is about
    began = monotonic()

    def progress(now: datetime) -> None:
        day = (now - size.start).days
        print(f"day {day} of {size.days}: {monotonic() - began:,.0f} s", file=sys.stderr, flush=True)

    with databases() as server, server.fresh() as url:
        try:
            figures = asyncio.run(simulate(size, url, progress))
        except AssertionError as broken:
            print(f"BROKEN with seed {size.seed}: {broken}", file=sys.stderr)
            return 1
    print("\n".join(figures.lines()))
    return 0


def _asked() -> Size:
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    parser.add_argument("--workspaces", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=10, help="of each workspace")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mix", type=Mix, choices=list(Mix), default=Mix.FULL)
    parser.add_argument("--start", type=datetime.fromisoformat, default=SPRING, help="an aware instant")
    parser.add_argument("--no-faults", action="store_true")
    given = parser.parse_args()
    return Size(
        workspaces=given.workspaces,
        jobs=given.jobs,
        days=given.days,
        seed=given.seed,
        mix=given.mix,
        start=given.start,
        with_faults=not given.no_faults,
    )


if __name__ == "__main__":
    sys.exit(main())
