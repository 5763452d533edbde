"""The link of a host, over a real socket to a real server: it says the same as the link to the services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.errors import Conflict, Denied, Invalid, NotFound, Unavailable, WorkerGone
from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.logs import LogLine, LogStream
from foliot.domain.outcomes import Failed, HandedBack, Succeeded
from foliot.domain.run import RunError
from foliot.sdk import AsyncClient
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk, Progress
from foliot.services.settlement.report import Report
from foliot.services.workers.claim import ClaimSize, Work
from foliot.wire.worker import HostIn
from foliot.worker import http_link
from foliot.worker.http_link import HttpLink, WorkerIntroduction
from tests.sdk.conftest import ApiServer, api_server

pytestmark = pytest.mark.anyio
__all__ = ["api_server"]  # a fixture of the client's tests
H1 = WorkerIntroduction("h1/1", HostIn(name="h1", instances=["pvp"]))


@pytest.fixture
async def admin(api_server: ApiServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(api_server.url, api_server.key) as client:
        yield client


@pytest.fixture
async def link(api_server: ApiServer, admin: AsyncClient) -> AsyncIterator[HttpLink]:
    member = await admin.members.create("hosts", kind="service", role="viewer")
    made = await admin.keys.create("hosts", principal=member.id, scopes=["worker"])
    async with AsyncClient(api_server.url, made.secret, retries=0) as client:
        yield HttpLink(client, H1)


async def works(
    admin: AsyncClient, link: HttpLink, names: list[str], **more: Any
) -> tuple[WorkerId, list[Work]]:
    worker = await link.register(["http"], 8)
    for name in names:
        job = await admin.jobs.create(
            {
                "name": name,
                "type": "http",
                "config": {"url": "https://example.test"},
                "schedule": {"kind": "manual"},
                "target": {"server": "pvp"},
                "read_only": True,
                "payload": {"n": 1},
                **more,
            }
        )
        await admin.jobs.run(job.id)
    return worker, await link.claim(worker, ["http"], ClaimSize(8))


def report(work: Work, worker: WorkerId, outcome: Any, output: Any = None) -> Report:
    claimed = work.claimed
    return Report(claimed.run_id, claimed.job_id, claimed.fence, worker, outcome, output)


async def test_a_run_crosses_whole_and_its_lines_and_end_come_back(
    admin: AsyncClient, link: HttpLink
) -> None:
    worker, [work] = await works(admin, link, ["restart"])
    assert (work.job, work.input, work.config["url"]) == ("restart", {"n": 1}, "https://example.test")
    assert timedelta(minutes=9) < work.left <= timedelta(minutes=10)
    assert link.lease == timedelta(seconds=30)
    line = LogLine(datetime(2027, 1, 15, tzinfo=UTC), LogStream.STDERR, "ünïcode")
    await link.log([LogChunk(work.claimed.run_id, 1, work.claimed.fence, 1, [line])])
    key = (work.claimed.run_id, work.claimed.fence)
    beat = await link.beat(worker, [key], draining=False)
    assert (beat.is_alive, beat.cancels, beat.gone) == (True, [], [])
    await link.progress({key: Progress(1, 4, "a quarter", line.at)})
    shown = (await admin.runs.get(work.claimed.run_id)).progress
    assert shown is not None
    assert (shown.done, shown.total, shown.note) == (1, 4, "a quarter")
    await link.artifact(NewArtifact(*key, worker, 1, "players.csv", "text/csv", b"ada\n"))
    [kept] = (await admin.runs.artifacts(work.claimed.run_id)).items
    assert (kept.name, kept.media_type, kept.size) == ("players.csv", "text/csv", 4)
    with pytest.raises(Conflict):
        await link.artifact(NewArtifact(key[0], 7, worker, 1, "late.csv", "text/csv", b""))
    with pytest.raises(Invalid, match="cannot be called ''"):
        await link.artifact(NewArtifact(*key, worker, 1, "", "text/csv", b""))
    broke = Failed(RunError("boom", "It broke."), permanent=True)
    assert await link.report([report(work, worker, broke, {"n": 2})]) == {work.claimed.run_id}
    run = await admin.runs.get(work.claimed.run_id)
    assert (run.status, run.output) == ("failed", {"n": 2})
    lines = (await admin.runs.logs(work.claimed.run_id)).items
    assert [(each.stream, each.text) for each in lines] == [("stderr", "ünïcode")]


async def test_a_cancel_reaches_the_host_with_its_heartbeat(admin: AsyncClient, link: HttpLink) -> None:
    worker, [work] = await works(admin, link, ["restart"])
    await admin.runs.cancel(work.claimed.run_id)
    key = (work.claimed.run_id, work.claimed.fence)
    assert (await link.beat(worker, [key], draining=False)).cancels == [key]


async def test_reports_too_large_for_one_request_go_in_several(
    admin: AsyncClient, link: HttpLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_link, "LARGEST", 1_000)
    worker, found = await works(admin, link, ["a", "b", "c"])
    reports = [report(each, worker, Succeeded(), "x" * 600) for each in found]
    assert await link.report(reports) == {each.claimed.run_id for each in found}


async def test_what_is_somebody_else_s_by_now_is_refused_and_the_rest_is_taken(
    admin: AsyncClient, link: HttpLink
) -> None:
    worker, found = await works(admin, link, ["a", "b"])
    late = report(found[0], WorkerId(uuid4()), Succeeded())
    nobodys = Report(RunId(uuid4()), JobId(uuid4()), 1, worker, HandedBack())
    mine = report(found[1], worker, Succeeded())
    assert await link.report([late, nobodys, mine]) == {found[1].claimed.run_id}


async def test_a_worker_that_left_must_come_again_and_what_it_had_is_ready(
    admin: AsyncClient, link: HttpLink
) -> None:
    worker, [work] = await works(admin, link, ["restart"])
    await link.leave(worker)
    assert (await admin.runs.get(work.claimed.run_id)).status == "ready"
    assert not (await link.beat(worker, [], draining=False)).is_alive
    with pytest.raises(WorkerGone):
        await link.claim(worker, ["http"], ClaimSize(1))


async def test_a_key_that_is_not_for_workers_is_refused_when_it_registers(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key, retries=0) as client:
        with pytest.raises(Denied, match="scope worker"):
            await HttpLink(client, H1).register(["http"], 1)


async def test_an_address_with_a_path_too_much_is_reported_when_it_registers(api_server: ApiServer) -> None:
    async with AsyncClient(f"{api_server.url}/nope", api_server.key, retries=0) as client:
        with pytest.raises(NotFound, match="takes no workers") as reported:
            await HttpLink(client, H1).register(["http"], 1)
    assert "--server" in (reported.value.hint or "")


async def test_a_server_that_is_away_and_a_key_that_is_refused_later_are_waited_for(
    admin: AsyncClient, link: HttpLink, api_server: ApiServer
) -> None:
    worker, [work] = await works(admin, link, ["restart"])
    async with AsyncClient("http://127.0.0.1:9", "fol_x", retries=0) as nowhere:
        away = HttpLink(nowhere, H1)
        for ask in (
            away.claim(worker, ["http"], ClaimSize(1)),
            away.report([report(work, worker, Succeeded())]),
        ):
            with pytest.raises(Unavailable):
                await ask
    async with AsyncClient(api_server.url, "fol_nonsense", retries=0) as stranger:
        with pytest.raises(Unavailable):
            await HttpLink(stranger, H1).report([report(work, worker, Succeeded())])
