"""`./dev prove hung`: 300 http runs of one workspace hang, with default settings, beside a bystander's job every second.

Bar: the bystander's job starts within 2 s at p99. The receiver accepts every connection and answers none.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.attacks.site import Site, attacked_site

ATTACKER = "hanging"
P99_MS = 2_000.0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev prove hung", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the runs hang (60)")
    parser.add_argument("--jobs", type=int, default=300)
    options = parser.parse_args(argv)
    with silent_receiver() as url, attacked_site(FOLIOT_EGRESS_ALLOW="127.0.0.0/8") as site:
        return hang(site, url, options.jobs, options.seconds)


def hang(site: Site, url: str, jobs: int, seconds: float) -> int:
    with site.phase("before"):
        site.rest()
    with site.client(site.create_workspace(ATTACKER)) as client:
        made = [
            client.jobs.create(
                {
                    "name": f"hangs {number}",
                    "type": "http",
                    "config": {"url": f"{url}/{number}"},
                    "schedule": {"kind": "manual"},
                    "timeout": "1h",
                    "retry": {"max": 0},
                }
            )
            for number in range(jobs)
        ]
        for job in made:
            client.jobs.run(job.id)
        with site.phase("during"):
            site.rest(seconds)
        running = list(client.runs.each(status=["running"]))
        print(f"{jobs} runs hang; {len(running)} of them hold places of the worker")
        for job in made:
            client.jobs.delete(job.id)
        for run in running:
            client.runs.cancel(run.id)
    site.rest(5.0)
    with site.phase("after"):
        site.rest()
    return site.judge(p99_ms=P99_MS)


@contextmanager
def silent_receiver() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as listening:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for each in held:
            each.close()


if __name__ == "__main__":
    sys.exit(main())
