"""Wait for the server, with a spinner or a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from foliot.cli.output import escape_control, pluralize, print_err
from foliot.cli.session import Session
from foliot.clock import monotonic, pause

if TYPE_CHECKING:
    from foliot.wire.runs import RunOut

Item = TypeVar("Item")
LIVE = frozenset({"ready", "waiting", "running"})
MIN_POLL, MAX_POLL = 0.1, 2.0  # seconds between two requests
MIN_TRACKED = 5  # items that are worth a bar
UNTRACKED = 200  # items of unknown number before a bar appears: one page


def wait_for_run(session: Session, run: RunOut) -> RunOut:
    """Poll until the run ends, retries included, and say on stderr what happens. Ctrl-C stops the waiting, not the run."""
    from rich.console import Console

    nap, began = MIN_POLL, monotonic()
    reporter = RunReporter(session)
    console = Console(stderr=True, markup=False, highlight=False)
    status = console.status("") if sys.stderr.isatty() else None
    with note_on_interrupt(run), status or nullcontext():
        while run.status in LIVE:
            if status is not None:
                status.update(f"{_describe(run)}, {monotonic() - began:.0f} s")
            pause(nap)
            nap = min(nap * 1.3, MAX_POLL)
            run = session.client.runs.get(run.id)
            reporter.report(run, is_long=nap == MAX_POLL)
    return run


class RunReporter:
    """Reports failed attempts of a run, and what it waits for, to the person who waits. Programs get nothing."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reported = 0  # the number of the last attempt that was reported
        self._is_explained = False

    def report(self, run: RunOut, *, is_long: bool) -> None:
        if not self._session.is_table:
            return
        for attempt in run.attempts or ():
            if attempt.number > self._reported and attempt.finished_at is not None:
                self._reported, self._is_explained = attempt.number, False
                if attempt.status != "succeeded":
                    why = "" if attempt.error is None else f": {attempt.error.message}"
                    self._session.note(f"Attempt {attempt.number} {attempt.status.replace('_', ' ')}{why}")
        waits = run.status == "waiting" or (run.status == "ready" and (self._reported > 0 or is_long))
        if waits and not self._is_explained:
            self._is_explained = True
            self._session.note(self._session.client.runs.explain(run.id).sentence)


@contextmanager
def note_on_interrupt(run: RunOut) -> Iterator[None]:
    """On Ctrl-C, say that the run continues."""
    try:
        yield
    except KeyboardInterrupt:
        name = escape_control(f"{run.job_name or run.job_id}#{run.number}")
        print_err(f'\nThe run continues. See it with: foliot runs show "{name}"')
        raise


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a spinner during one slow call."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, highlight=False).status(f"{escape_control(text)} …"):
        yield


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar during many calls. The yielded function advances it."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task(escape_control(text), total=total)
        yield lambda done: progress.advance(task, done)


def track(text: str, items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, with a bar on a terminal if there are many."""
    total = len(items) if isinstance(items, list | tuple) else None
    left = iter(items)
    if not sys.stderr.isatty() or (total is not None and total < MIN_TRACKED):
        yield from left
        return
    if total is None:
        yield from islice(left, UNTRACKED)
    from rich.console import Console
    from rich.progress import track as track_with_bar

    yield from track_with_bar(left, text, total=total, console=Console(stderr=True), transient=True)


def _describe(run: RunOut) -> str:
    retried = run.attempt_count and run.status == "ready"
    attempts = f" after {pluralize(run.attempt_count, 'attempt')}" if retried else ""
    return f"{escape_control(run.job_name or '')} #{run.number}: {run.status}{attempts}"
