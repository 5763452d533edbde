"""Overlap: what a new run may do while others of its job are live. Fires, manual runs and dependents all ask here."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from foliot.domain.policy import Overlap, OverlapRule


class Admission(StrEnum):
    START = "start"
    WAIT = "wait"
    CANCEL_AND_WAIT = "cancel_and_wait"  # the live run is cancelled, the new one waits for its end
    SKIP = "skip"


def admit(overlap: Overlap, live: int, waiting: int, *, patient: bool = False) -> Admission:
    """`live` runs have started or may start; `waiting` ones stand behind them. A patient run (manual, catch-up) never skips."""
    rule = overlap.rule
    if rule is OverlapRule.CONCURRENT or (live == 0 and waiting == 0):
        return Admission.START
    if patient:
        return Admission.WAIT
    match rule:
        case OverlapRule.SKIP:
            return Admission.SKIP
        case OverlapRule.QUEUE:
            return Admission.WAIT if waiting < overlap.max_queued else Admission.SKIP
        case OverlapRule.QUEUE_ONE:
            return Admission.WAIT if waiting == 0 else Admission.SKIP
        case OverlapRule.CANCEL_RUNNING:
            return Admission.CANCEL_AND_WAIT if waiting == 0 else Admission.SKIP
        case _ as never:
            assert_never(never)
