"""One attempt: a handler, and what came of it as a value that can be stored."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from foliot import telemetry
from foliot.domain.masking import MASK, NO_MASKS, Masks
from foliot.domain.outcomes import AskedSkip, Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.handlers.registry import Assignment, Handler, HandlerResult, failed
from foliot.sdk.context import Context, Keep, Tell, Write
from foliot.services.workers.claim import Work

MOST_OUTPUT = 1024 * 1024  # bytes of JSON
MOST_MESSAGE = 4_000  # characters
# PostgreSQL keeps neither of these in JSON or text.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class AttemptCallbacks(NamedTuple):
    """What an attempt may do beside its work, and how it learns that it is to end."""

    write: Write
    tell: Tell
    keep: Keep
    most_artifact_bytes: int
    is_ended: Callable[[], bool]
    ended_by: Callable[[], Outcome | None]


async def run_handler(
    handler: Handler, work: Work, ways: AttemptCallbacks, masks: Masks = NO_MASKS
) -> HandlerResult:
    """Raises nothing but CancelledError, when somebody ended it: its deadline, a person, a shutdown."""
    try:
        if masks:
            # What libraries tell in the log of this process is none of the run's, but may hold its secrets.
            with telemetry.hide_secrets(masks):
                done = await handler.run(assignment_of(work, ways))
        else:
            done = await handler.run(assignment_of(work, ways))
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        done = failed("CancelledError", "It waited for something that was cancelled.")
    except GeneratorExit:  # the loop is gone, and we with it
        raise
    except BaseException as error:  # noqa: BLE001  # whatever it raises is the attempt's failure, not ours
        done = _raised(error)
    return storable(done, masks)


def assignment_of(work: Work, ways: AttemptCallbacks) -> Assignment:
    claimed = work.claimed
    ctx = Context(
        str(claimed.workspace_id),
        str(claimed.job_id),
        work.job,
        str(claimed.run_id),
        claimed.attempt,
        claimed.fence,
        claimed.trigger.value,
        claimed.planned_for,
        ways.write,
        ways.is_ended,
        ways.keep,
        ways.tell,
        ways.most_artifact_bytes,
    )
    return Assignment(ctx, work.config, work.input, work.left, ways.ended_by)


def storable(done: HandlerResult, masks: Masks = NO_MASKS) -> HandlerResult:
    """Without secrets. An output that is no JSON, or too much of it, is a failure that no retry would mend."""
    if done.output is None and isinstance(done.outcome, Succeeded):
        return done
    if isinstance(done.outcome, Failed):
        error = done.outcome.error
        # What is cut off last may be the middle of a secret, so those go first.
        clean = RunError(
            _clean(masks.text(error.code))[:100], _clean(masks.text(error.message))[:MOST_MESSAGE]
        )
        done = HandlerResult(replace(done.outcome, error=clean), done.output)
    if isinstance(done.outcome, AskedSkip):
        note = _clean(masks.text(done.outcome.note))[:MOST_MESSAGE]
        done = HandlerResult(AskedSkip(done.outcome.reason, note), done.output)
    if done.output is None or (problem := _problem(done.output)) is None:
        return HandlerResult(done.outcome, _masked(done.output, masks)) if masks else done
    if isinstance(done.outcome, Failed):
        return HandlerResult(done.outcome)
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


def _raised(error: BaseException) -> HandlerResult:
    return failed(type(error).__name__, str(error) or repr(error))


def _clean(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)
