"""Simulated handlers: how long an attempt takes and how it ends, from the seed, the job's name, the planned time and the attempt.

Run ids take no part, so the same seed gives the same history whatever ids were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from foliot.domain.outcomes import AskedRetry, AskedSkip, Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.domain.schedule import SkipReason
from tools.simulation.world import MINUTE, Behaviour

BROKE = RunError("broke", "It broke.")
FOR_EVER = timedelta(days=365)
_WHOLE = 1 << 32


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    takes: timedelta
    outcome: Outcome


def plan_attempt(
    seed: str, name: str, behaviour: Behaviour, planned_for: datetime, attempt: int
) -> PlannedAttempt:
    key = f"{seed}/{name}/{planned_for.timestamp()}/{attempt}".encode()
    digest = blake2b(key, digest_size=12).digest()
    length, luck, mood = (int.from_bytes(digest[start : start + 4], "big") / _WHOLE for start in (0, 4, 8))
    if luck < behaviour.hanging:
        return PlannedAttempt(FOR_EVER, Succeeded())
    takes = behaviour.typical * (0.25 + 1.5 * length)
    if luck < behaviour.hanging + behaviour.failing:
        return PlannedAttempt(takes, _failure(mood))
    return PlannedAttempt(takes, AskedSkip(SkipReason.QUOTA, "nothing to do") if mood < 0.02 else Succeeded())


def _failure(mood: float) -> Outcome:
    if mood < 0.1:
        return Failed(BROKE, permanent=True)
    if mood < 0.2:
        return AskedRetry(2 * MINUTE)
    return Failed(BROKE)
