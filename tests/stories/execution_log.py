"""The file to which job_functions.py writes each execution, and the gate at which some functions wait."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class ExecutionLog:
    folder: Path

    @property
    def payload(self) -> dict[str, str]:
        """Payload of the jobs: where to write and where to wait."""
        return {"sink": str(self.folder / "sink"), "gate": str(self.folder / "gate")}

    def executions(self, what: str) -> list[tuple[str, int, int]]:
        """Return (run, attempt, fence) of each execution that logged `what`."""
        sink = self.folder / "sink"
        lines = [line.split() for line in sink.read_text().splitlines()] if sink.exists() else []
        return [(run, int(attempt), int(fence)) for word, run, attempt, fence in lines if word == what]

    def open_gate(self) -> None:
        (self.folder / "gate").touch()
