"""Each channel against a real peer: the exact request, threads, temporary and permanent refusals, inert text."""

from __future__ import annotations

import base64
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from foliot.channels.apprise import AppriseChannel
from foliot.channels.email import EmailChannel
from foliot.channels.notice_webhook import NoticeWebhookChannel
from foliot.channels.room import RoomChannel
from foliot.channels.slack import SlackChannel
from foliot.channels.whatsapp import WhatsappChannel
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.notifications.rules import RuleDefinition
from foliot.domain.outcomes import Failed
from foliot.domain.policy import Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval
from foliot.egress.client import Egress
from foliot.services.messaging import rooms
from foliot.services.messaging.rooms import NewRoom
from foliot.services.notifications import channels, rules
from foliot.services.notifications.event_feed import feed
from foliot.services.notifications.notice_parcels import MOST_ATTACHMENTS
from foliot.services.runs import artifacts
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.secrets import secrets
from tests.engine.webhook_receiver import admitted
from tests.notifications.harness import Office
from tests.notifications.http_peer import http_peer
from tests.notifications.mail_server import MailServer, mail_server
from tests.stories.certificates import Authority

pytestmark = pytest.mark.anyio
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
REFUSED = Failed(RunError("http_failed", "db-2 refused the connection"))
SIGNING = "whsec_" + base64.b64encode(b"only for this test, 24 b").decode()
OLD_SIGNING = "whsec_" + base64.b64encode(b"the one before it, 24 by").decode()


async def secret(office: Office, name: str, value: str) -> dict[str, str]:
    await secrets.create(office.database, office.vault, office.scope, name, value)
    return {"secret": name}


