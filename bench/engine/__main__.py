"""`./dev bench engine` measures everything; `./dev bench engine fires --jobs 100000` one part of it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from bench.engine import combined, fires, herd, history, idle, notified, runs, sql_limit, steady
from bench.engine.processes import Measured
from bench.engine.report import Report
from bench.engine.rival import BATCHES, NotInstalledError, rival
from bench.engine.setup import Bench, bench

KEYS = {10_000: "fires_per_s_10k", 100_000: "fires_per_s_100k", 1_000_000: "fires_per_s_1m"}


@dataclass(frozen=True, slots=True)
class Options:
    jobs: int | None
    quick: bool

    @property
    def many(self) -> int:
        """As many jobs as the bars speak of."""
        return self.jobs or (100_000 if self.quick else 1_000_000)

    @property
    def due(self) -> int:
        """Jobs where all are due."""
        return self.jobs or (30_000 if self.quick else 100_000)

    @property
    def rounds(self) -> int:
        """The median of three: other programs on the machine disturb one."""
        return 1 if self.quick else 3


def measure_sql_limit(bench: Bench, report: Report, options: Options) -> None:
    found = sql_limit.measure(bench, options.many, 1)
    report.add("sql_limit_one_per_s", found.per_second, _cost(found))
    found = _median(lambda: sql_limit.measure(bench, options.many, 2), options.rounds)
    report.add("sql_limit_fires_per_s", found.per_second, _cost(found))


def measure_fires(bench: Bench, report: Report, options: Options) -> None:
    for size, key in KEYS.items():
        jobs = options.jobs or size
        if jobs > options.many or (options.jobs and size != min(KEYS, key=lambda known: abs(known - jobs))):
            continue
        found = _median(lambda n=jobs: fires.measure(bench, n), options.rounds)  # type: ignore[misc]
        report.add(key, found.per_second, _cost(found, jobs))


def measure_runs(bench: Bench, report: Report, options: Options) -> None:
    found = _median(lambda: runs.measure(bench, options.due), options.rounds)
    report.add("claimed_and_settled_per_s", found.per_second, _cost(found))
    found = _median(lambda: runs.measure_worker(bench, options.due), options.rounds)
    report.add("runs_per_s", found.per_second, _cost(found))


def measure_rival(bench: Bench, report: Report, options: Options) -> None:
    """The best it does, with its own batches or with ones as large as ours."""
    try:
        with rival() as installed:
            found = {batch: installed.measure(bench, options.due, batch) for batch in BATCHES}
    except NotInstalledError as error:
        print(f"pgqueuer was not measured: {error}", file=sys.stderr)
        return
    batch, best = max(found.items(), key=lambda each: each[1].per_second)
    others = ", ".join(f"{each.per_second:,.0f}/s in batches of {size}" for size, each in found.items())
    note = f"{best.count:,}; {others}; each {best.cpu_us[0]:.0f} us of its process in batches of {batch}"
    report.add("pgqueuer_runs_per_s", best.per_second, note)


def measure_combined(bench: Bench, report: Report, options: Options) -> None:
    found = _median(lambda: combined.measure(bench, options.due), options.rounds)
    report.add("combined_per_s", found.per_second, _cost(found))


def measure_notified(bench: Bench, report: Report, options: Options) -> None:
    plain, with_rules = notified.measure(bench, options.due, 2 * options.rounds)
    note = f"{with_rules.fires:,.0f}/s beside {plain.fires:,.0f}/s without rules"
    report.add("notified_fires_share", with_rules.fires / plain.fires, note)
    note = f"{with_rules.settled:,.0f}/s beside {plain.settled:,.0f}/s without rules"
    report.add("notified_settled_share", with_rules.settled / plain.settled, note)


def measure_herd(bench: Bench, report: Report, options: Options) -> None:
    found = herd.measure(bench)
    note = f"{found.count:,} runs among {herd.AMONG:,} jobs"
    report.add("herd_lag_p50_ms", found.p50, note)
    report.add("herd_lag_p99_ms", found.p99, note)
    report.add("herd_lag_max_ms", found.most, note)


def measure_steady(bench: Bench, report: Report, options: Options) -> None:
    found = steady.measure(bench, 10 if options.quick else 30)
    report.add("steady_lag_p50_ms", found.p50, f"{found.count:,} runs")
    report.add("steady_lag_p99_ms", found.p99, f"{found.count:,} runs")


def measure_idle(bench: Bench, report: Report, options: Options) -> None:
    found = idle.measure(bench, options.many, 10 if options.quick else 60)
    report.add("idle_cpu_percent", found.cpu_percent, f"{options.many:,} jobs")
    report.add("idle_rss_mib", found.rss_mib, f"{options.many:,} jobs")
    report.add("idle_postgres_cpu_percent", found.server_cpu_percent, f"{options.many:,} jobs")


def measure_history(bench: Bench, report: Report, options: Options) -> None:
    count = 1_000_000 if options.quick else 10_000_000
    took = history.measure(bench, count)
    report.add(
        "history_p99_ms", took[len(took) * 99 // 100], f"{count:,} runs, median {took[len(took) // 2]:.1f} ms"
    )


PARTS: dict[str, Callable[[Bench, Report, Options], None]] = {
    "fires": measure_fires,
    "sql_limit": measure_sql_limit,
    "runs": measure_runs,
    "rival": measure_rival,
    "combined": measure_combined,
    "notified": measure_notified,
    "herd": measure_herd,
    "steady": measure_steady,
    "idle": measure_idle,
    "history": measure_history,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench engine", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all without")
    parser.add_argument("--only", action="append", default=[], metavar="part", help="the same, by name")
    parser.add_argument("--jobs", type=int, help="so many jobs, instead of those that the bars speak of")
    parser.add_argument(
        "--quick", action="store_true", help="fewer jobs and runs, once instead of three times"
    )
    args = parser.parse_args()
    parts = [*args.parts, *args.only]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    began, load = time.monotonic(), os.getloadavg()[0]
    if load > 0.5:
        print(f"This machine is busy (load {load:.1f}): the figures will be too low.", file=sys.stderr)
    with bench() as made:
        is_whole = not (parts or args.jobs or args.quick)
        report = Report(f"{made.server.version}, {made.settings}", is_whole)
        for place, part in enumerate(parts or PARTS, 1):
            gone = timedelta(seconds=round(time.monotonic() - began))
            print(f"[{gone}] {part}, {place} of {len(parts or PARTS)} …", file=sys.stderr, flush=True)
            PARTS[part](made, report, Options(args.jobs, args.quick))
    report.finish(time.monotonic() - began, load)
    return 0


def _median(measure: Callable[[], Measured], rounds: int) -> Measured:
    return sorted((measure() for _ in range(rounds)), key=lambda found: found.per_second)[rounds // 2]


def _cost(found: Measured, jobs: int | None = None) -> str:
    client, server = found.cpu_us
    among = f" among {jobs:,} jobs" if jobs else ""
    return f"{found.count:,}{among} in {found.seconds:.1f} s; each {client:.0f} us of ours and {server:.0f} us of PostgreSQL's"


if __name__ == "__main__":
    sys.exit(main())
