"""Measured figures and their targets: a table for people, and `bench/results/latest.json` for programs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parents[1] / "results"
KEYS = (
    "sql_limit_fires_per_s", "fires_per_s_10k", "fires_per_s_100k", "fires_per_s_1m", "runs_per_s", "combined_per_s",
    "herd_lag_p99_ms", "herd_lag_max_ms", "steady_lag_p50_ms", "steady_lag_p99_ms", "idle_cpu_percent", "idle_rss_mib",
    "history_p99_ms",
)  # fmt: skip
# Each is one figure as part of another.
RATIOS = (
    ("fires_of_sql_limit", "fires_per_s_1m", "sql_limit_fires_per_s"),
    ("fires_growth", "fires_per_s_1m", "fires_per_s_10k"),
    ("runs_of_pgqueuer", "runs_per_s", "pgqueuer_runs_per_s"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure by its key in the results, its name, and what it must not fall below or rise above."""

    key: str
    name: str
    least: float | None = None
    most: float | None = None
    unit: str = "/s"

    def verdict(self, value: float) -> str:
        if self.least is None and self.most is None:
            return ""
        is_met = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        return "ok" if is_met else "missed"

    @property
    def text(self) -> str:
        if self.least is not None:
            return f">= {self.least:,g}{self.unit}"
        return "" if self.most is None else f"<= {self.most:,g}{self.unit}"


BARS = (
    Bar("sql_limit_one_per_s", "plain-SQL limit of fires, one connection"),
    Bar("sql_limit_fires_per_s", "plain-SQL limit of fires, two connections"),
    Bar("fires_per_s_10k", "fires, 10,000 jobs, two connections"),
    Bar("fires_per_s_100k", "fires, 100,000 jobs, two connections"),
    Bar("fires_per_s_1m", "fires, 1,000,000 jobs, two connections", least=20_000),
    Bar("fires_of_sql_limit", "fires, as part of the plain-SQL limit", least=0.7, unit=""),
    Bar("fires_growth", "fires, 1,000,000 jobs beside 10,000", least=0.7, unit=""),
    Bar(
        "notified_fires_share", "fires with notification rules, as part of those without", least=0.95, unit=""
    ),
    Bar("notified_settled_share", "runs settled with rules, as part of those without", least=0.95, unit=""),
    Bar("claimed_and_settled_per_s", "runs claimed and settled, nothing executed, one process"),
    Bar("runs_per_s", "no-op runs through the whole worker, one process", least=8_000),
    Bar("pgqueuer_runs_per_s", "no-op jobs through pgqueuer, one process"),
    Bar("runs_of_pgqueuer", "no-op runs, beside pgqueuer", least=1, unit=" x"),
    Bar("combined_per_s", "fired, claimed and settled together", least=8_000),
    Bar("herd_lag_p50_ms", "start lag, all due in one second, median", unit=" ms"),
    Bar("herd_lag_p99_ms", "start lag, all due in one second, p99", most=1_000, unit=" ms"),
    Bar("herd_lag_max_ms", "start lag, all due in one second, last", most=5_000, unit=" ms"),
    Bar("steady_lag_p50_ms", "start lag at 50 a second, median", most=50, unit=" ms"),
    Bar("steady_lag_p99_ms", "start lag at 50 a second, p99", most=250, unit=" ms"),
    Bar("idle_cpu_percent", "idle, the busier of serve and its worker", most=1, unit=" %"),
    Bar("idle_rss_mib", "idle, the larger of serve and its worker", most=150, unit=" MiB"),
    Bar("idle_postgres_cpu_percent", "idle, PostgreSQL", unit=" %"),
    Bar("history_p99_ms", "history of one job over 90 days, p99", most=50, unit=" ms"),
)


@dataclass(slots=True)
class Report:
    settings: str
    is_whole: bool  # every part, at the size that the bars speak of
    figures: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, value: float, note: str = "") -> None:
        bar = next(bar for bar in BARS if bar.key == key)
        self.figures[key], self.notes[key] = round(value, 3), note
        print(f"{bar.name}: {_number(value)}{bar.unit}" + (f"  ({note})" if note else ""), flush=True)

    def finish(self, seconds: float, load: float) -> None:
        for key, part, whole in RATIOS:
            if part in self.figures and whole in self.figures:
                self.add(key, self.figures[part] / self.figures[whole])
        facts: dict[str, object] = {
            **_facts(),
            "postgres": self.settings,
            "load_before": load,
            "seconds": round(seconds),
        }
        table = Table("figure", "measured", "bar", "", "with", title="What the engine costs")
        for bar in BARS:
            if (value := self.figures.get(bar.key)) is not None:
                verdict = bar.verdict(value) if self.is_whole else ""
                table.add_row(bar.name, f"{_number(value)}{bar.unit}", bar.text, verdict, self.notes[bar.key])
        console = Console(width=170)
        console.print(table)
        for name, fact in facts.items():
            console.print(f"{name}: {fact}", highlight=False)
        self._write(facts)

    def _write(self, facts: dict[str, object]) -> None:
        """`latest.json` is what programs read, with the same keys always; what else there is to know stands in `details.json`."""
        RESULTS.mkdir(exist_ok=True)
        details = json.dumps(self.figures | {"notes": self.notes, "facts": facts}, indent=2) + "\n"
        if not self.is_whole:
            (RESULTS / "part.json").write_text(details)
            return
        (RESULTS / "details.json").write_text(details)
        merge({key: self.figures[key] for key in KEYS})


def merge(figures: dict[str, float]) -> None:
    """Into what programs read; the figures of other benchmarks stay."""
    RESULTS.mkdir(exist_ok=True)
    latest = RESULTS / "latest.json"
    known = json.loads(latest.read_text()) if latest.exists() else {}
    latest.write_text(json.dumps(known | figures, indent=2) + "\n")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _facts() -> dict[str, str | int]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**30
    return {
        "commit": _commit(),
        "processor": f"{len(os.sched_getaffinity(0))} x {model}",
        "memory_gib": memory,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _commit() -> str:
    def git(*args: str) -> str:
        return subprocess.run(
            ("git", *args), capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        ).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short", "HEAD").strip() + (" and uncommitted changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