def own_certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS settings of a server, and of a client that trusts it."""
    authority = Authority.new(folder)
    return authority.server("127.0.0.1"), ssl.create_default_context(cafile=str(authority.file))


async def tell_all(office: Office, *events: NoticeEvent, **terms: Any) -> None:
    """A rule of the whole workspace, to all channels."""
    found = (await channels.page(office.database, office.workspace)).items
    named = events or (NoticeEvent.RUN_FAILED, NoticeEvent.RECOVERED)
    definition = RuleDefinition(named, tuple(each.id for each in found), **terms)
    await rules.create(office.database, office.scope, "all", definition)


async def failing_job(office: Office, name: str = "sync", error: Failed = REFUSED) -> JobId:
    job_id = await office.jobs.job(name, Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id, error)
    await office.notify()
    return job_id


async def test_a_slack_bot_answers_in_the_thread_of_the_incident(office: Office) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(office.egress, office.clock).send
    async with http_peer(("200 OK", '{"ok": true, "ts": "1700000000.000100"}')) as slack:
        token = await secret(office, "slack-token", "xoxb-1")
        config = {"token": token, "channel": "#ops", "api_url": f"{slack.url}/api"}
        await office.channel(ChannelKind.SLACK, config)
        await tell_all(office)
        job_id = await failing_job(office)
        await office.jobs.end(job_id)
        await office.notify()
    first, second = slack.came
    assert (first.method, first.path) == ("POST", "/api/chat.postMessage")
    assert first.headers["authorization"] == "Bearer xoxb-1"
    assert first.json["channel"] == "#ops"
    assert "thread_ts" not in first.json
    assert "sync failed" in first.json["text"]
    assert second.json["thread_ts"] == "1700000000.000100"
    assert "recovered" in second.json["text"]


async def test_slack_markup_in_names_and_errors_is_inert(office: Office) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(office.egress, office.clock).send
    async with http_peer() as slack:
        await office.channel(
            ChannelKind.SLACK, {"webhook_url": await secret(office, "hook", f"{slack.url}/T/B/x")}
        )
        await tell_all(office)
        evil = Failed(RunError("boom", "<!channel> <https://evil.test|click> *bold* & `code` ```"))
        await failing_job(office, "<!here> *x*", evil)
    [request] = slack.came
    assert request.path == "/T/B/x"
    shown = request.body.decode()
    assert "<!" not in shown
    assert "<https://evil" not in shown
    assert "&lt;!channel&gt;" in shown
    assert " *bold* " not in shown


@pytest.mark.parametrize(
    ("answer", "is_disabled", "state"),
    [
        (("200 OK", '{"ok": false, "error": "invalid_auth"}'), True, False),
        (("404 Not Found", "no_service"), True, False),
        (("500 Oops", ""), False, None),
        (("429 Slow down\r\nretry-after: 90", ""), False, None),
        (("200 OK", '{"ok": false, "error": "internal_error"}'), False, None),
    ],
)
async def test_slack_errors_for_good_disable_the_channel_and_others_are_tried_again(
    office: Office, answer: tuple[str, str], is_disabled: bool, state: bool | None
) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(office.egress, office.clock).send
    async with http_peer(("200 OK", '{"ok": true}')) as slack:
        slack.answers.append(answer)
        config = {"token": await secret(office, "t", "x"), "channel": "#ops", "api_url": slack.url}
        await office.channel(ChannelKind.SLACK, config)
        await tell_all(office)
        await failing_job(office)
        assert office.sql("SELECT disabled_at IS NOT NULL FROM foliot.channels") == [(is_disabled,)]
        assert office.sql("SELECT delivered FROM foliot.outbox") == [(state,)]
        await office.wait(2 * MINUTE)
    assert len(slack.came) == (1 if is_disabled else 2)
    audited = office.sql("SELECT action FROM foliot.audit WHERE action = 'channel.disabled'")
    assert audited == ([("channel.disabled",)] if is_disabled else [])


async def test_whatsapp_gets_a_template_for_each_number_and_a_bad_number_is_left_out(office: Office) -> None:
    office.senders[ChannelKind.WHATSAPP] = WhatsappChannel(office.egress, office.clock).send
    async with http_peer(("200 OK", '{"messages": [{"id": "wamid.1"}]}')) as meta:
        meta.answers.append(("400 Bad Request", '{"error": {"code": 131026, "message": "undeliverable"}}'))
        config = {
            "token": await secret(office, "wa", "EAAG"),
            "phone_number_id": "123",
            "to": ["+34600000001", "+34600000002"],
            "template": "job_alert",
            "language": "es",
            "api_url": f"{meta.url}/v23.0",
        }
        await office.channel(ChannelKind.WHATSAPP, config)
        await tell_all(office)
        await failing_job(office)
    assert [each.path for each in meta.came] == ["/v23.0/123/messages"] * 2
    body = meta.came[1].json
    assert body["to"] == "34600000002"
    assert body["template"]["name"] == "job_alert"
    assert body["template"]["language"] == {"code": "es"}
    title, text = body["template"]["components"][0]["parameters"]
    assert title["text"] == "[default] sync failed: db-2 refused the connection"
    assert "\n" not in text["text"]
    assert meta.came[0].headers["authorization"] == "Bearer EAAG"
    assert office.sql("SELECT address FROM foliot.refused_addresses") == [("+34600000001",)]
    assert office.sql("SELECT delivered FROM foliot.outbox") == [(True,)]


async def test_a_webhook_is_signed_by_both_secrets_while_they_are_rotated(office: Office) -> None:
    office.senders[ChannelKind.WEBHOOK] = NoticeWebhookChannel(
        office.egress
    ).send  # the library compares with the real time
    async with http_peer(("204 No Content", "")) as receiver:
        config = {
            "url": f"{receiver.url}/hook",
            "secret": await secret(office, "new", SIGNING),
            "old_secret": await secret(office, "old", OLD_SIGNING),
        }
        await office.channel(ChannelKind.WEBHOOK, config)
        await tell_all(office)
        job_id = await failing_job(office)
    [request] = receiver.came
    for each in (SIGNING, OLD_SIGNING):
        verified = Webhook(each).verify(request.body, dict(request.headers))
        assert verified["type"] == "notice.run_failed"
        assert verified["data"]["job_id"] == str(job_id)


async def test_whatsapp_gets_artifacts_as_documents(office: Office) -> None:
    office.senders[ChannelKind.WHATSAPP] = WhatsappChannel(office.egress, office.clock).send
    async with http_peer(("200 OK", '{"messages": [{"id": "wamid.1"}]}')) as meta:
        config = {
            "token": await secret(office, "wa", "EAAG"),
            "phone_number_id": "123",
            "to": ["+34600000001"],
            "api_url": meta.url,
        }
        await office.channel(ChannelKind.WHATSAPP, config)
        await tell_all(office, attachments=("*.pdf",))
        job_id = await office.jobs.job("report", Interval(HOUR), retry=Retry(0))
        run_id = await office.jobs.run_manually(job_id)
        [claimed] = await office.jobs.claim()
        for name in ("report.pdf", "secret.key"):
            await artifacts.keep(
                office.database,
                NewArtifact(
                    run_id, claimed.fence, office.jobs.worker, 1, name, "application/pdf", b"%PDF-1.7"
                ),
            )
        await office.jobs.report(claimed, REFUSED)
        meta.answers += [("200 OK", "{}"), ("200 OK", '{"id": "media-7"}'), ("200 OK", "{}")]
        await office.notify()
    text, upload, document = meta.came
    assert [each.path for each in meta.came] == ["/123/messages", "/123/media", "/123/messages"]
    assert text.json["type"] == "text"
    assert b'filename="report.pdf"' in upload.body
    assert b"%PDF-1.7" in upload.body
    assert document.json["document"] == {"id": "media-7", "filename": "report.pdf"}


async def test_an_answer_429_is_tried_again_when_it_says_and_a_body_that_never_ends_is_not_waited_for(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.channels.http_request.WITHIN", 0.3)
    office.senders[ChannelKind.WEBHOOK] = NoticeWebhookChannel(office.egress, office.clock).send
    async with http_peer(("204 No Content", "")) as receiver:
        receiver.answers += [
            b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nbegun",
            ("429 Too Many Requests\r\nretry-after: 1200", ""),
        ]
        await office.channel(ChannelKind.WEBHOOK, {"url": receiver.url})
        await tell_all(office)
        await failing_job(office)
        assert "did not answer within" in office.sql("SELECT error FROM foliot.outbox")[0][0]
        await office.wait(MINUTE)
        assert office.sql("SELECT status, due_at - %s FROM foliot.outbox", office.clock.now()) == [
            (429, 20 * MINUTE)
        ]
        await office.wait(19 * MINUTE)
        assert len(receiver.came) == 2
        await office.wait(2 * MINUTE)
    assert office.sql("SELECT delivered FROM foliot.outbox") == [(True,)]
    assert len({each.headers["webhook-id"] for each in receiver.came}) == 1


async def test_a_certificate_that_nobody_vouches_for_is_a_temporary_error(
    office: Office, tmp_path: Path
) -> None:
    office.senders[ChannelKind.WEBHOOK] = NoticeWebhookChannel(office.egress, office.clock).send
    server, _ = own_certificate(tmp_path)
    async with http_peer(("204 No Content", ""), server) as receiver:
        await office.channel(ChannelKind.WEBHOOK, {"url": receiver.url})
        await tell_all(office)
        await failing_job(office)
        assert receiver.came == []
    [(delivered, error)] = office.sql("SELECT delivered, error FROM foliot.outbox")
    assert delivered is None
    assert "certificate" in error
    assert office.sql("SELECT disabled_at FROM foliot.channels") == [(None,)]


async def test_a_webhook_that_is_gone_disables_its_channel(office: Office) -> None:
    office.senders[ChannelKind.WEBHOOK] = NoticeWebhookChannel(office.egress, office.clock).send
    async with http_peer(("410 Gone", "")) as receiver:
        await office.channel(ChannelKind.WEBHOOK, {"url": receiver.url})
        await tell_all(office)
        await failing_job(office)
        await failing_job(office, "other")
    assert len(receiver.came) == 1
    [(reason,)] = office.sql("SELECT disabled_reason FROM foliot.channels")
    assert reason == "The receiver answered 410 Gone."


async def test_a_room_gets_the_notice_as_a_system_event(office: Office) -> None:
    office.senders[ChannelKind.ROOM] = RoomChannel(office.database).send
    caller = await admitted(office.database, office.workspace)
    room = await rooms.create(office.database, caller, NewRoom("ops", "ops"), None)
    await office.channel(ChannelKind.ROOM, {"room": "ops"})
    await tell_all(office)
    await failing_job(office)
    [message] = (await rooms.read(office.database, caller, room.id)).items
    assert message.kind.value == "system_event"
    assert message.text.startswith("[default] sync failed")


async def test_a_channel_names_a_room_that_exists_by_its_id_or_key(office: Office) -> None:
    caller = await admitted(office.database, office.workspace)
    room = await rooms.create(office.database, caller, NewRoom("operations", "ops"), None)
    await office.channel(ChannelKind.ROOM, {"room": str(room.id)})
    with pytest.raises(Invalid, match='There is no room with the id or key "operations"') as refused:
        await office.channel(ChannelKind.ROOM, {"room": "operations"})
    assert refused.value.pointer == "/config/room"


async def test_a_channel_whose_room_was_deleted_is_disabled_and_names_it(office: Office) -> None:
    office.senders[ChannelKind.ROOM] = RoomChannel(office.database).send
    caller = await admitted(office.database, office.workspace)
    room = await rooms.create(office.database, caller, NewRoom("ops", "ops"), None)
    await office.channel(ChannelKind.ROOM, {"room": "ops"})
    await tell_all(office)
    await rooms.delete(office.database, caller, room.id)
    await failing_job(office)
    assert office.sql("SELECT disabled_reason FROM foliot.channels") == [
        ('There is no room with the id or key "ops".',)
    ]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Apprise still imports modules that Python will drop
async def test_apprise_sends_to_a_service_of_the_long_tail(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    apprise_discord = pytest.importorskip("apprise.plugins.discord")
    office.senders[ChannelKind.APPRISE] = AppriseChannel().send
    async with http_peer(("200 OK", "{}")) as discord:
        monkeypatch.setattr(apprise_discord.NotifyDiscord, "notify_url", f"{discord.url}/api/webhooks")
        await office.channel(
            ChannelKind.APPRISE,
            {"url": await secret(office, "d", "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js")},
        )
        await tell_all(office)
        await failing_job(office, "@everyone")
    [request] = discord.came
    assert request.path.startswith("/api/webhooks/4174216298/")
    assert "failed" in request.body.decode()
    assert "@everyone" not in request.body.decode()


async def test_apprise_addresses_that_could_call_any_host_are_refused(office: Office) -> None:
    office.senders[ChannelKind.APPRISE] = AppriseChannel().send
    async with http_peer() as inside:
        await office.channel(
            ChannelKind.APPRISE, {"url": await secret(office, "j", f"json://127.0.0.1:{inside.port}/")}
        )
        await tell_all(office)
        await failing_job(office)
    assert inside.came == []
    [(error,)] = office.sql("SELECT error FROM foliot.outbox")
    assert "not allowed" in error


async def test_a_channel_cannot_reach_addresses_that_egress_refuses(office: Office) -> None:
    office.senders[ChannelKind.SLACK] = SlackChannel(Egress(()), office.clock).send
    office.senders[ChannelKind.EMAIL] = EmailChannel(Egress(())).send
    async with http_peer() as inside, mail_server() as mail:
        await office.channel(
            ChannelKind.SLACK, {"webhook_url": await secret(office, "hook", f"{inside.url}/")}
        )
        await office.mail_channel(mail.port)
        await tell_all(office)
        await failing_job(office)
    assert inside.came == []
    assert mail.came == []
    assert all("may not be called" in error for (error,) in office.sql("SELECT error FROM foliot.channels"))


async def test_mail_over_starttls_with_a_login(office: Office, tmp_path: Path) -> None:
    server_tls, client_tls = own_certificate(tmp_path)
    office.senders[ChannelKind.EMAIL] = EmailChannel(office.egress, tls=client_tls).send
    async with mail_server(server_tls, needs_login=True) as mail:
        password = await secret(office, "smtp", "right")
        await office.mail_channel(mail.port, security="starttls", username="foliot", password=password)
        await failing_job(office)
    assert mail.logins == [("foliot", "right")]
    assert len(mail.came) == 1


async def test_a_wrong_certificate_or_login_is_seen_on_the_channel(office: Office, tmp_path: Path) -> None:
    server_tls, client_tls = own_certificate(tmp_path)
    async with mail_server(server_tls, needs_login=True) as mail:
        office.senders[ChannelKind.EMAIL] = EmailChannel(office.egress, tls=ssl.create_default_context()).send
        password = await secret(office, "smtp", "wrong")
        await office.mail_channel(mail.port, security="starttls", username="foliot", password=password)
        await failing_job(office)
        [(error, disabled)] = office.sql("SELECT error, disabled_at IS NOT NULL FROM foliot.channels")
        assert "No secure connection" in error
        assert not disabled
        office.senders[ChannelKind.EMAIL] = EmailChannel(office.egress, tls=client_tls).send
        await office.wait(MINUTE)
        [(error, disabled)] = office.sql("SELECT error, disabled_at IS NOT NULL FROM foliot.channels")
        assert "refused the login" in error
        assert disabled
    assert mail.came == []


async def test_artifacts_that_a_rule_names_are_attached(office: Office, mail: MailServer) -> None:
    await office.mail_channel(mail.port)
    await tell_all(office, attachments=("*.csv",))
    job_id = await office.jobs.job("report", Interval(HOUR), retry=Retry(0))
    run_id = await office.jobs.run_manually(job_id)
    [claimed] = await office.jobs.claim()
    for name in ("rows.csv", "secret.bin"):
        given = NewArtifact(run_id, claimed.fence, office.jobs.worker, 1, name, "text/csv", b"a,b\n1,2\n")
        await artifacts.keep(office.database, given)
    assert await office.jobs.report(claimed, REFUSED)
    await office.notify()
    [(_, message)] = mail.came
    [attached] = message.iter_attachments()
    assert attached.get_filename() == "rows.csv"
    assert attached.get_content_type() == "text/csv"
    assert "1,2" in str(attached.get_content())


async def test_a_message_names_the_artifacts_that_are_too_many_for_it(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await tell_all(office, attachments=("*.csv",))
    job_id = await office.jobs.job("report", Interval(HOUR), retry=Retry(0))
    run_id = await office.jobs.run_manually(job_id)
    [claimed] = await office.jobs.claim()
    for number in range(MOST_ATTACHMENTS + 1):
        name = f"rows-{number:02}.csv"
        given = NewArtifact(run_id, claimed.fence, office.jobs.worker, 1, name, "text/csv", b"a,b")
        await artifacts.keep(office.database, given)
    assert await office.jobs.report(claimed, REFUSED)
    await office.notify()
    [(_, message)] = mail.came
    names = {each.get_filename() for each in message.iter_attachments()}
    [left_out] = {f"rows-{number:02}.csv" for number in range(MOST_ATTACHMENTS + 1)} - names
    body = message.get_body(("plain",))
    assert body is not None
    assert f"Not attached: {left_out}." in body.get_content()


async def test_a_webhook_channel_gets_every_event_it_names_once(office: Office) -> None:
    office.senders[ChannelKind.WEBHOOK] = NoticeWebhookChannel(office.egress, office.clock).send
    async with http_peer(("204 No Content", "")) as receiver:
        await office.channel(ChannelKind.WEBHOOK, {"url": receiver.url, "events": ["run.*"]})
        await feed(office.database)  # it listens from here on
        job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
        await office.jobs.end(job_id)
        for _ in range(2):
            await feed(office.database)
            await office.notify()
    sent = [each.json for each in receiver.came]
    assert sorted(each["type"] for each in sent) == ["run.started", "run.succeeded"]
    assert {each["data"]["job_id"] for each in sent} == {str(job_id)}


@pytest.mark.requirement("S2-42")
async def test_a_rule_about_every_success_is_followed_and_ends_with_the_rule(
    office: Office, mail: MailServer
) -> None:
    await office.mail_channel(mail.port)
    await tell_all(office, NoticeEvent.RUN_SUCCEEDED)
    await feed(office.database)
    job_id = await office.jobs.job("sync", Interval(HOUR), retry=Retry(0))
    await office.jobs.end(job_id)
    await feed(office.database)
    await office.notify()
    assert mail.subjects == ["[default] sync succeeded"]
    [rule] = (await rules.page(office.database, office.workspace)).items
    await rules.delete(office.database, office.scope, rule.rule.id)
    assert office.sql("SELECT count(*) FROM foliot.event_feeds") == [(0,)]
