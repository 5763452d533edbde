"""Events beside failures: late, slow and stuck runs, ends that are near, new zone data, edits, jobs that cannot be planned, addresses that are refused."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import JobId
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.notifications.rules import RuleDefinition
from foliot.domain.policy import Retry
from foliot.domain.schedule import Cron, Interval
from foliot.services.jobs import job_edits, job_status
from foliot.services.notifications import channels, rules
from foliot.services.notifications.watch import watch_expiries, watch_runs
from foliot.services.scheduling.repair import refresh_zone_data
from foliot.services.scheduling.tick import tick
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer
from tests.services.workspace_harness import BROKE_FOR_GOOD

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


async def hear_of(office: Office, mail: MailServer, *events: NoticeEvent) -> None:
    """Send every one of these events by mail."""
    channel_id = await office.mail_channel(mail.port)
    definition = RuleDefinition((*events, NoticeEvent.RECOVERED), (channel_id,))
    await rules.create(office.database, office.scope, "all", definition)


async def look(office: Office) -> None:
    await watch_runs(office.database)
    await office.notify()


async def ready_job(office: Office, name: str) -> JobId:
    job_id = await office.jobs.job(name, Interval(HOUR), retry=Retry(0))
    await office.jobs.run_manually(job_id)
    return job_id


async def test_a_run_that_workers_do_not_take_is_late_once_until_it_starts(
    office: Office, mail: MailServer
) -> None:
    await hear_of(office, mail, NoticeEvent.LATE)
    await ready_job(office, "letters")
    office.sql("UPDATE foliot.workers SET queues = '{default}', types = '{python}' RETURNING 1")
    office.clock.advance(4 * MINUTE)
    await look(office)
    assert mail.subjects == []
    office.clock.advance(2 * MINUTE)
    await look(office)
    await look(office)
    assert mail.subjects == ["[default] letters has not started"]
    body = mail.came[0][1].get_body(("plain",))
    assert body is not None
    assert "ready for 6 minutes" in body.get_content()
    await office.jobs.claim()
    await look(office)
    assert mail.subjects[1:] == ["[default] letters recovered"]


async def test_a_run_is_slow_against_the_history_of_its_own_job(office: Office, mail: MailServer) -> None:
    await hear_of(office, mail, NoticeEvent.SLOW)
    quick, long = await ready_job(office, "quick"), await ready_job(office, "long")
    for job_id, seconds in ((quick, 60.0), (long, 3_600.0)):
        office.sql(
            "INSERT INTO foliot.job_days (workspace_id, job_id, day, runs, successes, failures, skips, seconds, lag_seconds)"
            " VALUES (%s, %s, %s, 10, 10, 0, 0, %s, 0) RETURNING 1",
            office.workspace,
            job_id,
            (office.clock.now() - DAY).date(),
            10 * seconds,
        )
    claimed = await office.jobs.claim()
    office.clock.advance(4 * MINUTE)
    await look(office)
    await look(office)
    assert mail.subjects == ["[default] quick takes longer than usual"]
    body = mail.came[0][1].get_body(("plain",))
    assert body is not None
    assert "under way for 4 minutes; on average it takes 1 minute" in body.get_content()
    for each in claimed:
        await office.jobs.report(each)
    await look(office)
    assert mail.subjects[1:] == ["[default] quick recovered"]


async def test_a_run_that_waits_for_hours_or_stops_reporting_is_stuck(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)  # stuck runs send a notice without a rule
    job_id = await ready_job(office, "import")
    [claimed] = await office.jobs.claim()
    office.sql(
        "UPDATE foliot.leases SET progress = jsonb_build_object('done', 1, 'total', 2, 'note', '', 'at', %s::text) RETURNING 1",
        office.clock.now().isoformat(),
    )
    office.clock.advance(29 * MINUTE)
    await look(office)
    assert mail.subjects == []
    office.clock.advance(2 * MINUTE)
    await look(office)
    assert mail.subjects == ["[default] import is stuck"]
    assert await office.jobs.report(claimed)
    await look(office)
    assert mail.subjects[1:] == ["[default] import recovered"]
    assert office.sql("SELECT job_id FROM foliot.incidents") == [(job_id,)]


async def test_ends_of_jobs_and_keys_are_reported_a_week_before_and_once(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    now = office.clock.now()
    await office.jobs.job("ending", Interval(HOUR), end_at=now + 10 * DAY)
    await office.jobs.job("endless", Interval(HOUR))
    principal = uuid4()
    office.sql(
        "INSERT INTO foliot.principals (workspace_id, id, kind, name, role, created_at) VALUES (%s, %s, 'user', 'Ada', 'editor', %s) RETURNING 1",
        office.workspace,
        principal,
        now,
    )
    for name, days in (("laptop", 9), ("session", 1)):
        office.sql(
            "INSERT INTO foliot.api_keys (workspace_id, id, principal_id, name, prefix, key_hash, expires_at, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING 1",
            office.workspace, uuid4(), principal, name, f"{name:0<8}"[:8], uuid4().bytes * 2, now + days * DAY, now,
        )  # fmt: skip
    assert await watch_expiries(office.database) == 0
    office.clock.advance(4 * DAY)
    assert await watch_expiries(office.database) == 2
    assert await watch_expiries(office.database) == 0
    await office.notify()
    assert sorted(mail.subjects) == ["[default] ending ends soon", "[default] key laptop ends soon"]
    office.clock.advance(7 * DAY)
    assert await watch_expiries(office.database) == 0
    assert office.sql("SELECT count(*) FROM foliot.expiry_notices") == [(0,)]


async def test_owners_hear_of_new_zone_data_that_moves_their_jobs(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("report", Cron("0 9 * * *", "America/New_York"))
    office.sql("UPDATE foliot.installation SET tzdata_version = '2020a' RETURNING 1")
    office.sql(
        "UPDATE foliot.timers SET due_at = due_at + interval '1 hour', next_at = next_at + interval '1 hour' RETURNING 1"
    )
    assert await refresh_zone_data(office.database) == 1
    await office.notify()
    assert mail.subjects == ["[default] report runs at another instant"]
    assert await refresh_zone_data(office.database) is None
    assert office.sql("SELECT job_id FROM foliot.delivery_contents") == [(job_id,)]


async def test_an_edit_is_reported_where_a_rule_names_it(office: Office, mail: MailServer) -> None:
    await hear_of(office, mail, NoticeEvent.JOB_CHANGED)
    job_id = await office.jobs.job("report", Interval(HOUR))
    changed = Definition("report", Spec(Interval(2 * HOUR), "python"))
    await job_edits.edit(office.database, office.scope, job_id, changed, note="too often")
    await office.notify()
    assert mail.subjects == ["[default] report was changed"]
    body = mail.came[0][1].get_body(("plain",))
    assert body is not None
    assert "Revision 2: too often." in body.get_content()


@pytest.mark.requirement("S1-US4.2")
async def test_pause_and_resume_are_confirmed(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("report", Interval(HOUR))
    await job_status.pause(office.database, office.scope, job_id, reason="upgrade")
    await office.notify()
    await job_status.resume(office.database, office.scope, job_id)
    await office.notify()
    assert mail.subjects == ["[default] report was paused", "[default] report was resumed"]


async def test_a_job_that_cannot_be_planned_is_reported_audited_and_recovers(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("broken", Interval(HOUR), retry=Retry(0))
    [(spec,)] = office.sql("SELECT spec FROM foliot.timers")
    office.sql("UPDATE foliot.timers SET spec = %s RETURNING 1", '{"schedule": 7}')
    office.clock.advance(HOUR)
    await tick(office.database)
    await office.notify()
    assert mail.subjects == ["[default] broken did not run"]
    body = mail.came[0][1].get_body(("plain",))
    assert body is not None
    assert "Its planned time could not be computed" in body.get_content()
    assert office.sql("SELECT object_id FROM foliot.audit WHERE action = 'job.not_planned'") == [
        (str(job_id),)
    ]
    office.sql("UPDATE foliot.timers SET spec = %s RETURNING 1", spec)
    office.clock.advance(HOUR)
    await tick(office.database)
    await office.jobs.run_once()
    await office.notify()
    assert mail.subjects[1:] == ["[default] broken recovered"]


async def test_a_refused_address_is_reported_to_the_others(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port, "ops@example.com", "gone@example.com")
    mail.refuses["gone@example.com"] = "550 no such user"
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, BROKE_FOR_GOOD)
    await office.notify()
    await office.notify()
    assert mail.subjects[1:] == ["[default] address gone@example.com of channel mail was disabled"]
    [found] = (await channels.page(office.database, office.workspace)).items
    assert [each.address for each in found.refused] == ["gone@example.com"]
