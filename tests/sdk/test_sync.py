"""An app and a server: the code wins, nothing is deleted, and doing it again does nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from foliot import AsyncClient, Client, Foliot
from foliot.domain.access import Actor
from foliot.sdk import Conflict, Invalid, SyncResult
from foliot.sdk.asynchronous.sync import sync
from foliot.sdk.sync.entries import JobEntry, read_entry
from foliot.services.identity import workspaces
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.workers import workers
from foliot.storage.tx import Database
from foliot.wire.jobs import JobOut
from foliot.wiring.app_sync import JobSync, sync_app
from tests.sdk.conftest import ApiServer

HOOK = {"url": "https://example.test/hook"}


def charge(limit: int = 10) -> int:
    return limit


def report() -> None:
    """Tell what was charged."""


def an_app(**options: Any) -> Foliot:
    app = Foliot("billing")
    app.job(**{"cron": "0 6 * * *", **options})(charge)
    app.job(depends_on=["charge"])(report)
    return app


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(api_server.url, api_server.key) as client:
        yield client


async def stored(client: AsyncClient) -> dict[str, JobOut]:
    return {job.name: job async for job in client.jobs.each()}


async def test_a_second_sync_changes_nothing(client: AsyncClient) -> None:
    assert await an_app().sync_async(client) == SyncResult(created=("charge", "report"))
    made = await stored(client)
    assert made["charge"].managed_by == "billing"
    assert [edge.job for edge in made["report"].depends_on] == [made["charge"].id]
    assert await an_app().sync_async(client) == SyncResult(same=("charge", "report"))
    assert {job.revision for job in (await stored(client)).values()} == {1}


@pytest.mark.parametrize(
    "options",
    [
        {"cron": "0 6 * * *"},
        {"every": "10m"},
        {"when": "every weekday at 9am"},
        {"at": "2099-01-01T00:00:00Z"},
        {},
    ],
)
async def test_whatever_the_schedule_a_second_sync_changes_nothing(client: AsyncClient, options: Any) -> None:
    def app() -> Foliot:
        made = Foliot("billing")
        made.job(**options, payload={"limit": 3}, window={"start": "08:00", "end": "18:00"})(charge)
        return made

    assert (await app().sync_async(client)).created == ("charge",)
    assert await app().sync_async(client) == SyncResult(same=("charge",))


async def test_the_code_wins_and_a_paused_job_stays_paused(client: AsyncClient) -> None:
    await an_app().sync_async(client)
    before = (await stored(client))["charge"]
    await client.jobs.pause(before.id)
    await client.jobs.patch(before.id, {"timeout": "1m"}, force=True)
    done = await an_app(tags=["money"]).sync_async(client)
    assert done.changed == ("charge",)
    after = await client.jobs.get(before.id)
    assert (after.timeout, after.tags, after.status) == (before.timeout, ["money"], "paused")
    [newest, *_] = (await client.jobs.revisions(before.id)).items
    assert newest.note == "Changed by the code of billing."


async def test_others_may_not_edit_what_code_manages_but_pause_and_run_it(client: AsyncClient) -> None:
    await an_app().sync_async(client)
    job = (await stored(client))["charge"]
    edits: list[Callable[[], Any]] = [
        lambda: client.jobs.patch(job.id, {"timeout": "1m"}),
        lambda: client.jobs.replace(job.id, job.model_copy(update={"description": "mine"})),
    ]
    for edit in edits:
        with pytest.raises(Conflict) as refused:
            await edit()
        assert (refused.value.status, refused.value.code) == (409, "managed_by_code")
        assert "billing" in (refused.value.hint or "")
    assert (await client.jobs.patch(job.id, {"overlap": "skip"})).revision == 1  # which it is already
    assert (await client.jobs.run(job.id)).trigger == "manual"
    assert (await client.jobs.pause(job.id)).status == "paused"
    await client.jobs.patch(job.id, {"timeout": "1m"}, force=True)
    with pytest.raises(Conflict):
        await client.jobs.revert(job.id, 1)
    assert (await client.jobs.revert(job.id, 1, force=True)).revision == 3


async def test_what_is_no_longer_in_the_code_is_named_and_kept(client: AsyncClient) -> None:
    await an_app().sync_async(client)
    smaller = Foliot("billing")
    smaller.job(cron="0 6 * * *")(charge)
    assert await smaller.sync_async(client) == SyncResult(same=("charge",), gone=("report",))
    assert (await stored(client))["report"].status == "active"


async def test_a_job_that_people_made_is_taken_over_and_one_of_another_app_is_not(
    client: AsyncClient,
) -> None:
    manual = await client.jobs.create(name="charge", type="http", config=HOOK, schedule={"kind": "manual"})
    assert (await an_app().sync_async(client)).changed == ("charge",)
    assert (await client.jobs.get(manual.id)).type == "python"
    rival = Foliot("shipping")
    rival.job(every="1h")(charge)
    rival.job(name="ship", every="1h")(charge)
    with pytest.raises(Invalid, match="the app billing has a job"):
        await rival.sync_async(client)
    assert (await stored(client))["ship"].managed_by == "shipping"


async def test_a_refused_job_stops_no_other(client: AsyncClient) -> None:
    app = Foliot("billing")
    app.job(at="2020-01-01T00:00:00Z")(charge)
    app.job(name="later", when="tomorrow at 9am")(charge)
    app.job(every="1h")(report)
    app.job(name="behind", depends_on=["charge"])(report)
    with pytest.raises(Invalid) as refused:
        await app.sync_async(client)
    assert "charge: This time has passed." in str(refused.value)
    assert "later: these words mean a different time every day" in str(refused.value)
    assert "behind: it depends on charge, which was refused." in str(refused.value)
    assert set(await stored(client)) == {"report"}


async def test_the_plain_client_does_the_same_and_runs_by_name(api_server: ApiServer) -> None:
    def use() -> None:
        with Client(api_server.url, api_server.key) as client:
            app = Foliot("billing", client=client)
            app.job(cron="0 6 * * *")(charge)
            assert app.sync().created == ("charge",)
            [job] = app.jobs
            assert job.run_now(limit=3).input == {"limit": 3}
            assert [run.input for run in job.run_each([{"limit": n} for n in (4, 5)])] == [
                {"limit": 4},
                {"limit": 5},
            ]

    await asyncio.to_thread(use)


async def test_workers_that_load_an_app_at_once_make_its_jobs_once(
    api_server: ApiServer, client: AsyncClient, database: Database
) -> None:
    done = await asyncio.gather(*(sync_app(database, an_app()) for _ in range(4)))
    assert not any(each.refused for each in done)
    jobs = [job.name async for job in client.jobs.each()]
    assert sorted(jobs) == ["charge", "report"]
    assert await sync_app(database, an_app()) == SyncResult(same=("charge", "report"))
    assert (await sync_app(database, an_app(timeout="1m"))).changed == ("charge",)
    assert await an_app(timeout="1m").sync_async(client) == SyncResult(same=("charge", "report"))
    assert api_server.url


async def test_what_a_worker_syncs_is_checked_against_what_workers_reported_and_the_app_against_itself(
    api_server: ApiServer, client: AsyncClient, database: Database
) -> None:
    reported = [
        JobTypeDescription(name, "", {"type": "object", "required": ["source"]})
        for name in ("DATA_SYNC", "OWN")
    ]
    await workers.register(database, "w", ["*"], ["DATA_SYNC", "OWN"], 1, described=reported)
    books = JobSync(
        database,
        await workspaces.get(database, "default"),
        Actor("app:billing"),
        schemas={"OWN": {"type": "object", "required": ["target"]}},
    )

    def wanted(name: str, kind: str, **config: Any) -> JobEntry:
        job = {
            "name": name,
            "type": kind,
            "config": config,
            "schedule": {"kind": "manual"},
            "external_ref": {"source": "code", "app": "billing"},
        }
        return read_entry(job)

    done = await sync(
        books,
        "billing",
        [
            wanted("good", "DATA_SYNC", source="crm"),
            wanted("bad", "DATA_SYNC", target="crm"),
            wanted("new code", "OWN", target="crm"),
            wanted("rq", "rq", function="os.system"),
        ],
    )
    assert done.created == ("good", "new code")
    assert list(done.refused) == ["bad", "rq"]
    assert "source" in done.refused["bad"]
    assert "/config" in done.refused["bad"]
    assert "os.system" in done.refused["rq"]
    done = await sync(books, "billing", [wanted("good", "DATA_SYNC", target="crm")])
    assert list(done.refused) == ["good"]
    assert (await stored(client))["good"].config == {"source": "crm"}
    assert api_server.url
