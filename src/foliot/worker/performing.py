"""One attempt: a handler, and what came of it as a value that can be stored."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from foliot import telemetry
from foliot.domain.masking import MASK, NO_MASKS, Masks
from foliot.domain.outcomes import AskedSkip, Failed, Outcome
from foliot.domain.run import RunError
from foliot.handlers.registry import Assignment, Done, Handler, failed
from foliot.sdk.context import (
    MOST_ARTIFACT_BYTES,
    Context,
    Keep,
    Tell,
    Write,
    kept_nowhere,
    to_nowhere,
    told_nobody,
)
from foliot.services.work import Work

MOST_OUTPUT = 1024 * 1024  # bytes of JSON
MOST_MESSAGE = 4_000  # characters
# PostgreSQL keeps neither of these in JSON or text.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NOTHING_HIDDEN = nullcontext()


def by_nobody() -> Outcome | None:
    return None


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where an attempt keeps its artifacts, and how large they may be."""

    keep: Keep = kept_nowhere
    most_bytes: int = MOST_ARTIFACT_BYTES


async def perform(
    handler: Handler,
    work: Work,
    write: Write = to_nowhere,
    masks: Masks = NO_MASKS,
    tell: Tell = told_nobody,
    shelf: Shelf | None = None,
    ended_by: Callable[[], Outcome | None] = by_nobody,
) -> Done:
    """Raises nothing but CancelledError, when somebody ended it: its deadline, a person, a shutdown."""
    # What libraries tell in the log of this process is none of the run's, but may hold its secrets.
    with telemetry.hidden(masks) if masks else _NOTHING_HIDDEN:
        try:
            done = await handler.run(assignment_of(work, write, tell, shelf or Shelf(), ended_by))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            done = failed("CancelledError", "It waited for something that was cancelled.")
        except GeneratorExit:  # the loop is gone, and we with it
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it raises is the attempt's failure, not ours
            done = _raised(error)
    return storable(done, masks)


def assignment_of(
    work: Work,
    write: Write,
    tell: Tell,
    shelf: Shelf,
    ended_by: Callable[[], Outcome | None] = by_nobody,
) -> Assignment:
    claimed = work.claimed
    ctx = Context(
        workspace_id=str(claimed.workspace_id),
        job_id=str(claimed.job_id),
        job=work.job,
        run_id=str(claimed.run_id),
        attempt=claimed.attempt,
        fence=claimed.fence,
        trigger=claimed.trigger.value,
        planned_for=claimed.planned_for,
        most_artifact_bytes=shelf.most_bytes,
        write=write,
        keep=shelf.keep,
        tell=tell,
    )
    return Assignment(ctx, work.config, work.input, work.left, ended_by)


def storable(done: Done, masks: Masks = NO_MASKS) -> Done:
    """Without secrets. An output that is no JSON, or too much of it, is a failure that no retry would mend."""
    if isinstance(done.outcome, Failed):
        error = done.outcome.error
        # What is cut off last may be the middle of a secret, so those go first.
        clean = RunError(
            _clean(masks.text(error.code))[:100], _clean(masks.text(error.message))[:MOST_MESSAGE]
        )
        done = Done(replace(done.outcome, error=clean), done.output)
    if isinstance(done.outcome, AskedSkip):
        note = _clean(masks.text(done.outcome.note))[:MOST_MESSAGE]
        done = Done(AskedSkip(done.outcome.reason, note), done.output)
    if done.output is None or (problem := _problem(done.output)) is None:
        return Done(done.outcome, _masked(done.output, masks)) if masks else done
    if isinstance(done.outcome, Failed):
        return Done(done.outcome)
    return failed("output_invalid", problem, permanent=True)


def _is_cancelled() -> bool:
    """Whether somebody ended this attempt. Code that waits for a task which it has cancelled itself raises the same error, and would
    otherwise be taken for handed back, to be done again at once and for ever.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _masked(output: Any, masks: Masks) -> Any:
    try:
        return masks.json(output)
    except RecursionError:  # too deep to look through, though not too deep to be stored
        return MASK


def _problem(output: Any) -> str | None:
    try:
        text = json.dumps(output, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        return f"The work was done, but what it returned is not JSON: {error}."
    if len(text) > MOST_OUTPUT:
        return f"The work was done, but what it returned is larger than {MOST_OUTPUT // 1024} KiB."
    if _UNSTORABLE.search(text) or "\\u0000" in text:
        return "The work was done, but the text it returned has characters that cannot be stored."
    return None


def _raised(error: BaseException) -> Done:
    return failed(type(error).__name__, str(error) or repr(error))


def _clean(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)
