"""What a job's own code may know about the run it works for. Standard library only: child processes load this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

Write = Callable[[str, str], None]  # a stream, and a text of one line or more


def to_nowhere(stream: str, text: str) -> None:
    """Where nobody keeps what is written."""


@dataclass(frozen=True, slots=True)
class Ctx:
    """All attempts of a run share `run_id`: it is the key to make repeated work harmless. `fence` rises with each attempt,
    so that a system that remembers the highest one seen can refuse a straggler.
    """

    workspace_id: str
    job_id: str
    job: str
    run_id: str
    attempt: int
    fence: int
    trigger: str
    planned_for: datetime
    write: Write = field(default=to_nowhere, repr=False, compare=False)

    def log(self, *values: object) -> None:
        """Keep a line, or several, with the run: `GET /runs/{id}/logs` shows them while it runs. Written like `print`."""
        self.write("log", " ".join(map(str, values)))

    def as_json(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "write"}
        return named | {"planned_for": self.planned_for.isoformat()}

    @classmethod
    def of_json(cls, data: dict[str, Any], write: Write = to_nowhere) -> Ctx:
        return cls(**data | {"planned_for": datetime.fromisoformat(data["planned_for"])}, write=write)
