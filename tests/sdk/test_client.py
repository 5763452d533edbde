"""Both clients against the real API over a real socket."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Required, get_origin, get_type_hints
from uuid import uuid4

import pytest

from foliot.sdk import AsyncClient, Client, Conflict, Invalid, NotFound, Unauthorized, Unreachable
from foliot.sdk.keywords import JobKeywords
from foliot.wire.jobs import JobIn, Retry
from foliot.wire.schedules import IntervalIn
from tests.sdk.conftest import ApiServer

HOOK = {"url": "https://example.test/hook"}


async def test_a_job_is_made_watched_and_operated(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        made = await client.jobs.create(
            name="digest",
            type="http",
            config=HOOK,
            schedule="every weekday at 9am",
            timeout=timedelta(minutes=2),
            retry=Retry(max=1, strategy="fixed", base=timedelta(seconds=5)),
            tags=["mail"],
        )
        assert made.schedule.words == "Every weekday at 09:00, UTC"
        assert made.timeout == timedelta(minutes=2)
        assert made.retry.base == timedelta(seconds=5)
        assert (await client.jobs.get(made.id)) == made
        ahead = await client.jobs.next(made.id, 3)
        assert ahead.items[0].planned_for == made.next_run_at
        assert len(ahead.items) == 3

        paused = await client.jobs.pause(
            made.id, reason="moving house", until=datetime(2100, 1, 1, tzinfo=UTC)
        )
        assert (paused.status, paused.status_reason) == ("paused", "moving house")
        assert (await client.jobs.pause(made.id)).paused_until is None
        assert (await client.jobs.resume(made.id)).status == "active"
        with pytest.raises(Conflict) as refused:
            await client.jobs.resume(made.id)
        assert refused.value.code == "illegal_move"

        run = await client.jobs.run(made.id, input={"full": True})
        assert run.input == {"full": True}
        assert (await client.runs.get(run.id)) == run
        assert [each.id async for each in client.jobs.each_run(made.id) if each.trigger == "manual"] == [
            run.id
        ]


async def test_a_job_is_found_by_its_name_and_a_name_of_several_lists_their_ids(
    api_server: ApiServer,
) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        digest = await client.jobs.create(
            name="digest", type="http", config=HOOK, schedule="every day at 9am"
        )
        await client.jobs.create(name="digest of May", type="http", config=HOOK, schedule="every day at 9am")
        assert (await client.jobs.find("digest")).id == digest.id
        with pytest.raises(NotFound) as missing:
            await client.jobs.find("diges")
        assert "digest of May" in str(missing.value)
        twin = await client.jobs.create(name="digest", type="http", config=HOOK, schedule="every hour")
        with pytest.raises(Invalid) as several:
            await client.jobs.find("digest")
        assert str(digest.id) in str(several.value)
        assert f"{twin.id}: active, Every hour" in str(several.value)
        with pytest.raises(NotFound) as no_id:
            await client.jobs.pause("digest")
        assert "Check its id (a name is not one)" in str(no_id.value)


async def test_a_job_is_changed_looked_back_upon_and_put_away(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        made = await client.jobs.create(name="digest", type="http", config=HOOK, schedule="every day at 9am")
        changed = await client.jobs.patch(made.id, {"timeout": "1m"}, revision=1, note="It is quick.")
        assert (changed.timeout, changed.revision) == (timedelta(minutes=1), 2)
        with pytest.raises(Conflict) as refused:
            await client.jobs.patch(made.id, {"timeout": "2m"}, revision=1)
        assert (refused.value.status, refused.value.code) == (412, "stale_revision")
        named = await client.jobs.replace(made.id, changed.model_copy(update={"name": "morning digest"}))
        assert (named.name, named.timeout) == ("morning digest", timedelta(minutes=1))
        found = (await client.jobs.revisions(made.id)).items
        assert [(each.revision, each.note) for each in found] == [(3, None), (2, "It is quick."), (1, None)]
        assert (await client.jobs.revert(made.id, 1)).name == "digest"
        await client.jobs.delete(made.id)
        assert (await client.jobs.get(made.id)).status == "archived"


async def test_the_synchronous_client_does_the_same(api_server: ApiServer) -> None:
    def story() -> None:
        with Client(api_server.url, api_server.key) as client:
            job = JobIn(
                name="beat",
                type="http",
                config=HOOK,
                schedule=IntervalIn(kind="interval", every=timedelta(minutes=10)),
            )
            made = client.jobs.create(job)
            client.jobs.create(
                {"name": "other", "type": "http", "config": HOOK, "schedule": {"kind": "manual"}}
            )
            assert {each.name for each in client.jobs.each(type="http")} == {"other", "beat"}
            assert client.jobs.list(status=["paused"]).items == []
            run = client.jobs.run(made.id)
            assert client.runs.get(str(run.id)).status == "ready"
            assert client.jobs.runs(made.id).items[0].id == run.id
            reported = client.preview("every 10 minutes", n=2, after=datetime(2027, 1, 1, tzinfo=UTC))
            assert reported.words == "Every 10 minutes"
            assert reported.items[0].planned_for == datetime(2027, 1, 1, 0, 10, tzinfo=UTC)

    await asyncio.to_thread(story)


async def test_each_crosses_the_seams_of_pages(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        for number in range(3):
            await client.jobs.create(
                name=f"job {number}", type="http", config=HOOK, schedule={"kind": "manual"}
            )
        first = await client.jobs.list(limit=2)
        assert len(first.items) == 2
        second = await client.jobs.list(limit=2, cursor=first.next_cursor)
        assert {each.name for each in first.items + second.items} == {"job 0", "job 1", "job 2"}
        assert second.next_cursor is None


async def test_all_that_is_wrong_with_a_job_is_reported_at_once(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        with pytest.raises(Invalid) as refused:
            await client.jobs.create(
                {"name": "", "type": "http", "schedule": {"kind": "manual"}, "tmeout": "10m"}
            )
        reported = refused.value
        assert (reported.status, reported.code) == (422, "invalid")
        assert {each.pointer for each in reported.errors} == {"/name", "/tmeout"}
        assert 'Did you mean "timeout"?' in str(reported)
        assert reported.request_id


async def test_a_filter_that_is_misspelt_is_refused(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        with pytest.raises(Invalid, match="statsu"):
            await client.runs.list(statsu="failed")  # type: ignore[call-arg]
        with pytest.raises(Invalid, match="tga"):
            await client.jobs.list(tga="billing")  # type: ignore[call-arg]


async def test_what_is_not_there_and_who_is_not_known_have_errors_of_their_own(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        for unknown in (uuid4(), "no-id", "a/../b"):
            with pytest.raises(NotFound):
                await client.jobs.get(unknown)
        for nothing in ("", ".."):
            with pytest.raises(Invalid, match="not an id"):
                await client.jobs.get(nothing)
    async with AsyncClient(api_server.url, "wrong") as client:
        with pytest.raises(Unauthorized) as refused:
            await client.jobs.list()
        assert refused.value.hint


async def test_a_system_key_chooses_its_workspace(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key, "nowhere") as client:
        with pytest.raises(NotFound):
            await client.jobs.list()


async def test_no_server_is_reported_with_its_address_and_the_way_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with AsyncClient(url, "key", retries=1) as client:
        with pytest.raises(Unreachable) as refused:
            await client.jobs.list()
    assert url in refused.value.message
    assert "refused" in refused.value.message
    assert "foliot serve" in str(refused.value)
    with Client(url, "key", retries=0) as twin, pytest.raises(Unreachable, match="refused"):
        twin.jobs.list()


def test_the_keywords_of_create_are_the_fields_of_a_job() -> None:
    hints = get_type_hints(JobKeywords, include_extras=True)
    assert hints.keys() == JobIn.model_fields.keys()
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    assert required == {name for name, field in JobIn.model_fields.items() if field.is_required()}


def test_importing_foliot_loads_no_client_and_asking_for_it_does() -> None:
    code = (
        "import sys, foliot; assert 'httpx2' not in sys.modules and 'pydantic' not in sys.modules; "
        "from foliot import Client, AsyncClient; assert Client.__module__ == 'foliot.sdk.synchronous.client'; "
        "assert not {'fastapi', 'psycopg', 'foliot.domain'} & sys.modules.keys()"
    )
    subprocess.run((sys.executable, "-c", code), check=True, cwd=Path(sys.prefix))
