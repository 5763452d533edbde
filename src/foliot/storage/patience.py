"""A bounded wait for synchronous code: pauses with jitter, so that two nodes that collide do not collide again."""

from __future__ import annotations

from random import SystemRandom

from foliot.clock import monotonic, pause

_chance = SystemRandom()


class Patience:
    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    def again(self) -> bool:
        """Pause a moment; False once the time is up."""
        left = self._until - monotonic()
        if left <= 0:
            return False
        pause(min(left, _chance.uniform(0.05, 0.25)))
        return True
