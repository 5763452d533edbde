"""What a job's own code may know about the run it works for. Standard library only: child processes load this."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

Write = Callable[[str, str], None]  # a stream, and a text of one line or more
Keep = Callable[[str, bytes, str], object]  # a name, what it holds, its media type
Tell = Callable[[float, float, str], None]  # how much is done, of how much, and a note
MOST_ARTIFACT_BYTES = 20 * 1024 * 1024


def to_nowhere(stream: str, text: str) -> None:
    """Where nobody keeps what is written."""


def kept_nowhere(name: str, data: bytes, media_type: str) -> None:
    """Where nobody keeps artifacts."""


def told_nobody(done: float, total: float, note: str) -> None:
    """Where nobody asks how far it is."""


def never() -> bool:
    return False


@dataclass(slots=True, unsafe_hash=True)
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
    keep: Keep = field(default=kept_nowhere, repr=False, compare=False)
    tell: Tell = field(default=told_nobody, repr=False, compare=False)
    most_artifact_bytes: int = field(default=MOST_ARTIFACT_BYTES, repr=False)
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
        """How far the work is: `GET /runs/{id}` shows it while it runs. A line is kept for each whole percent at most, so it may be
        called as often as is handy.
        """
        self.tell(float(done), float(total), note)
        share = int(100 * done / total) if total else 100
        if share not in self._shares:
            self._shares.add(share)
            self.write("log", f"{share} % ({done:g} of {total:g})" + (f": {note}" if note else ""))

    def artifact(
        self,
        name: str,
        data: bytes | str | None = None,
        *,
        path: str | PathLike[str] | None = None,
        media_type: str | None = None,
    ) -> None:
        """Keep a file with the run: `GET /runs/{id}/artifacts` shows it at once, and it goes when the run does.

        One of the same name takes the place of the last. Where it cannot be kept, for want of room or because the run is another
        worker's by now, the attempt fails.
        """
        if (data is None) == (path is None):
            raise TypeError("an artifact has data or a path, one of them")
        content = (
            Path(path).read_bytes() if path is not None else data.encode() if isinstance(data, str) else data
        )
        assert content is not None
        if len(content) > self.most_artifact_bytes:
            raise ValueError(
                f"the artifact {name} has {len(content):,} bytes; the most is {self.most_artifact_bytes:,}"
            )
        guessed = mimetypes.guess_type(name)[0] or ("text/plain" if isinstance(data, str) else None)
        self.keep(name, bytes(content), media_type or guessed or "application/octet-stream")

    def as_json(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return named | {"planned_for": self.planned_for.isoformat()}

    @classmethod
    def of_json(
        cls,
        data: dict[str, Any],
        write: Write = to_nowhere,
        is_stopping: Callable[[], bool] = never,
        keep: Keep = kept_nowhere,
        tell: Tell = told_nobody,
    ) -> Context:
        planned_for = datetime.fromisoformat(data["planned_for"])
        given = data | {"planned_for": planned_for}
        return cls(**given, write=write, is_stopping=is_stopping, keep=keep, tell=tell)
