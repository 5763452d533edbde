"""/events by server-sent events: what is sent, to whom, from where on, and how a stream ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.run import RunError
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.testing.clock import ManualClock
from foliot.web import sse
from foliot.web.event_reader import EventReader
from foliot.web.work_signal import WorkSignal
from tests.polling import wait_until
from tests.web.conftest import ApiHarness, job, problems
from tests.web.event_streams import StreamServer, serve_streams

pytestmark = pytest.mark.anyio
WORKER = WorkerId(uuid4())


@pytest.fixture
async def edge(api: ApiHarness) -> AsyncIterator[StreamServer]:
    async with serve_streams(api) as opened:
        yield opened


async def worked(api: ApiHarness, outcome: Any = None) -> None:
    claimed = await claim(api.database, await api.register_worker(WORKER), "default", ["http"], 10, Turns())
    reports = [
        Report(each.run_id, each.job_id, each.fence, WORKER, outcome or Succeeded()) for each in claimed
    ]
    await report(api.database, reports)


async def test_what_people_and_the_engine_do_is_reported_in_order(
    edge: StreamServer, clock: ManualClock
) -> None:
    api = edge.api
    async with edge.stream("/events") as reader:
        first = await reader.frame()
        assert first is not None
        assert (first.event, first.id is None) == (None, False)
        made = await api.create_job(retry={"max": 0})
        await api.request("POST", f"/jobs/{made['id']}/pause", role="operator")
        await api.request("POST", f"/jobs/{made['id']}/resume", role="operator")
        clock.advance(timedelta(minutes=10))
        await tick(api.database)
        await worked(api, Failed(RunError("boom", "It broke.")))
        frozen = await api.request("POST", "/freezes", role="operator", json={"reason": "a deploy"})
        clock.advance(timedelta(minutes=10))
        await tick(api.database)
        got = await reader.events(7)
    assert [each.event for each in got] == [
        "job.created",
        "job.paused",
        "job.resumed",
        "run.started",
        "run.failed",
        "freeze.turned_on",
        "run.skipped",
    ]
    assert [each.data["job_id"] for each in got] == [made["id"]] * 5 + [None, made["id"]]
    failed, freeze, skipped = got[4].data, got[5].data, got[6].data
    assert (failed["number"], failed["attempt"], failed["error_code"]) == (1, 1, "boom")
    assert failed["job_name"] == "beat"
    assert freeze["object_id"] == frozen.json()["id"]
    assert skipped["skip_reason"] == "frozen"
    assert all(each.id == each.data["id"] and each.event == each.data["kind"] for each in got)


async def test_who_comes_back_with_its_last_id_gets_what_it_missed_and_nothing_twice(
    edge: StreamServer,
) -> None:
    api = edge.api
    async with edge.stream("/events") as reader:
        await reader.frame()
        await api.create_job(name="one")
        seen = await reader.event()
    assert seen is not None
    for name in ("two", "three"):
        await api.create_job(name=name)
    async with edge.stream("/events", Last_Event_ID=seen.id or "") as reader:
        got = await reader.events(2)
        await api.create_job(name="four")
        got += await reader.events(1)
    assert [each.data["job_name"] for each in got] == ["two", "three", "four"]


async def test_who_stayed_away_too_long_learns_that_there_is_a_gap(
    edge: StreamServer, clock: ManualClock
) -> None:
    api = edge.api
    async with edge.stream("/events") as reader:
        begun = await reader.frame()
    assert begun is not None
    clock.advance(timedelta(hours=2))
    await api.create_job(name="unheard")
    async with edge.stream("/events", Last_Event_ID=begun.id or "") as reader:
        reset = await reader.event()
        assert reset is not None
        assert reset.event == "reset"
        await api.create_job(name="heard")
        found = await reader.event()
        assert found is not None
        assert found.data["job_name"] == "heard"


async def test_filters_choose_kinds_nouns_and_one_job(edge: StreamServer) -> None:
    api = edge.api
    one, other = await api.create_job(name="one"), await api.create_job(name="other")
    async with (
        edge.stream("/events?types=job.paused,freeze") as kinds,
        edge.stream(f"/events?job={other['id']}") as of_job,
    ):
        await kinds.frame()
        await of_job.frame()
        for each in (one, other):
            await api.request("POST", f"/jobs/{each['id']}/run", role="operator")
            await api.request("POST", f"/jobs/{each['id']}/pause", role="operator")
        await api.request("POST", "/freezes", role="operator", json={"reason": "x"})
        found = [(each.event, each.data["job_name"]) for each in await kinds.events(3)]
        assert found == [("job.paused", "one"), ("job.paused", "other"), ("freeze.turned_on", None)]
        assert [each.event for each in await of_job.events(2)] == ["run.requested", "job.paused"]


async def test_an_agent_hears_of_its_own_jobs_and_a_workspace_of_its_own_alone(edge: StreamServer) -> None:
    api = edge.api
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    async with (
        edge.stream("/events", role="agent") as agent,
        edge.stream("/events", who="globex") as globex,
    ):
        await agent.frame()
        await globex.frame()
        await api.create_job(name="canary of acme")
        await api.request("POST", "/freezes", role="operator", json={"reason": "x"})
        await api.request("POST", "/jobs", role="agent", json=job(name="own"))
        await api.create_job("globex", name="theirs")
        for reader, name in ((agent, "own"), (globex, "theirs")):
            found = await reader.event()
            assert found is not None
            assert found.data["job_name"] == name


async def test_for_a_workspace_that_nobody_listens_to_nothing_is_written(
    edge: StreamServer, owner: Any
) -> None:
    api = edge.api
    await api.create_job("globex")
    assert owner.execute("SELECT count(*) FROM foliot.events").fetchone() == (0,)


async def test_a_stream_ends_soon_after_its_key_was_revoked(
    edge: StreamServer, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "CHECK_EVERY", 0.1)
    key = await edge.api.create_key("acme", MemberRole.VIEWER, name="short")
    async with edge.stream("/events", key=key) as reader:
        await reader.frame()
        owner.execute("UPDATE foliot.api_keys SET revoked_at = now() WHERE name = 'short'")
        assert await reader.event() is None


async def test_a_stream_ends_when_the_server_stops(edge: StreamServer) -> None:
    async with edge.stream("/events") as reader:
        await reader.frame()
        edge.app.state.stopping.set()
        assert await reader.event() is None


async def test_silence_is_filled_and_moves_the_reader_on(
    edge: StreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.0)
    async with edge.stream("/events?types=run.failed") as reader:
        first = await reader.frame()
        await edge.api.create_job(name="not asked for")
        second = await reader.frame()
        while second is not None and second.id == (first and first.id):
            second = await reader.frame()
    assert second is not None
    assert second.event is None


async def test_a_reader_that_left_no_longer_counts_as_one(edge: StreamServer) -> None:
    async with edge.stream("/events") as reader:
        await reader.frame()
        assert edge.app.state.streams.total() == 1
    await wait_until(lambda: edge.app.state.streams.total() == 0)


async def test_more_streams_than_a_server_can_bear_are_refused(
    edge: StreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MOST_OF_A_WORKSPACE", 1)
    async with edge.stream("/events") as reader:
        await reader.frame()
        refused = await edge.api.request("GET", "/events", role="viewer")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


async def test_streams_asked_for_at_once_do_not_pass_the_limit_together(
    edge: StreamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for the database before it begins: all of them see that none is open yet."""
    monkeypatch.setattr(sse, "MOST_OF_A_WORKSPACE", 2)
    async with AsyncExitStack() as stack:

        async def status() -> int:
            key = {"Authorization": f"Bearer {edge.api.keys['acme', 'viewer']}"}
            asked = edge.http.stream("GET", "/api/v1/events", headers=key)
            return (await stack.enter_async_context(asked)).status_code

        statuses = await asyncio.gather(*(status() for _ in range(6)))
    assert sorted(statuses) == [200, 200, 503, 503, 503, 503]


