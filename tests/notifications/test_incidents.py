"""Incidents in virtual time: reminders, attention of people, quiet hours, freezes, and ten thousand failures at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import time, timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from foliot.channels.slack import SlackChannel
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Invalid
from foliot.domain.ids import FreezeId, IncidentId, JobId
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.notifications.dispatch import SINGLES
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.notifications.rules import QuietHours, RuleDefinition, RuleScope
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Breaker, NotifyPolicy, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.services.jobs import job_status, jobs
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter
from foliot.services.notifications import channels, incidents, rules
from foliot.services.notifications.dispatch import CLOSED_ARE_KEPT, dispatch, prune
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.secrets import secrets
from foliot.testing.database import pool_url
from tests.notifications.harness import Office
from tests.notifications.http_peer import http_peer
from tests.notifications.mail_server import MailServer

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
BROKE = Failed(RunError("boom", "It broke."))
DOWN = (NoticeEvent.RUN_FAILED, NoticeEvent.RECOVERED)


async def failing(office: Office, name: str = "sync", error: Failed = BROKE, **spec: Any) -> JobId:
    job_id = await office.jobs.job(name, Interval(HOUR), retry=Retry(0), **spec)
    await office.jobs.end(job_id, error)
    await office.notify()
    return job_id


async def add_rule(office: Office, name: str = "rule", **terms: Any) -> None:
    found = (await channels.page(office.database, office.workspace)).items
    definition = RuleDefinition(
        terms.pop("events", DOWN), terms.pop("channels", tuple(each.id for each in found)), **terms
    )
    await rules.create(office.database, office.scope, name, definition)


def incident_id(office: Office) -> IncidentId:
    [(found,)] = office.sql("SELECT id FROM foliot.incidents WHERE closed_at IS NULL")
    return IncidentId(found)


@pytest.mark.requirement("S1-US1.3", "S1-FR-008", "S1-SC-003")
async def test_retries_of_5_15_and_30_minutes_send_one_mail_and_one_slack_message_and_one_recovery(
    office: Office, mail: MailServer
) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(office.egress, office.clock).send
    async with http_peer() as slack:
        await secrets.create(office.database, office.vault, office.scope, "hook", f"{slack.url}/T")
        await office.mail_channel(mail.port)
        await office.channel(ChannelKind.SLACK, {"webhook_url": {"secret": "hook"}})
        await add_rule(office)
        job_id = await office.jobs.job("sync", Interval(6 * HOUR), retry=Retry(3))
        await office.jobs.run_manually(job_id)
        for wait in (0, 5, 15, 30):
            assert (mail.came, slack.came) == ([], [])
            await office.wait(wait * MINUTE)
            assert await office.jobs.run_once(BROKE) == [job_id]
            await office.notify()
        assert (len(mail.came), len(slack.came)) == (1, 1)
        await office.jobs.end(job_id)
        await office.notify()
    assert (len(mail.came), len(slack.came)) == (2, 2)
    assert mail.subjects[1] == "[default] sync recovered"


async def test_reminders_come_after_one_hour_six_hours_and_then_daily(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    seen = []
    for minutes in (59, 2, 5 * 60, 2 * 60, 22 * 60, 3 * 60, 25 * 60):
        await office.wait(minutes * MINUTE)
        seen.append(len(mail.came))
    assert seen == [1, 2, 2, 3, 3, 4, 5]
    assert mail.subjects[1] == "[default] sync is still failing: It broke."
    await incidents.acknowledge(office.database, office.scope, incident_id(office))
    await office.wait(3 * DAY)
    assert len(mail.came) == 5
    await office.jobs.end(job_id)
    await office.notify()
    assert mail.subjects[5:] == ["[default] sync recovered"]


async def test_a_muted_incident_says_nothing_and_a_snoozed_one_waits(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    until = office.clock.now() + 3 * HOUR
    await incidents.snooze(office.database, office.scope, incident_id(office), until)
    await office.wait(2 * HOUR)
    assert len(mail.came) == 1
    await office.wait(2 * HOUR)
    assert len(mail.came) == 2
    await incidents.mute(office.database, office.scope, incident_id(office))
    await office.wait(3 * DAY)
    await office.jobs.end(job_id)
    await office.notify()
    assert len(mail.came) == 2


async def test_listeners_hear_of_incidents(office: Office) -> None:
    started = await events.listen(office.database, office.workspace)
    job_id = await failing(office)
    found = incident_id(office)
    await incidents.acknowledge(office.database, office.scope, found)
    await office.jobs.end(job_id)
    await office.notify()
    heard = await events.after(
        office.database, office.workspace, started.place, EventFilter(kinds=("incident",), job_id=job_id)
    )
    assert [(each.kind, each.object_id) for each in heard.events] == [
        ("incident.opened", found),
        ("incident.acknowledged", found),
        ("incident.closed", found),
    ]


async def test_after_n_and_cooldown_hold_messages_back(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, after_n=3, cooldown=DAY)
    job_id = await failing(office)
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert mail.came == []
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert len(mail.came) == 1
    await office.jobs.end(job_id)
    await office.notify()
    for _ in range(3):  # it opens again within the cooldown
        await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert len(mail.came) == 2
    office.clock.advance(DAY)
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert len(mail.came) == 3


async def test_quiet_hours_hold_a_message_until_their_end_in_the_reader_s_zone(
    office: Office, mail: MailServer
) -> None:
    """It is noon in UTC and 13:00 in Madrid."""
    await office.mail_channel(mail.port)
    await add_rule(office, quiet_hours=QuietHours(time(12, 30), time(14, 0), "Europe/Madrid"))
    await failing(office)
    await office.wait(59 * MINUTE)
    assert mail.came == []
    await office.wait(2 * MINUTE)
    assert len(mail.came) == 1


async def test_the_closest_rule_decides_and_one_without_channels_mutes(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port, "all@example.com", name="all")
    billing = await office.mail_channel(mail.port, "billing@example.com", name="billing")
    await add_rule(office, "billing", scope=RuleScope(tags=("billing",)), channels=(billing,))
    own = await office.jobs.job("muted", Interval(HOUR), retry=Retry(0))
    await add_rule(office, "muted", scope=RuleScope(jobs=(own,)), channels=())
    await office.jobs.end(own, BROKE)
    await office.notify()
    assert mail.came == []
    await failing(office, "invoices", tags=("billing",))
    assert [recipients for recipients, _ in mail.came] == [["billing@example.com"]]
    await failing(office, "other")  # by the default, to every mail channel
    assert sorted(recipients[0] for recipients, _ in mail.came[1:]) == [
        "all@example.com",
        "billing@example.com",
    ]


async def test_a_rule_s_filter_finds_jobs_and_one_that_cannot_be_read_is_refused(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, "quiet", scope=RuleScope(q="name:test -tag:billing"), channels=())
    await failing(office, "a test job")
    assert mail.subjects == []
    await failing(office, "another test job", tags=("billing",))
    await failing(office, "sync")
    assert mail.subjects == [
        "[default] another test job failed: It broke.",
        "[default] sync failed: It broke.",
    ]
    for text in ("colour:red", "owner:me"):
        with pytest.raises(Invalid) as refused:
            await add_rule(office, "bad", scope=RuleScope(q=text))
        assert refused.value.pointer == "/scope/q"


@pytest.mark.requirement("S1-E1")
async def test_a_job_s_own_preference_overrides_the_rules(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, "muted", channels=())

    async def fail(name: str, notify: NotifyPolicy | None) -> None:
        spec = Spec(Interval(HOUR), "python", retry=Retry(0))
        made = await jobs.create(office.database, office.scope, Definition(name, spec, notify=notify))
        await office.jobs.end(made.id, BROKE)
        await office.notify()

    await fail("inherits", None)
    await fail("mailed", NotifyPolicy())
    await fail("addressed", NotifyPolicy(recipients=("ana@example.com", "+34600000000")))
    await fail("silent", NotifyPolicy(email=False, slack=True))
    assert mail.subjects == ["[default] mailed failed: It broke.", "[default] addressed failed: It broke."]
    assert [recipients for recipients, _ in mail.came] == [["ops@example.com"], ["ana@example.com"]]


async def test_a_freeze_mutes_its_jobs(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    frozen = await freezes.turn_on(
        office.database, office.scope, NewFreeze(reason="deployment", everything=True)
    )
    job_id = await failing(office)
    assert mail.came == []
    office.clock.advance(MINUTE)
    await freezes.lift(office.database, office.scope, FreezeId(frozen))
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert len(mail.came) == 1


async def test_nobody_is_reminded_of_a_job_that_a_person_paused_until_it_is_resumed(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    await job_status.pause(office.database, office.scope, job_id, reason="the vendor is down")
    await office.wait(3 * DAY)
    assert mail.subjects[1:] == ["[default] sync was paused"]
    await job_status.resume(office.database, office.scope, job_id)
    await office.wait(HOUR + MINUTE)
    # The two deliveries are sent side by side, in either order.
    assert sorted(mail.subjects[2:]) == [
        "[default] sync is still failing: It broke.",
        "[default] sync was resumed",
    ]


async def test_what_happens_to_a_failing_job_belongs_to_the_thread_of_its_incident(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office, breaker=Breaker(after=2))
    other = await office.jobs.job("other", Interval(HOUR))
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    await job_status.resume(office.database, office.scope, job_id)
    await job_status.pause(office.database, office.scope, other)
    await office.notify()
    threads = {message["Subject"]: message["References"] for _, message in mail.came}
    [(incident_id,)] = office.sql("SELECT id FROM foliot.incidents")
    root = f"<incident.{incident_id}@foliot.invalid>"
    assert threads == {
        "[default] sync failed: It broke.": root,
        "[default] sync was stopped by Foliot": root,
        "[default] sync was resumed": root,
        "[default] other was paused": None,
    }


async def test_a_long_subject_keeps_its_spaces(office: Office, mail: MailServer) -> None:
    """The cut before the last word falls where a header of 78 columns would be broken."""
    await office.mail_channel(mail.port)
    error = Failed(RunError("http_failed", "No answer from the target: Connection refused."))
    await failing(office, 'sync "CRM" <b>&amp; co</b>', error)
    assert mail.subjects == ['[default] sync "CRM" <b>&amp; co</b> failed: No answer from the targe…']


async def test_a_job_that_its_breaker_stopped_is_still_reminded_of(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await failing(office, breaker=Breaker(after=1))
    await office.wait(HOUR + MINUTE)
    assert mail.subjects[1:] == ["[default] sync is still failing: It broke."]


@pytest.mark.requirement("S4-21")
async def test_a_breaker_that_stops_a_job_is_reported_in_the_message_about_the_failure(
    office: Office, mail: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    await office.mail_channel(mail.port)
    await failing(office, breaker=Breaker(after=1))
    [(_, message)] = mail.came
    body = message.get_body(("plain",))
    assert body is not None
    assert "Paused after 1 failure." in body.get_content()
    assert office.sql("SELECT action FROM foliot.audit WHERE actor = 'engine'") == [("job.auto_paused",)]
    assert [each.levelname for each in caplog.records if each.message == "job.stopped"] == ["WARNING"]


@pytest.mark.requirement("X-9")
async def test_rules_that_cannot_be_read_delay_messages_and_change_no_run(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office)
    [(rule,)] = office.sql("SELECT definition FROM foliot.notification_rules")
    office.sql("UPDATE foliot.notification_rules SET definition = '{\"events\": 7}' RETURNING 1")
    job_id = await failing(office)
    assert [status for status, *_ in office.jobs.runs(job_id)] == ["failed"]
    assert mail.came == []
    office.sql("UPDATE foliot.notification_rules SET definition = %s RETURNING 1", Jsonb(rule))
    await office.notify()
    assert mail.subjects == ["[default] sync failed: It broke."]


async def test_the_same_error_of_several_jobs_is_one_message(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    job_ids = [await office.jobs.job(f"job-{n}", Interval(HOUR), retry=Retry(0)) for n in range(3)]
    for number, job_id in enumerate(job_ids):
        await office.jobs.end(job_id, Failed(RunError("boom", f"db-{number} refused after {number} ms")))
    await office.notify()
    [(_, message)] = mail.came
    assert message["Subject"] == "[default] 3 jobs failed: db-0 refused after 0 ms"
    body = message.get_body(("plain",))
    assert body is not None
    assert "Same error: 3 runs, 3 jobs." in body.get_content()
    for job_id in job_ids:
        await office.jobs.end(job_id)
    await office.notify()
    assert mail.subjects[1:] == ["[default] 3 jobs recovered"]


async def test_ten_thousand_failures_at_once_are_a_bounded_number_of_messages(
    office: Office, mail: MailServer
) -> None:
    """Each with an error of its own, so that grouping alone does not help."""
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("template", Interval(HOUR), retry=Retry(0))
    office.sql(
        "INSERT INTO foliot.jobs SELECT workspace_id, gen_random_uuid(), 'job-' || n, type, queue, tags, owner_id, definition, status,"
        " status_reason, status_by, status_at, paused_until, revision, schedule_rev, created_by, created_at, updated_at, purged_at"
        " FROM foliot.jobs, generate_series(1, 9999) AS n WHERE id = %s RETURNING 1",
        job_id,
    )
    office.sql(
        "INSERT INTO foliot.notices (workspace_id, event, at, job_id, facts) SELECT workspace_id, 'run_failed', %s, id,"
        " jsonb_build_object('error', jsonb_build_object('code', translate(id::text, '0123456789-', 'ghijklmnopq'), 'message', 'x')) FROM foliot.jobs RETURNING 1",
        office.clock.now(),
    )
    await office.notify()
    assert len(mail.came) == SINGLES
    await office.wait(2 * MINUTE)
    assert len(mail.came) == SINGLES + 1
    assert mail.subjects[-1] == "[default] 9,990 further jobs failed"
    assert office.sql("SELECT count(*) FROM foliot.incidents") == [(10_000,)]
    assert office.sql("SELECT count(*) FROM foliot.digest_entries") == [(0,)]
    await office.wait(10 * MINUTE)
    assert len(mail.came) == SINGLES + 1


async def test_a_courier_killed_between_send_and_record_delivers_again_under_the_same_id(
    office: Office, mail: MailServer, owner_url: str
) -> None:
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, BROKE)
    await dispatch(office.database, office.policy)
    at = office.clock.now().isoformat()
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.notifications.killed_courier", pool_url(owner_url), at],
        check=False,
        capture_output=True,
        timeout=60,
        env={**os.environ},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert len(mail.came) == 1
    await office.notify()
    assert len(mail.came) == 1  # its lease has not ended
    await office.wait(MINUTE)
    assert len(mail.came) == 2
    assert mail.came[0][1]["Message-ID"] == mail.came[1][1]["Message-ID"]
    assert office.sql("SELECT delivered, attempts FROM foliot.outbox") == [(True, 2)]


async def test_incidents_that_were_closed_long_ago_are_deleted_by_the_engine(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    await failing(office, "other")
    await office.jobs.end(job_id)
    await office.notify()
    office.clock.advance(CLOSED_ARE_KEPT + DAY)
    assert await prune(office.database) == 1
    assert office.sql("SELECT closed_at FROM foliot.incidents") == [(None,)]
