"""Bounds of one step: what lies beyond them comes in the next one, and nobody hides behind another's many."""

from __future__ import annotations

from uuid import UUID

import pytest

from foliot.domain.ids import WorkspaceId
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.policy import Retry
from foliot.domain.schedule import Interval
from foliot.services.notifications import event_feed, watch
from foliot.services.notifications.event_feed import feed
from foliot.services.notifications.watch import watch_runs
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer
from tests.notifications.test_events import hear_of, ready_job
from tests.notifications.test_incidents import HOUR, MINUTE
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
LAST = WorkspaceId(UUID(int=2**128 - 1))


def second_workspace(office: Office) -> WorkspaceHarness:
    office.sql(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'last', 'Last', %s) RETURNING 1",
        LAST,
        office.clock.now(),
    )
    return WorkspaceHarness(office.database, office.clock, LAST, office.owner)


async def test_a_workspace_with_many_overdue_jobs_does_not_hide_another(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BATCH", 3)
    for number in range(4):
        await office.jobs.job(f"sync {number}", Interval(HOUR), retry=Retry(0))
    office.clock.advance(MINUTE)
    await second_workspace(office).job("theirs", Interval(HOUR), retry=Retry(0))
    office.clock.advance(2 * HOUR)
    await watch.watch(office.database)
    found = office.sql("SELECT DISTINCT workspace_id FROM foliot.notices WHERE event = 'missed'")
    assert {each for (each,) in found} == {office.workspace, LAST}


async def test_every_workspace_with_a_feed_is_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "WORKSPACES", 1)
    second_workspace(office)
    office.sql("INSERT INTO foliot.event_feeds (workspace_id) SELECT id FROM foliot.workspaces RETURNING 1")
    await feed(office.database)
    assert office.sql("SELECT count(*) FROM foliot.event_feeds WHERE xid IS NULL") == [(0,)]


async def test_a_late_run_beyond_the_bound_of_a_step_is_not_over(
    office: Office, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hear_of(office, mail, NoticeEvent.LATE)
    for name in ("one", "two"):
        await ready_job(office, name)
    office.sql("UPDATE foliot.workers SET queues = '{default}', types = '{python}' RETURNING 1")
    office.clock.advance(6 * MINUTE)
    assert await watch_runs(office.database) == 2
    await office.notify()
    monkeypatch.setattr(watch, "BATCH", 1)
    assert await watch_runs(office.database) == 0
