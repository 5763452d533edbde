"""From a failed run to a mail in a real mail server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.domain.outcomes import Failed
from foliot.domain.policy import Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.services.jobs import job_status
from tests.notifications.harness import Office
from tests.notifications.mail_server import MailServer

pytestmark = pytest.mark.anyio
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
REFUSED = Failed(RunError("http_failed", "db-2 refused the connection"))


async def test_a_job_that_fails_for_good_sends_one_mail_and_one_more_when_it_recovers(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port, "ops@example.com", "ana@example.com")
    job_id = await office.jobs.job("nightly-invoices", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, REFUSED)
    await office.notify()
    [(recipients, message)] = mail.came
    assert recipients == ["ops@example.com", "ana@example.com"]
    assert message["Subject"] == "[default] nightly-invoices failed: db-2 refused the connection"
    body, html = message.get_body(("plain",)), message.get_body(("html",))
    assert body is not None
    assert html is not None
    assert "http_failed: db-2 refused the connection" in body.get_content()
    assert "It has never succeeded." in body.get_content()
    assert "https://foliot.example/console/jobs/" in html.get_content()
    await office.jobs.end(job_id, REFUSED)  # the same incident
    await office.notify()
    assert len(mail.came) == 1
    office.clock.advance(20 * MINUTE)
    await office.jobs.end(job_id)
    await office.notify()
    assert mail.subjects[1:] == ["[default] nightly-invoices recovered"]
    reported = mail.came[1][1].get_body(("plain",))
    assert reported is not None
    assert "after 2 failures, down 20 minutes." in reported.get_content()
    assert mail.came[0][1]["References"] == mail.came[1][1]["References"]
    [(closed, has_incident)] = office.sql(
        "SELECT i.closed_at IS NOT NULL, t.has_incident FROM foliot.incidents i JOIN foliot.timers t USING (job_id)"
    )
    assert closed
    assert not has_incident
    await office.jobs.end(job_id)
    await office.notify()
    assert len(mail.came) == 2


async def test_retries_are_silent_until_the_last_has_failed(office: Office, mail: MailServer) -> None:
    """5, 15 and 30 minutes apart: one mail after the last, one when it works again."""
    await office.mail_channel(mail.port)
    waits = (5 * MINUTE, 15 * MINUTE, 30 * MINUTE)
    job_id = await office.jobs.job("sync", Interval(6 * HOUR), retry=Retry(3, delays=waits, jitter=0))
    await office.jobs.run_manually(job_id)
    for wait in (timedelta(0), *waits):
        assert mail.came == []
        await office.wait(wait)
        assert await office.jobs.run_once(REFUSED) == [job_id]
        await office.notify()
    assert len(mail.came) == 1
    await office.jobs.end(job_id)
    await office.notify()
    assert len(mail.came) == 2


async def test_the_settlement_of_the_last_attempt_writes_the_notice(office: Office) -> None:
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    run_id = await office.jobs.end(job_id, REFUSED)
    assert office.sql("SELECT event, job_id, run_id FROM foliot.notices") == [("run_failed", job_id, run_id)]


async def test_a_resume_between_failure_and_success_still_reports_the_recovery(
    office: Office, mail: MailServer
) -> None:
    """A resume clears the count of failures, which alone would let the success take the fast path."""
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, REFUSED)
    await job_status.pause(office.database, office.scope, job_id, reason="maintenance")
    await job_status.resume(office.database, office.scope, job_id)
    await office.jobs.end(job_id)
    await office.notify()
    assert sorted(mail.subjects) == [
        "[default] sync failed: db-2 refused the connection",
        "[default] sync recovered",
        "[default] sync was paused",
        "[default] sync was resumed",
    ]


async def test_names_and_errors_cannot_add_headers_or_markup(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    evil = "x\u202eevil <b>bold</b>"
    job_id = await office.jobs.job(evil, Interval(HOUR), retry=Retry(0))
    await office.jobs.end(
        job_id, Failed(RunError("boom", "one\r\nBcc: victim@example.com\r\n\r\n<script>x</script>"))
    )
    await office.notify()
    [(recipients, message)] = mail.came
    assert recipients == ["ops@example.com"]
    assert message["Bcc"] is None
    assert "\u202e" not in str(message["Subject"])
    html = message.get_body(("html",))
    assert html is not None
    assert "<script>" not in html.get_content()
    assert "<b>" not in html.get_content()
    assert "&lt;script&gt;" in html.get_content()


async def test_a_refused_address_is_left_out_from_then_on_and_seen(office: Office, mail: MailServer) -> None:
    mail.refuses["gone@example.com"] = "550 5.1.1 no such user"
    await office.mail_channel(mail.port, "ops@example.com", "gone@example.com")
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, REFUSED)
    await office.notify()
    assert office.sql("SELECT address, reason FROM foliot.refused_addresses") == [
        ("gone@example.com", "550 5.1.1 no such user")
    ]
    mail.refuses.clear()
    await office.jobs.end(job_id)
    await office.notify()
    assert [recipients for recipients, _ in mail.came] == [
        ["ops@example.com"]
    ] * 3  # the failure, the address, the recovery


async def test_a_mail_server_that_is_away_gets_the_same_mail_later(office: Office, mail: MailServer) -> None:
    mail.answers += ["451 4.3.0 try later"]
    await office.mail_channel(mail.port)
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, REFUSED)
    await office.notify()
    assert mail.came == []
    assert office.sql("SELECT error FROM foliot.channels") == [
        ("The mail server answered 451: 4.3.0 try later.",)
    ]
    await office.wait(MINUTE)
    [(delivery_id, status)] = office.sql("SELECT id, status FROM foliot.outbox")
    assert status == 250
    assert str(delivery_id) in mail.came[0][1]["Message-ID"]
