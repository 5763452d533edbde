"""The watcher finds silence: no scheduler fires in these tests unless one says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.ids import IncidentId
from foliot.domain.policy import Retry
from foliot.domain.schedule import Interval
from foliot.engine.watcher import Watcher
from foliot.services.notifications import incidents
from foliot.services.notifications.watch import watch
from foliot.services.scheduling.tick import tick
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer
from tests.services.builders import insert_worker

pytestmark = pytest.mark.anyio
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


async def test_a_scheduler_that_is_stopped_for_an_hour_is_reported_while_it_is_still_stopped(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("hourly", Interval(10 * MINUTE), retry=Retry(0))
    office.clock.advance(14 * MINUTE)
    assert (await watch(office.database)).notices == 0
    for _ in range(4):
        office.clock.advance(15 * MINUTE)
        await watch(office.database)
        await office.notify()
    assert mail.subjects[0] == "[default] hourly did not run"
    assert [each for each in mail.subjects if "did not run" in each] == mail.subjects[:1]
    body = mail.came[0][1].get_body(("plain",))
    assert body is not None
    assert "The run planned for Fri 15 Jan 12:10 UTC was not started within 19 minutes." in body.get_content()
    while (await tick(office.database)).recorded:
        pass
    assert job_id in await office.jobs.run_once()
    assert (await watch(office.database)).overdue == 0
    await office.notify()
    assert mail.subjects[-1] == "[default] hourly recovered"
    assert office.sql("SELECT missed FROM foliot.incidents") == [(6,)]
    recovery = mail.came[-1][1].get_body(("plain",))
    assert recovery is not None
    assert "6 planned times did not run in between" in recovery.get_content()


async def test_a_queue_without_a_worker_is_one_incident_until_one_returns(
    office: Office, mail: MailServer, clock: ManualClock
) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("letters", Interval(HOUR), queue="mail")
    await office.jobs.run_manually(job_id)
    office.sql("UPDATE foliot.ready SET queue = 'mail' RETURNING 1")
    office.clock.advance(6 * MINUTE)
    for _ in range(2):
        await watch(office.database)
        await office.notify()
    assert mail.subjects == ["[default] no worker serves queue mail/python"]
    [(incident_id,)] = office.sql("SELECT id FROM foliot.incidents")
    await incidents.acknowledge(office.database, office.scope, IncidentId(incident_id))
    insert_worker(office.owner, clock, "w", ["mail"], ["python"])
    await watch(office.database)
    await office.notify()
    assert mail.subjects[1:] == ["[default] mail/python recovered"]


async def test_the_dead_man_s_switch_is_pressed_only_while_due_jobs_are_fired(
    office: Office, database: Database
) -> None:
    pings: list[int] = []

    async def ping() -> None:
        pings.append(1)

    await office.jobs.job("hourly", Interval(10 * MINUTE))
    await Watcher(database, ping).step()
    assert len(pings) == 1
    office.clock.advance(HOUR)
    await Watcher(database, ping).step()
    assert len(pings) == 1
