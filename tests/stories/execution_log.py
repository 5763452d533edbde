"""What functions of job_functions.py write down of each execution, and the gate that some of them wait at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class ExecutionLog:
    folder: Path

    @property
    def given(self) -> dict[str, str]:
        """The payload by which they know where to write and where to wait."""
        return {"sink": str(self.folder / "sink"), "gate": str(self.folder / "gate")}

    def executions(self, what: str) -> list[tuple[str, int, int]]:
        """(run, attempt, fence) of each execution that came this far."""
        sink = self.folder / "sink"
        lines = [line.split() for line in sink.read_text().splitlines()] if sink.exists() else []
        return [(run, int(attempt), int(fence)) for word, run, attempt, fence in lines if word == what]

    def open_gate(self) -> None:
        (self.folder / "gate").touch()
