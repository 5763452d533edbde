"""`./dev prove calendar`: a workspace edits calendars of 1,000 dense rules, uses them in jobs every 5 s, and asks for next times without a pause.

Bars: the bystander's job starts within 300 ms at p99, and an ordinary request of another workspace is answered within 500 ms at p99.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from foliot import Client, FoliotApiError
from foliot.clock import monotonic
from tests.attacks.site import BYSTANDER, Site, attacked_site, judge

ATTACKER = "dense"
P99_MS, ASK_P99_MS = 300.0, 500.0
RULES, READERS = 1_000, 4


def weekly_rules(shift: int) -> list[dict[str, Any]]:
    """Periods of five minutes every ten minutes, over and over."""
    starts = ((10 * number + shift) % 1_440 for number in range(RULES))
    return [
        {"kind": "weekly", "start": _clock(start), "end": _clock((start + 5) % 1_440)} for start in starts
    ]


def cron_rules(shift: int) -> list[dict[str, Any]]:
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    return [
        {
            "kind": "cron",
            "expr": f"{(number + shift) % 60} {number % 24} * * {days[number % 7]}",
            "duration": "30s",
        }
        for number in range(RULES)
    ]


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


class Attack:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._stop = threading.Event()
        self.done = 0
        self.refused = 0
        self.took: list[float] = []

    def prepare(self) -> tuple[list[UUID], list[UUID]]:
        with self._site.client(self._site.create_workspace(ATTACKER)) as client:
            calendars = [
                client.calendars.create({"name": "weekly", "kind": "blackout", "rules": weekly_rules(0)}).id,
                *(
                    client.calendars.create(
                        {"name": f"cron {n}", "kind": "blackout", "rules": cron_rules(n)}
                    ).id
                    for n in range(2)
                ),
            ]
            jobs = [
                client.jobs.create(
                    {
                        "name": f"dense {n}",
                        "type": "message",
                        "config": {"text": "tick"},
                        "schedule": {"kind": "interval", "every": "5s"},
                        "calendars": [str(each) for each in calendars],
                    }
                ).id
                for n in range(5)
            ]
        return calendars, jobs

    def run(self, seconds: float) -> None:
        calendars, jobs = self.prepare()
        numbers = count()
        readers = [
            self._start(ATTACKER, lambda client: client.jobs.next(jobs[next(numbers) % len(jobs)], 20))
            for _ in range(READERS)
        ]
        writer = self._start(
            ATTACKER,
            lambda client: client.calendars.change(calendars[0], rules=weekly_rules(next(numbers) % 10)),
        )
        bystander = self._start(BYSTANDER, self._ask)
        self._site.rest(seconds)
        self._stop.set()
        for each in (*readers, writer, bystander):
            each.join(60)

    def _ask(self, client: Client) -> None:
        began = monotonic()
        client.jobs.list(limit=10)
        self.took.append(monotonic() - began)
        self._stop.wait(0.1)

    def _start(self, workspace: str, call: Callable[[Client], object]) -> threading.Thread:
        def repeat() -> None:
            with self._site.client(workspace) as client:
                while not self._stop.is_set():
                    try:
                        call(client)
                        self.done += 1
                    except FoliotApiError:
                        self.refused += 1
                        self._stop.wait(0.05)

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        return thread


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev prove calendar", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args(argv)
    with attacked_site() as site:
        with site.phase("before"):
            site.rest()
        attack = Attack(site)
        with site.phase("during"):
            attack.run(options.seconds)
        with site.phase("after"):
            site.rest()
        took = sorted(attack.took) or [float("inf")]
        p99 = took[min(len(took) - 1, int(len(took) * 0.99))] * 1e3
        print(
            f"{attack.done} requests done, {attack.refused} refused; {len(took)} ordinary ones of another workspace: "
            f"p50 {took[len(took) // 2] * 1e3:.0f} ms, p99 {p99:.0f} ms"
        )
        return max(
            site.judge(p99_ms=P99_MS),
            judge(f"an ordinary request within {ASK_P99_MS:.0f} ms at p99", p99 / ASK_P99_MS),
        )


if __name__ == "__main__":
    sys.exit(main())
