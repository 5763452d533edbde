"""The end of a node: one deadline from the signal on, whatever hangs."""

from __future__ import annotations

import logging
import os
import threading

from foliot.clock import monotonic
from foliot.wiring.database import DatabaseHandle

log = logging.getLogger(__name__)
# Seconds after the signal. Requests get at most ten, runs at most nine and a half at the same time.
LAST_CALL = 10.5  # our PostgreSQL is stopped, which also ends whatever still waits for an answer of it
ALL_GONE = 14.0
CUT_OFF = 14.5  # of the 15 that we promise


class Shutdown:
    def __init__(self, here: DatabaseHandle) -> None:
        self._here = here
        self._begun = False

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._here.stop_by = monotonic() + ALL_GONE
            threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def _watch(self) -> None:
        """In a thread of its own, since what hangs may be the loop. It dies with the process, in time as a rule."""
        never = threading.Event()
        never.wait(LAST_CALL)
        began = monotonic()
        if self._here.server is not None:
            log.warning(
                "server.hurried", extra={"why": "something still waits; PostgreSQL is stopped under it"}
            )
            self._here.server.stop(ALL_GONE - LAST_CALL)
        never.wait(max(0.0, CUT_OFF - LAST_CALL - (monotonic() - began)))
        log.error("server.cut_off", extra={"why": "something did not end in time"})
        os._exit(1)
