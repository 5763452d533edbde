"""Function of the queue engines' workers: log the start, wait for a gate, fail on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foliot.clock import monotonic, pause

PATIENCE = 60.0  # seconds


def work(sink: str, gate: str | None = None, fail: str | None = None, value: Any = None) -> dict[str, Any]:
    with Path(sink).open("a") as marks:
        marks.write("begun\n")
    until = monotonic() + PATIENCE
    while gate is not None and not Path(gate).exists() and monotonic() < until:
        pause(0.01)
    if fail is not None and Path(fail).exists():
        Path(fail).unlink()
        raise ValueError("no such invoice")
    return {"value": value}
