"""`webhook`: send a notice as one signed POST, by Standard Webhooks, for programs and gateways of the workspace's own.

Any 2xx is received. 410 disables the channel. Everything else is tried again for a day.
"""

from __future__ import annotations

import json

from foliot.channels.http_request import post, sentence_of
from foliot.clock import Clock, SystemClock
from foliot.domain.delivery import Answered, Came, Unanswered
from foliot.domain.notifications.content import NoticeContent
from foliot.domain.signatures import InvalidSigningSecret, signature_headers
from foliot.egress.client import Egress, HttpAnswer, retry_after
from foliot.services.messaging.courier import OutgoingNotice
from foliot.wire.notifications import NoticeLinkOut, NoticeOut, NoticeSent


class NoticeWebhookChannel:
    def __init__(self, egress: Egress, clock: Clock | None = None) -> None:
        self._egress = egress
        self._clock = clock or SystemClock()

    async def send(self, notice: OutgoingNotice) -> Came:
        secrets = [
            str(each) for each in (notice.config.get("secret"), notice.config.get("old_secret")) if each
        ]
        body = body_of(notice.content)
        try:
            signed = signature_headers(secrets, str(notice.taken.id), self._clock.now(), body)
        except InvalidSigningSecret as error:
            return Unanswered(str(error))
        headers = {"content-type": "application/json", "foliot-attempt": str(notice.taken.attempts), **signed}
        answer = await post(self._egress, str(notice.config.get("url")), body, headers, keep=1024)
        if not isinstance(answer, HttpAnswer):
            return answer
        return Answered(answer.status, sentence_of(answer), retry_after(answer, self._clock.now()))


def body_of(content: NoticeContent) -> bytes:
    """Return the body: the same bytes at every try."""
    if content.payload is not None:
        sent_event = {
            "type": content.title,
            "timestamp": content.payload["at"],
            "data": dict(content.payload),
        }
        return json.dumps(sent_event, ensure_ascii=False, separators=(",", ":")).encode()
    sent = NoticeSent(
        type=f"notice.{content.event.value}",
        timestamp=content.at,
        data=NoticeOut.from_value(
            content,
            event=content.event.value,
            kind=content.kind.value,
            severity=content.severity.value,
            links=[NoticeLinkOut(label=each.label, url=each.url) for each in content.links],
        ),
    )
    return sent.model_dump_json().encode()
