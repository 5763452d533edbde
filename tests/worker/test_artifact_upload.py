"""What a function stores and reports, in a child process and on the loop, and where it arrives in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Unavailable
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.domain.masking import Masks
from foliot.domain.policy import Limits, Retry
from foliot.domain.run import Progress
from foliot.domain.schedule import Once
from foliot.handlers.python import PythonHandler
from foliot.services.jobs import jobs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.scheduling.tick import tick
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.worker import artifact_upload as rules
from foliot.worker.artifact_upload import ArtifactUpload
from foliot.worker.link import LocalLink
from foliot.worker.progress import ProgressBuffer
from foliot.worker.worker import Worker
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
KEY = (RunId(uuid4()), 3)


class Line(LocalLink):
    """A link that only remembers, and fails as often as the test sets."""

    def __init__(self, failures: int = 0) -> None:
        self.kept: list[NewArtifact] = []
        self.reported: list[Mapping[Any, Progress]] = []
        self.failures = failures

    async def artifact(self, given: NewArtifact) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("PostgreSQL does not answer.")
        self.kept.append(given)

    async def progress(self, reported: Mapping[Any, Progress]) -> None:
        self.reported.append(reported)


async def test_what_cannot_be_stored_now_is_stored_a_little_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "PAUSE", 0)
    line = Line(failures=2)
    keeping = ArtifactUpload(line)
    keep = keeping.uploader(KEY, 1, WorkerId(uuid4()))
    keep("a", b"1", "text/plain")
    await asyncio.to_thread(keep, "b", b"2", "text/plain")
    assert keeping.has_any(KEY)
    assert await keeping.finish(KEY) is None
    assert sorted(each.name for each in line.kept) == ["a", "b"]
    assert not keeping.has_any(KEY)


async def test_what_cannot_be_stored_at_all_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "PAUSE", 0)
    keeping = ArtifactUpload(Line(failures=99))
    keeping.uploader(KEY, 1, WorkerId(uuid4()))("a", b"1", "text/plain")
    assert await keeping.finish(KEY) == "PostgreSQL does not answer."


async def test_trouble_that_nobody_foresaw_is_the_artifacts_and_not_the_workers() -> None:
    class Breaks(Line):
        async def artifact(self, given: NewArtifact) -> None:
            raise ValueError("this does not fit")

    keeping = ArtifactUpload(Breaks())
    keeping.uploader(KEY, 1, WorkerId(uuid4()))("a", b"1", "text/plain")
    assert await keeping.finish(KEY) == "ValueError: this does not fit"


async def test_a_file_that_cannot_be_masked_is_refused_and_keeps_nobody_waiting() -> None:
    line = Line()
    keeping = ArtifactUpload(line)
    keep = keeping.uploader(KEY, 1, WorkerId(uuid4()), Masks(["tok-12345678"]))
    keep("a", b"tok-12345678", "text/plain; charset=utf-16\0")
    assert await keeping.finish(KEY) == "ValueError: embedded null character"
    assert line.kept == []


async def test_only_the_last_word_of_a_second_is_sent() -> None:
    line = Line()
    meter = ProgressBuffer(line, ManualClock(datetime(2027, 1, 15, tzinfo=UTC)))
    tell = meter.writer(KEY)
    assert await meter.step() > timedelta(seconds=5)
    for done in range(1000):
        tell(done, 1000, "rows")
    tell(float("nan"), 1000, "nonsense")
    assert await meter.step() == timedelta(seconds=1)
    [reported] = line.reported
    assert (reported[KEY].done, reported[KEY].share, reported[KEY].note) == (999, 0.999, "rows")
    tell(1000, 1000, "")
    meter.forget(KEY)
    await meter.step()
    assert len(line.reported) == 1


@pytest.mark.parametrize("name", ["keeps", "keeps_soon"])
async def test_what_a_function_keeps_is_stored_before_its_run_ends(
    database: Database,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", here)
    (tmp_path / "file").write_bytes(b"from a file")
    given = {"path": str(tmp_path / "file")}
    status = await worked(database, workspace, owner, clock, f"functions:{name}", given)
    assert status == ("succeeded", None)
    rows = owner.execute(
        "SELECT name, media_type, size, attempt FROM foliot.artifacts ORDER BY name"
    ).fetchall()
    assert rows == [
        ("copy", "application/octet-stream", 11, 1),
        ("raw", "application/octet-stream", 300_000, 1),
        ("report.csv", "text/csv", 4, 1),
    ]


async def test_an_artifact_that_is_too_large_fails_its_function(
    database: Database,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    status = await worked(database, workspace, owner, clock, "functions:keeps_too_much", {}, most_bytes=100)
    assert status == ("failed", "ValueError")


async def test_an_artifact_beyond_the_quota_fails_the_attempt(
    database: Database,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    (tmp_path / "file").write_bytes(b"from a file")
    given = {"path": str(tmp_path / "file")}
    status = await worked(database, workspace, owner, clock, "functions:keeps", given, quota=1000)
    assert status == ("failed", "artifact_refused")


async def worked(
    database: Database,
    workspace: WorkspaceId,
    owner: psycopg.Connection[Any],
    clock: ManualClock,
    call: str,
    given: dict[str, Any],
    most_bytes: int = 20 << 20,
    quota: int | None = None,
) -> tuple[str, str | None]:
    """The end of a run that calls it: status and code."""
    limits, retry = Limits(timeout=timedelta(minutes=1)), Retry(max=0)
    spec = Spec(Once(clock.now() + timedelta(seconds=1)), "python", limits=limits, retry=retry)
    definition = Definition("job", spec, config={"call": call}, payload=given)
    await jobs.create(database, Scope(workspace, Actor("test")), definition)
    clock.advance(timedelta(seconds=2))
    link = LocalLink(database, "test", most_artifact_bytes=most_bytes, artifact_quota=quota)
    handler = PythonHandler()
    worker = Worker(link, {"python": handler}, 1)
    async with asyncio.timeout(30):
        await tick(database)
        await worker.step()
        await wait_until(lambda: worker.reporter.unsent)
        await worker.reporter.step()
    await handler.close()
    [(status, code)] = owner.execute("SELECT status, error ->> 'code' FROM foliot.runs").fetchall()
    return status, code


async def test_a_file_that_says_it_is_text_leaves_the_worker_without_secrets() -> None:
    line = Line()
    keeping = ArtifactUpload(line)
    keep = keeping.uploader(KEY, 1, WorkerId(uuid4()), Masks(["tok-12345678"]))
    keep("env.txt", b"TOKEN=tok-12345678", "text/plain")
    keep("env.bin", b"TOKEN=tok-12345678", "application/octet-stream")
    assert await keeping.finish(KEY) is None
    assert {each.name: each.data for each in line.kept} == {
        "env.txt": b"TOKEN=***",
        "env.bin": b"TOKEN=tok-12345678",
    }
