"""The run that a job's code executes. Standard library only: child processes import this."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from foliot.wire.amounts import add_usage, read_usage

Amount = int | float | str | Decimal
WriteLines = Callable[[str, str], None]  # the stream, and one or more lines
StoreArtifact = Callable[[str, bytes, str], object]  # name, content, media type
ReportProgress = Callable[[float, float, str], None]  # done, total, note
ReportUsage = Callable[[Mapping[str, Decimal]], None]  # amounts by unit
MAX_ARTIFACT_BYTES = 20 * 1024 * 1024


def discard_lines(stream: str, text: str) -> None:
    """Ignore output, outside a worker."""


def discard_artifact(name: str, data: bytes, media_type: str) -> None:
    """Ignore artifacts, outside a worker."""


def discard_progress(done: float, total: float, note: str) -> None:
    """Ignore progress, outside a worker."""


def discard_usage(usage: Mapping[str, Decimal]) -> None:
    """Ignore usage, outside a worker."""


def never_stopping() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Upstream:
    """The run of another job whose end triggered this one."""

    job_id: str
    run_id: str
    status: str
    output: Any = None  # what its code returned


@dataclass(slots=True, unsafe_hash=True)
class Context:
    """All attempts of a run share `run_id`: use it as an idempotency key. `fence` rises with each attempt, so that other
    systems can refuse writes of an older attempt.
    """

    workspace_id: str
    job_id: str
    job: str
    run_id: str
    attempt: int
    fence: int
    trigger: str
    planned_for: datetime
    write: WriteLines = field(default=discard_lines, repr=False, compare=False)
    is_stopping: Callable[[], bool] = field(default=never_stopping, repr=False, compare=False)
    keep: StoreArtifact = field(default=discard_artifact, repr=False, compare=False)
    tell: ReportProgress = field(default=discard_progress, repr=False, compare=False)
    most_artifact_bytes: int = field(default=MAX_ARTIFACT_BYTES, repr=False)
    _shares: set[int] = field(default_factory=set, repr=False, compare=False)  # percentages logged so far
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # by the names in the job's config
    deadline: datetime | None = None  # when this attempt is ended
    workspace: str = ""  # its slug
    number: int = 0  # of the run, within its job
    triggered_by: str | None = None  # who asked for the run; None where the schedule or another job did
    upstream: Upstream | None = field(
        default=None, hash=False
    )  # where the end of another job's run triggered it
    spend: ReportUsage = field(default=discard_usage, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether this attempt must stop, because of its deadline, a cancel or a shutdown. Return soon, or be killed."""
        return self.is_stopping()

    def log(self, *values: object) -> None:
        """Write to the log of the run, like `print`. `GET /runs/{id}/logs` shows it while it runs."""
        self.write("log", " ".join(map(str, values)))

    def progress(self, done: float, total: float = 100, note: str = "") -> None:
        """Report progress: `GET /runs/{id}` shows it while it runs. Call it as often as you like: at most one line is logged
        for each percent.
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
        """Store a file with the run: `GET /runs/{id}/artifacts` shows it at once. It is deleted with the run.

        A file of the same name is replaced. If it cannot be stored, because of a quota or because another worker has the
        run by now, the attempt fails.
        """
        if (data is None) == (path is None):
            raise TypeError("an artifact needs either data or path")
        content = (
            Path(path).read_bytes() if path is not None else data.encode() if isinstance(data, str) else data
        )
        assert content is not None
        if len(content) > self.most_artifact_bytes:
            raise ValueError(
                f"the artifact {name} has {len(content):,} bytes; the maximum is {self.most_artifact_bytes:,}"
            )
        guessed = mimetypes.guess_type(name)[0] or ("text/plain" if isinstance(data, str) else None)
        self.keep(name, bytes(content), media_type or guessed or "application/octet-stream")

    def report_usage(self, usage: Mapping[str, Amount] | None = None, /, **units: Amount) -> None:
        """Report what this attempt has used, in any units: `ctx.report_usage(tokens=1200, usd="0.0123")`. Calls add up.

        It is stored with the end of the attempt, whether that succeeds or fails. An amount is never negative and has at most
        nine decimals; text and Decimal are exact. Budgets of the job and of its workspace count it.
        """
        self.spend(read_usage({**(usage or {}), **units}))

    def as_json(self) -> dict[str, Any]:
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        deadline = self.deadline and self.deadline.isoformat()
        upstream = self.upstream and asdict(self.upstream)
        return named | {
            "planned_for": self.planned_for.isoformat(),
            "deadline": deadline,
            "upstream": upstream,
        }

    @classmethod
    def of_json(
        cls,
        data: dict[str, Any],
        write: WriteLines = discard_lines,
        is_stopping: Callable[[], bool] = never_stopping,
        keep: StoreArtifact = discard_artifact,
        tell: ReportProgress = discard_progress,
        spend: ReportUsage = discard_usage,
    ) -> Context:
        planned_for, deadline = datetime.fromisoformat(data["planned_for"]), data.get("deadline")
        given = data | {
            "planned_for": planned_for,
            "deadline": None if deadline is None else datetime.fromisoformat(deadline),
            "upstream": None if data.get("upstream") is None else Upstream(**data["upstream"]),
        }
        return cls(**given, write=write, is_stopping=is_stopping, keep=keep, tell=tell, spend=spend)


class FakeContext(Context):
    """A context for tests of a job's code: it keeps what the code logs, reports and stores.

    ctx = FakeContext(job="report", attempt=2)
    send_report(ctx, month="2026-11")
    assert ctx.lines == ["sent 12 mails"]
    """

    __slots__ = ("artifacts", "lines", "reported", "used")

    def __init__(self, **fields: Any) -> None:
        self.lines: list[str] = []
        self.reported: list[tuple[float, float, str]] = []  # done, total, note
        self.artifacts: dict[str, bytes] = {}
        self.used: dict[str, Decimal] = {}  # by unit
        known = {
            "workspace_id": "00000000-0000-0000-0000-000000000001",
            "job_id": "00000000-0000-0000-0000-000000000002",
            "job": "job",
            "run_id": "00000000-0000-0000-0000-000000000003",
            "attempt": 1,
            "fence": 1,
            "trigger": "manual",
            "planned_for": datetime(2027, 1, 15, 12, tzinfo=UTC),
            "workspace": "default",
        }
        given = {**known, **fields}
        super().__init__(
            **given, write=self._line, keep=self._artifact, tell=self._progress, spend=self._usage
        )

    def _line(self, stream: str, text: str) -> None:
        self.lines += text.split("\n")

    def _artifact(self, name: str, data: bytes, media_type: str) -> None:
        self.artifacts[name] = data

    def _progress(self, done: float, total: float, note: str) -> None:
        self.reported.append((done, total, note))

    def _usage(self, usage: Mapping[str, Decimal]) -> None:
        self.used = add_usage(self.used, usage)
