"""Waiting for something on the server, with a sign of life for whoever watches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from uuid import UUID

from foliot.cli.here import Here
from foliot.clock import monotonic, pause

if TYPE_CHECKING:
    from foliot.wire.runs import RunOut

OPEN = frozenset({"ready", "waiting", "running"})
SHORTEST, LONGEST = 0.1, 2.0  # seconds between two looks


def until_it_ends(here: Here, run_id: UUID) -> RunOut:
    from rich.console import Console

    nap = SHORTEST
    began = monotonic()
    console = Console(stderr=True, markup=False, highlight=False)
    with console.status("waiting") as shown:
        while (run := here.client.runs.get(run_id)).status in OPEN:
            if sys.stderr.isatty():
                shown.update(f"{run.status}, {monotonic() - began:.0f} s")
            pause(nap)
            nap = min(nap * 1.3, LONGEST)
    return run
