"""Every pattern x every zone x every clock change, engine against oracle: `./dev oracle`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from functools import partial
from multiprocessing import get_context
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic

from tests.oracle.compare import cases, compare
from tests.oracle.patterns import PATTERNS
from tests.oracle.tzif import zone_names

SHOWN = 20
REPORT_EVERY = 10.0  # seconds


def main() -> int:
    options = _options()
    patterns = [pattern for pattern in PATTERNS if options.expr in (None, pattern.expr)]
    zones = [name for name in zone_names() if re.search(options.zones, name)]
    first, _, last = options.years.partition("-")
    work = cases(int(first), int(last or first), zones)
    if not patterns or not work:
        sys.exit("Nothing to compare: no pattern, zone or clock change fits.")
    changes = sum(len(case.zones) for case in work)
    distinct = len({zone for case in work for zone in case.zones})
    print(
        f"{len(patterns)} patterns, {distinct} distinct zones, {changes} clock changes ({options.years})",
        flush=True,
    )
    started = monotonic()
    instants, differences, reported = 0, [], started
    with get_context("spawn").Pool(options.jobs) as pool:
        results = pool.imap_unordered(partial(compare, patterns=patterns), work, chunksize=4)
        for number, (compared, found) in enumerate(results, 1):
            instants += compared
            differences += found
            if monotonic() - reported > REPORT_EVERY:
                reported = monotonic()
                share = f"{number * 100 // len(work):3} %"
                print(
                    f"{share}  {instants:,} planned times, {len(differences)} differences",
                    file=sys.stderr,
                    flush=True,
                )
        pool.close()
        pool.join()  # only children that have ended are counted
    differences.sort(key=lambda difference: (difference.cron.expr, difference.start, difference.zone))
    for difference in differences[:SHOWN]:
        print(f"\n{difference}")
    if len(differences) > SHOWN:
        print(f"\n… and {len(differences) - SHOWN} more")
    spent = f"{monotonic() - started:.0f} s ({_cpu():.0f} s of CPU)"
    print(f"{instants:,} planned times compared, {len(differences)} differences, {spent}")
    return 1 if differences else 0


def _cpu() -> float:
    spent = getrusage(RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev oracle", description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default: 2)"
    )
    parser.add_argument(
        "--zones", default="", metavar="PATTERN", help="only zones whose name this regular expression finds"
    )
    parser.add_argument(
        "--years", default="1990-2037", help="clock changes of these years (default: 1990-2037)"
    )
    parser.add_argument("--expr", help="only the patterns with this expression")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
