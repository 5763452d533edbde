"""Waiting for something on the server, with a sign of life for whoever watches."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from foliot.cli.here import Here
from foliot.clock import monotonic, pause

if TYPE_CHECKING:
    from foliot.wire.runs import RunOut

OPEN = frozenset({"ready", "waiting", "running"})
SHORTEST, LONGEST = 0.1, 2.0  # seconds between two looks


def until_it_ends(here: Here, run: RunOut) -> RunOut:
    """Retries included: a run that waits for its next attempt has not ended."""
    from rich.console import Console

    nap, began = SHORTEST, monotonic()
    console = Console(stderr=True, markup=False, highlight=False)
    shown = console.status("") if sys.stderr.isatty() else None
    with shown or nullcontext():
        while run.status in OPEN:
            if shown is not None:
                tried = (
                    f" after {run.attempt_count} attempts"
                    if run.attempt_count and run.status == "ready"
                    else ""
                )
                shown.update(
                    f"{run.job_name} #{run.number}: {run.status}{tried}, {monotonic() - began:.0f} s"
                )
            pause(nap)
            nap = min(nap * 1.3, LONGEST)
            run = here.client.runs.get(run.id)
    return run
