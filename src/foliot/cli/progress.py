"""Waiting for something on the server, with a sign of life for whoever watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from foliot.cli.output import escape_control, pluralize, print_err
from foliot.cli.session import Session
from foliot.clock import monotonic, pause

if TYPE_CHECKING:
    from foliot.wire.runs import RunOut

OPEN = frozenset({"ready", "waiting", "running"})
SHORTEST, LONGEST = 0.1, 2.0  # seconds between two looks


def wait_for_run(session: Session, run: RunOut) -> RunOut:
    """Retries included: a run that waits for its next attempt has not ended. Who leaves early leaves the run alone."""
    from rich.console import Console

    nap, began = SHORTEST, monotonic()
    console = Console(stderr=True, markup=False, highlight=False)
    shown = console.status("") if sys.stderr.isatty() else None
    with note_on_interrupt(run), shown or nullcontext():
        while run.status in OPEN:
            if shown is not None:
                shown.update(f"{_progress(run)}, {monotonic() - began:.0f} s")
            pause(nap)
            nap = min(nap * 1.3, LONGEST)
            run = session.client.runs.get(run.id)
    return run


@contextmanager
def note_on_interrupt(run: RunOut) -> Iterator[None]:
    """Who leaves early is told that the run goes on."""
    try:
        yield
    except KeyboardInterrupt:
        called = escape_control(f"{run.job_name or run.job_id}#{run.number}")
        print_err(f'\nThe run goes on without you. See it with: foliot runs show "{called}"')
        raise


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """For one call that may take a while."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, highlight=False).status(f"{escape_control(what)} …"):
        yield


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """For many calls: what it yields is told how many more are done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with shown:
        task = shown.add_task(escape_control(what), total=total)
        yield lambda done: shown.advance(task, done)


def _progress(run: RunOut) -> str:
    tried = (
        f" after {pluralize(run.attempt_count, 'attempt')}"
        if run.attempt_count and run.status == "ready"
        else ""
    )
    return f"{escape_control(run.job_name or '')} #{run.number}: {run.status}{tried}"
