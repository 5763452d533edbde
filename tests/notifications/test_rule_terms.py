"""Terms of rules that hold messages back: none of them may lose one for good."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from foliot.domain.ids import FreezeId
from foliot.domain.notifications.channel import ChannelDefinition
from foliot.domain.notifications.dispatch import SINGLES
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.notifications.rules import QuietHours, RuleScope
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.services.jobs import job_status
from foliot.services.notifications import channels, incidents
from foliot.services.notifications.watch import watch
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer
from tests.notifications.test_incidents import BROKE, DAY, HOUR, MINUTE, add_rule, failing, incident_id

pytestmark = pytest.mark.anyio
FAILED, RECOVERED = "[default] sync failed: It broke.", "[default] sync recovered"


async def test_after_n_counts_failures_and_holds_nothing_else_back(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, events=(NoticeEvent.MISSED, NoticeEvent.RUN_FAILED), after_n=3)
    await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    office.clock.advance(2 * HOUR)
    await watch(office.database)
    await office.notify()
    assert mail.subjects == ["[default] sync did not run"]


async def test_a_failure_within_the_cooldown_is_told_when_the_cooldown_ends(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, cooldown=2 * HOUR)
    job_id = await failing(office)
    await office.jobs.end(job_id)
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    await office.wait(2 * HOUR - MINUTE)
    assert mail.subjects == [FAILED, RECOVERED]
    await office.wait(MINUTE)
    assert mail.subjects == [FAILED, RECOVERED, FAILED]
    await office.wait(HOUR)
    assert mail.subjects[3:] == ["[default] sync is still failing: It broke."]


async def test_a_job_that_recovers_and_fails_again_within_one_batch_opens_another_incident(
    office: Office, mail: MailServer
) -> None:
    """The next incident is inserted by the transaction that closes the first."""
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    await office.jobs.end(job_id)
    await office.jobs.end(job_id, BROKE)
    await office.notify()
    assert sorted(mail.subjects) == [FAILED, FAILED, RECOVERED]


async def test_the_cooldown_counts_within_one_batch(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, cooldown=DAY)
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    for outcome in (BROKE, None, BROKE, None, BROKE):
        await office.jobs.end(job_id, outcome)
    await office.notify()
    assert mail.subjects == [FAILED, RECOVERED]


async def test_a_failure_during_a_freeze_is_told_after_it_without_another_failure(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    frozen = await freezes.turn_on(
        office.database, office.scope, NewFreeze(reason="release", everything=True)
    )
    await failing(office)
    for _ in range(4):
        await office.wait(HOUR)
    assert mail.came == []
    await freezes.lift(office.database, office.scope, FreezeId(frozen))
    await office.wait(HOUR)
    assert mail.subjects == [FAILED]


async def test_a_rule_about_exhausted_retries_gets_reminders(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, "mute", channels=(), events=(NoticeEvent.RUN_FAILED,))
    await add_rule(office, events=(NoticeEvent.RETRIES_EXHAUSTED,))
    job_id = await office.jobs.job("sync", Interval(DAY), retry=Retry(1))
    await office.jobs.end(job_id, BROKE)
    office.clock.advance(5 * MINUTE)
    await office.jobs.run_once(BROKE)
    await office.notify()
    assert mail.subjects == [FAILED]
    await office.wait(HOUR)
    assert mail.subjects[1:] == ["[default] sync is still failing: It broke."]


async def test_a_reminder_in_quiet_hours_waits_for_their_end(office: Office, mail: MailServer) -> None:
    """It is noon. Quiet hours begin before the first reminder: every later one would lie in them too."""
    await office.mail_channel(mail.port)
    await add_rule(office, quiet_hours=QuietHours(time(12, 30), time(20, 0)))
    await failing(office)
    for _ in range(7):
        await office.wait(HOUR)
    assert mail.subjects == [FAILED]
    await office.wait(HOUR)
    assert mail.subjects[1:] == ["[default] sync is still failing: It broke."]


async def test_a_job_with_quiet_hours_does_not_delay_another_with_the_same_error(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(
        office, "night", scope=RuleScope(tags=("slow",)), quiet_hours=QuietHours(time(11), time(14))
    )
    held = await office.jobs.job("held", Interval(HOUR), retry=Retry(0), tags=("slow",))
    urgent = await office.jobs.job("urgent", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(held, BROKE)
    await office.jobs.end(urgent, BROKE)
    await office.notify()
    assert mail.subjects == ["[default] urgent failed: It broke."]


async def test_quiet_hours_are_those_of_the_channel_s_people(office: Office, mail: MailServer) -> None:
    """It is noon in UTC: quiet in Tokyo, where the people of the channel are, and not in Madrid, which the rule names."""
    channel_id = await office.mail_channel(mail.port)
    found = await channels.get(office.database, office.workspace, channel_id)
    old = found.definition
    moved = ChannelDefinition(old.name, old.kind, old.config, old.receiver, timezone="Asia/Tokyo")
    await channels.replace(office.database, office.scope, channel_id, moved)
    await add_rule(office, quiet_hours=QuietHours(time(20), time(22), "Europe/Madrid"))
    await failing(office)
    assert mail.came == []
    await office.wait(HOUR)
    assert mail.subjects == [FAILED]


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-10-25T00:10Z", "2026-10-25T00:30Z"),  # 02:10, the first time
        ("2026-10-25T01:10Z", "2026-10-25T01:30Z"),  # 02:10, the second time
        ("2026-03-29T00:30Z", "2026-03-29T01:30Z"),  # 01:30; 02:30 does not exist on that day
    ],
)
def test_quiet_hours_end_in_the_future_on_days_when_clocks_change(now: str, end: str) -> None:
    quiet = QuietHours(time(22), time(2, 30), "Europe/Madrid")
    found = quiet.end_after(datetime.fromisoformat(now))
    assert found is not None
    assert found.astimezone(UTC) == datetime.fromisoformat(end)


async def test_a_digest_goes_to_the_recipients_of_the_rule_after_its_quiet_hours(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, recipients=("team@example.com",), quiet_hours=QuietHours(time(11), time(13)))
    for number in range(SINGLES + 3):
        error = Failed(RunError("boom", "abcdefghijklmnopq"[number] * 5))
        job_id = await office.jobs.job(f"sync {number}", Interval(DAY), retry=Retry(0))
        await office.jobs.end(job_id, error)
    await office.notify()
    await office.wait(5 * MINUTE)
    assert mail.came == []
    await office.wait(HOUR)
    assert len(mail.came) == SINGLES + 1
    assert {each for to, _ in mail.came for each in to} == {"team@example.com"}


async def test_a_rule_for_mail_and_whatsapp_gives_each_its_own_recipients(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await add_rule(office, recipients=("+34600000001", "ana@example.com"))
    await failing(office)
    assert [to for to, _ in mail.came] == [["ana@example.com"]]


async def test_the_recovery_of_a_snoozed_incident_is_sent(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    until = office.clock.now() + DAY
    await incidents.snooze(office.database, office.scope, incident_id(office), until)
    await office.jobs.end(job_id)
    await office.notify()
    assert mail.subjects == [FAILED, RECOVERED]


async def test_the_incident_of_an_archived_job_is_closed_without_a_message(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    job_id = await failing(office)
    await job_status.archive(office.database, office.scope, job_id)
    for _ in range(3):
        await office.wait(DAY)
    assert mail.subjects == [FAILED]
    assert office.sql("SELECT closed_by FROM foliot.incidents") == [("archived",)]


async def test_a_message_behind_another_keeps_its_quiet_hours(office: Office, mail: MailServer) -> None:
    """The mail server is away when quiet hours begin, and returns within them."""
    await office.mail_channel(mail.port)
    await add_rule(office, quiet_hours=QuietHours(time(12, 30), time(20)))
    mail.answers += ["451 later"] * 4
    job_id = await failing(office)
    office.clock.advance(40 * MINUTE)
    await office.jobs.end(job_id)
    await office.notify()
    mail.answers.clear()
    await office.wait(2 * HOUR)
    assert mail.subjects == [FAILED]
    await office.wait(6 * HOUR)
    assert mail.subjects == [FAILED, RECOVERED]


async def test_unmuting_an_acknowledged_incident_brings_no_reminders_back(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await failing(office)
    found = incident_id(office)
    await incidents.acknowledge(office.database, office.scope, found)
    await incidents.mute(office.database, office.scope, found)
    await incidents.unmute(office.database, office.scope, found)
    await office.wait(timedelta(days=2))
    assert mail.subjects == [FAILED]
