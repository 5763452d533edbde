"""Run a handler for one attempt and make its result fit to be stored."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from foliot import telemetry
from foliot.domain.logs import storable as storable_text
from foliot.domain.masking import MASK, NO_MASKS, Masks
from foliot.domain.outcomes import AskedSkip, Failed, Succeeded
from foliot.domain.run import RunError
from foliot.handlers.registry import Assignment, Handler, HandlerResult, failed

MOST_OUTPUT = 1024 * 1024  # bytes of JSON
MOST_MESSAGE = 4_000  # characters
MOST_TRACEBACK = 8_000  # characters; the end names what went wrong
_encode = json.JSONEncoder(
    allow_nan=False, ensure_ascii=False
).encode  # `json.dumps` would make an encoder for each


async def run_handler(handler: Handler, assignment: Assignment, masks: Masks = NO_MASKS) -> HandlerResult:
    """Return the handler's result, ready to be stored. Raise only CancelledError: a deadline, a cancel or a shutdown."""
    try:
        if masks:
            # Libraries may log the run's secrets in the log of this process.
            with telemetry.hide_secrets(masks):
                result = await handler.run(assignment)
        else:
            result = await handler.run(assignment)
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        result = failed("CancelledError", "It waited for something that was cancelled.")
    except GeneratorExit:  # the event loop is gone, and the worker with it
        raise
    except BaseException as error:  # noqa: BLE001  # whatever it raises is the attempt's failure, not the worker's
        result = failed(type(error).__name__, str(error) or repr(error))
    return storable(result, masks)


def storable(result: HandlerResult, masks: Masks = NO_MASKS) -> HandlerResult:
    """Remove secrets. Turn an output that is no JSON, or too large, into a failure that no retry would mend."""
    if result.output is None and isinstance(result.outcome, Succeeded):
        return result
    if isinstance(result.outcome, Failed):
        error = result.outcome.error
        # Mask before cutting: the cut could leave half a secret, which no mask finds.
        traceback = error.traceback and storable_text(masks.text(error.traceback))[-MOST_TRACEBACK:]
        clean = RunError(
            storable_text(masks.text(error.code))[:100],
            storable_text(masks.text(error.message))[:MOST_MESSAGE],
            traceback,
        )
        result = HandlerResult(replace(result.outcome, error=clean), result.output)
    if isinstance(result.outcome, AskedSkip):
        note = storable_text(masks.text(result.outcome.note))[:MOST_MESSAGE]
        result = HandlerResult(AskedSkip(result.outcome.reason, note), result.output)
    if result.output is None or (problem := _problem(result.output)) is None:
        return HandlerResult(result.outcome, _masked(result.output, masks)) if masks else result
    if isinstance(result.outcome, Failed):
        return HandlerResult(result.outcome)
    return failed("output_invalid", problem, permanent=True)


def _is_cancelled() -> bool:
    """Return whether the worker cancelled this attempt.

    Code that awaits a task which it has cancelled itself raises the same error. Taken for a hand-back, it would be repeated for ever.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _masked(output: Any, masks: Masks) -> Any:
    try:
        return masks.json(output)
    except RecursionError:  # too deep to search, though not too deep to be stored
        return MASK


def _problem(output: Any) -> str | None:
    try:
        text = _encode(output)
    except (TypeError, ValueError, RecursionError) as error:
        return f"The work was done, but what it returned is not JSON: {error}."
    if len(text) > MOST_OUTPUT:
        return f"The work was done, but what it returned is larger than {MOST_OUTPUT // 1024} KiB."
    if storable_text(text) != text or "\\u0000" in text:
        return "The work was done, but the text it returned has characters that cannot be stored."
    return None
