"""What an attempt came to, made fit to be stored."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.masking import MASK, Masks
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.run import RunError
from foliot.handlers.registry import HandlerResult, failed
from foliot.worker.attempt import MOST_MESSAGE, storable


@pytest.mark.parametrize("output", [None, 0, "x", {"a": [1.5, None]}, "\u2028 é"])
def test_json_is_kept_as_it_is(output: Any) -> None:
    assert storable(HandlerResult(Succeeded(), output)) == HandlerResult(Succeeded(), output)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({1, 2}, "not JSON"),
        (float("nan"), "not JSON"),
        ("a\0b", "cannot be stored"),
        ("\ud800", "cannot be stored"),
        ("x" * 2_000_000, "larger than"),
    ],
)
def test_what_cannot_be_stored_is_a_failure_that_no_retry_would_mend(output: Any, why: str) -> None:
    done = storable(HandlerResult(Succeeded(), output))
    assert isinstance(done.outcome, Failed)
    assert (done.outcome.error.code, done.outcome.permanent) == ("output_invalid", True)
    assert why in done.outcome.error.message


def test_a_failure_stays_the_failure_it_was() -> None:
    done = storable(failed("Bad\0Name", "x\ud800" * MOST_MESSAGE, {1}))
    assert isinstance(done.outcome, Failed)
    assert done.outcome.error == RunError("Bad\ufffdName", ("x\ufffd" * MOST_MESSAGE)[:MOST_MESSAGE])
    assert done.output is None


def test_a_secret_at_the_cut_of_a_long_message_leaves_no_piece_behind() -> None:
    """Pieces shorter than a mask looks for would stay where the message was cut first."""
    secret = "hunter2-and-more"
    for left in range(len(secret)):
        message = "." * (MOST_MESSAGE - left) + secret
        done = storable(failed("Error", message), Masks([secret]))
        assert isinstance(done.outcome, Failed)
        kept = done.outcome.error.message
        assert len(kept) <= MOST_MESSAGE
        assert not any(char.isalnum() and char not in MASK for char in kept)
