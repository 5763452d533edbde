"""What a job's own code may know about the run it works for. Standard library only: child processes load this."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


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

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"planned_for": self.planned_for.isoformat()}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Ctx:
        return cls(**data | {"planned_for": datetime.fromisoformat(data["planned_for"])})