async def test_what_cannot_be_listened_to_is_refused_with_its_reason(shared_api: ApiHarness) -> None:
    for query, pointer in (("types=run.exploded", "/types"), ("job=7", "/job")):
        answer = await shared_api.request("GET", f"/events?{query}", role="viewer")
        assert (answer.status_code, list(problems(answer))) == (422, [pointer])
    answer = await shared_api.request("GET", "/events", headers={"Last-Event-ID": "yesterday"})
    assert (answer.status_code, list(problems(answer))) == (422, ["/Last-Event-ID"])


async def test_two_servers_tell_the_same_story(api: ApiHarness, clock: ManualClock) -> None:
    async with serve_streams(api) as left, serve_streams(api) as right:
        async with left.stream("/events") as reader:
            begun = await reader.frame()
        assert begun is not None
        names = [f"job {place}" for place in range(30)]
        await asyncio.gather(*(api.create_job(name=name) for name in names))
        stories = []
        for edge in (left, right):
            async with edge.stream("/events", Last_Event_ID=begun.id or "") as reader:
                stories.append([each.data["job_name"] for each in await reader.events(len(names))])
    assert stories[0] == stories[1]
    assert sorted(stories[0]) == sorted(names)


async def test_streams_share_a_query_and_a_hint_ends_the_sharing(api: ApiHarness) -> None:
    changes, wanted = WorkSignal(), EventFilter()
    reader, workspace_id = EventReader(api.database, changes), api.ids["acme"]
    place = (await events.listen(api.database, workspace_id)).place
    first, second = await asyncio.gather(
        reader.after(workspace_id, place, wanted), reader.after(workspace_id, place, wanted)
    )
    assert second is first
    await api.create_job(name="one")
    await api.create_job(name="two")
    changes.ring()
    both = await reader.after(workspace_id, first.place, wanted)
    assert [each.job_name for each in both.events] == ["one", "two"]
    # This one has read the first of them already, and shares the answer.
    newer = await reader.after(workspace_id, both.events[0].place, wanted)
    assert (newer.events, newer.place) == (list(both.events[1:]), both.place)
    # This one is behind the shared answer, and another filter is another question.
    assert len((await reader.after(workspace_id, place, wanted)).events) == 2
    assert (await reader.after(workspace_id, place, EventFilter(("run",)))).events == []
    elsewhere = await reader.after(api.ids["globex"], place, wanted)
    assert elsewhere.events == []
