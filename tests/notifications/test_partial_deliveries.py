"""Messages to several recipients of which some get them, documents that are not taken, and answers that repeat secrets."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.channels import whatsapp
from foliot.channels.slack import SlackChannel
from foliot.channels.whatsapp import WhatsappChannel
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.policy import Retry
from foliot.domain.schedule import Interval
from foliot.services.messaging.courier import OutgoingNotice
from foliot.services.runs import artifacts
from foliot.services.runs.artifacts import NewArtifact
from tests.notifications.harness import Office
from tests.notifications.http_peer import HttpPeer, http_peer
from tests.notifications.mail_server import MailServer
from tests.notifications.test_channels import HOUR, MINUTE, REFUSED, failing_job, secret, tell_all

pytestmark = pytest.mark.anyio
TAKEN = ("200 OK", '{"messages": [{"id": "wamid.1"}]}')


async def whatsapp_channel(office: Office, meta: HttpPeer, *to: str, **terms: Any) -> None:
    office.senders[ChannelKind.WHATSAPP] = WhatsappChannel(office.egress, office.clock).send
    config = {
        "token": await secret(office, "wa", "EAAG"),
        "phone_number_id": "123",
        "to": list(to),
        "api_url": meta.url,
    }
    await office.channel(ChannelKind.WHATSAPP, config)
    await tell_all(office, **terms)


async def test_a_recipient_who_is_refused_for_now_gets_the_mail_later_and_alone(
    office: Office, mail: MailServer
) -> None:
    mail.refuses = {"ana@example.com": "450 4.2.0 greylisted", "gone@example.com": "550 no such user"}
    await office.mail_channel(mail.port, "ops@example.com", "ana@example.com", "gone@example.com")
    await failing_job(office)
    assert office.sql(
        "SELECT delivered, error FROM foliot.outbox WHERE attempts > 0 ORDER BY id LIMIT 1"
    ) == [(None, "The mail server took it for 1 of 3 recipients: 450 4.2.0 greylisted")]
    assert office.sql("SELECT address FROM foliot.refused_addresses") == [("gone@example.com",)]
    mail.refuses.clear()
    await office.wait(MINUTE)
    failures = [to for to, message in mail.came if "failed" in message["Subject"]]
    assert failures == [["ops@example.com"], ["ana@example.com"]]


async def test_who_has_a_whatsapp_message_does_not_get_it_again_when_the_service_is_busy(
    office: Office,
) -> None:
    async with http_peer(TAKEN) as meta:
        meta.answers += [TAKEN, ("429 Too Many Requests\r\nRetry-After: 30", "{}")]
        await whatsapp_channel(office, meta, "34600000001", "34600000002", "34600000003")
        await failing_job(office)
        assert office.sql("SELECT recipients FROM foliot.delivery_contents") == [
            (["34600000002", "34600000003"],)
        ]
        await office.wait(MINUTE)
    assert [each.json["to"][-1] for each in meta.came] == ["1", "2", "2", "3"]
    assert office.sql("SELECT delivered FROM foliot.outbox") == [(True,)]


async def test_an_attempt_ends_before_its_lease_and_goes_on_with_the_recipients_left(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatsapp, "WITHIN", 0.3)
    async with http_peer(TAKEN) as meta:
        meta.answers += [TAKEN, None]
        await whatsapp_channel(office, meta, "34600000001", "34600000002")
        await failing_job(office)
        await office.wait(MINUTE)
    assert [each.json["to"][-1] for each in meta.came] == ["1", "2", "2"]


async def test_an_error_of_the_template_refuses_no_address(office: Office) -> None:
    async with http_peer(
        ("400 Bad Request", '{"error": {"code": 132001, "message": "no such template"}}')
    ) as meta:
        await whatsapp_channel(office, meta, "34600000001")
        await failing_job(office)
    assert office.sql("SELECT address FROM foliot.refused_addresses") == []
    assert office.sql("SELECT disabled_at, error FROM foliot.channels") == [
        (None, "The receiver answered 400 Bad Request: no such template.")
    ]


async def test_a_document_that_is_not_taken_is_in_the_log_of_deliveries(office: Office) -> None:
    async with http_peer(TAKEN) as meta:
        await whatsapp_channel(office, meta, "34600000001", "34600000002", attachments=("*.pdf",))
        job_id = await office.jobs.job("report", Interval(HOUR), retry=Retry(0))
        run_id = await office.jobs.run_manually(job_id)
        [claimed] = await office.jobs.claim()
        made = NewArtifact(
            run_id, claimed.fence, office.jobs.worker, 1, "report.pdf", "application/pdf", b"%PDF-1.7"
        )
        await artifacts.keep(office.database, made)
        await office.jobs.report(claimed, REFUSED)
        meta.answers += [TAKEN, ("400 Bad Request", '{"error": {"code": 131053, "message": "bad media"}}')]
        await office.notify()
    [(answer,)] = office.sql("SELECT answer FROM foliot.delivery_contents")
    assert answer == (
        "WhatsApp took it for 2 of 2 recipients. The document report.pdf was not taken:"
        " The receiver answered 400 Bad Request: bad media."
    )
    assert [each.path for each in meta.came] == ["/123/messages", "/123/media", "/123/messages"]


async def test_an_answer_that_repeats_a_secret_is_masked(office: Office) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(office.egress, office.clock).send
    async with http_peer(("200 OK", '{"ok": false, "error": "bad token xoxb-1234567890"}')) as slack:
        config = {
            "token": await secret(office, "bot", "xoxb-1234567890"),
            "channel": "#ops",
            "api_url": slack.url,
        }
        await office.channel(ChannelKind.SLACK, config)
        await tell_all(office)
        await failing_job(office)
    [(error, answer)] = office.sql("SELECT error, (SELECT error FROM foliot.channels) FROM foliot.outbox")
    assert "bad token" in error
    assert "xoxb" not in error + answer


async def test_a_channel_that_breaks_is_tried_again_more_and_more_seldom(office: Office) -> None:
    async def breaks(_: OutgoingNotice) -> Any:
        raise ValueError("a bug")

    office.senders[ChannelKind.SLACK] = breaks
    await office.channel(ChannelKind.SLACK, {})
    await tell_all(office)
    await failing_job(office)
    assert office.sql("SELECT attempts, leased_until, error FROM foliot.outbox") == [
        (1, None, "Foliot could not send it: ValueError. The server's log has the details.")
    ]
