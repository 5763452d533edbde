"""What a job's own code may know about the run it works for. Standard library only: child processes load this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

Write = Callable[[str, str], None]  # a stream, and a text of one line or more


def to_nowhere(stream: str, text: str) -> None:
    """Where nobody keeps what is written."""


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Context:
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
    is_stopping: Callable[[], bool] = field(default=never, repr=False, compare=False)
    _shares: set[int] = field(default_factory=set, repr=False, compare=False)  # percentages told so far
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # by the names in the job's config

    @property
    def cancelled(self) -> bool:
        """Whether this attempt has been told to end, by its deadline, a person or a shutdown: finish at once, or be ended."""
        return self.is_stopping()

    def log(self, *values: object) -> None:
        """Keep a line, or several, with the run: `GET /runs/{id}/logs` shows them while it runs. Written like `print`."""
        self.write("log", " ".join(map(str, values)))

    def progress(self, done: float, total: float = 100, note: str = "") -> None:
        """How far the work is. A line is kept for each whole percent at most, so it may be called as often as is handy."""
        share = int(100 * done / total) if total else 100
        if share not in self._shares:
            self._shares.add(share)
            self.write("log", f"{share} % ({done:g} of {total:g})" + (f": {note}" if note else ""))

    def as_json(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return named | {"planned_for": self.planned_for.isoformat()}

    @classmethod
    def of_json(
        cls, data: dict[str, Any], write: Write = to_nowhere, is_stopping: Callable[[], bool] = never
    ) -> Context:
        planned_for = datetime.fromisoformat(data["planned_for"])
        return cls(**data | {"planned_for": planned_for}, write=write, is_stopping=is_stopping)
