"""`whatsapp`: send a notice by the Cloud API of Meta, as a template message or, inside an open conversation, as text; artifacts as documents.

Meta accepts free text only within a day of the recipient's last message, so a channel normally names an approved template. Its body has one
parameter for the title and one for the text, which may hold no line breaks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from foliot.channels.http_request import json_of, post, post_json, sentence_of
from foliot.clock import Clock, SystemClock
from foliot.domain.delivery import Accepted, Answered, Came, PartlyAccepted, Rejected, Unanswered
from foliot.egress.client import Egress, HttpAnswer, retry_after
from foliot.services.messaging.courier import LEASE, OutgoingNotice

API = "https://graph.facebook.com/v23.0"
WITHIN = LEASE.total_seconds() * 0.75  # for all recipients: another courier sends what outlasts the lease
LONGEST_ANSWER = 500
LONGEST_PARAMETER = 900
LONGEST_TEXT = 4_000
_TOKEN = frozenset({0, 10, 190, 200})  # codes about the token and its rights
_ADDRESS = frozenset(
    {131009, 131021, 131026, 131030}
)  # codes about one recipient; others are about the message or its template
_BUSY = frozenset({4, 80007, 130429, 131048, 131056, 1, 2, 131000, 131016})


@dataclass(slots=True)
class _Progress:
    """The progress of one attempt: it may be cut off between two recipients."""

    left: list[str]
    sent: int = 0
    refusals: list[Rejected] = field(default_factory=list)
    media: dict[str, str | Answered | Unanswered | Rejected] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)  # documents that were not taken, with the last answer

    def result(self, count: int, trouble: Answered | Unanswered | Rejected | None) -> Came:
        refused = tuple(pair for each in self.refusals for pair in each.refused)
        if trouble is not None and self.left:
            if isinstance(trouble, Rejected) or len(self.left) == count:
                return trouble
            status, asked = (trouble.status, trouble.asked) if isinstance(trouble, Answered) else (None, None)
            return PartlyAccepted(trouble.sentence, tuple(self.left), status, asked, refused)
        if not self.sent:
            last = self.refusals[-1]
            return Rejected(last.status, last.sentence, refused=refused)
        sentences = [f"WhatsApp took it for {self.sent} of {count} recipients."]
        sentences += [
            f"The document {name} was not taken: {sentence}" for name, sentence in self.lost.items()
        ]
        sentences += [each.sentence for each in (*self.refusals[:1], *((trouble,) if trouble else ()))]
        return Accepted(200, " ".join(sentences)[:LONGEST_ANSWER], refused=refused)


class WhatsappChannel:
    def __init__(self, egress: Egress, clock: Clock | None = None) -> None:
        self._egress = egress
        self._clock = clock or SystemClock()

    async def send(self, notice: OutgoingNotice) -> Came:
        """Send to each recipient. What one of them refuses for good is reported by address; the others get it."""
        if not notice.recipients:
            return Rejected(None, "The channel has no recipients.")
        progress = _Progress(list(notice.recipients))
        try:
            async with asyncio.timeout(WITHIN):
                trouble = await self._send_all(notice, progress)
        except TimeoutError:
            trouble = Unanswered(f"WhatsApp did not take every message within {WITHIN:g} s.")
        return progress.result(len(notice.recipients), trouble)

    async def _send_all(
        self, notice: OutgoingNotice, progress: _Progress
    ) -> Answered | Unanswered | Rejected | None:
        """Return what concerns every recipient: a token that is refused, or a service that is away."""
        for recipient in notice.recipients:
            came = await self._post(notice, message_of(notice, recipient), recipient)
            if isinstance(came, Accepted):
                progress.sent += 1
                progress.left.remove(recipient)
                await self._send_documents(notice, recipient, progress)
            elif isinstance(came, Rejected) and not came.stops:
                progress.left.remove(recipient)
                progress.refusals.append(came)
            else:
                return came
        return None

    async def _send_documents(self, notice: OutgoingNotice, recipient: str, progress: _Progress) -> None:
        """Send the attachments. One that is not taken is sentences in the answer: the message itself has arrived."""
        for each in notice.attachments:
            if each.name not in progress.media:
                progress.media[each.name] = await self._upload(notice, each.name, each.media_type, each.data)
            media = progress.media[each.name]
            if not isinstance(media, str):
                progress.lost[each.name] = media.sentence
                continue
            document = {"id": media, "filename": each.name}
            body = {**_head(recipient), "type": "document", "document": document}
            came = await self._post(notice, body, recipient)
            if not isinstance(came, Accepted):
                progress.lost[each.name] = came.sentence

    async def _post(
        self, notice: OutgoingNotice, body: dict[str, Any], recipient: str
    ) -> Accepted | Answered | Unanswered | Rejected:
        answer = await post_json(self._egress, self._url(notice, "messages"), body, self._headers(notice))
        if not isinstance(answer, HttpAnswer):
            return answer
        if 200 <= answer.status < 300:
            return Accepted(answer.status, sentence_of(answer))
        return self._refusal(answer, recipient)

    async def _upload(
        self, notice: OutgoingNotice, name: str, media_type: str, data: bytes
    ) -> str | Answered | Unanswered | Rejected:
        boundary = uuid4().hex
        safe = "".join(c for c in name if c.isprintable() and c not in '"\\')
        fields = [("messaging_product", "whatsapp"), ("type", media_type)]
        parts = [
            f'--{boundary}\r\ncontent-disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
            for field, value in fields
        ]
        head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{safe}"\r\ncontent-type: {media_type}\r\n\r\n'
        body = b"".join([*parts, head.encode(), data, f"\r\n--{boundary}--\r\n".encode()])
        headers = {**self._headers(notice), "content-type": f"multipart/form-data; boundary={boundary}"}
        answer = await post(self._egress, self._url(notice, "media"), body, headers)
        if not isinstance(answer, HttpAnswer):
            return answer
        found = json_of(answer).get("id")
        return str(found) if found and answer.status < 300 else self._refusal(answer, "")

    def _url(self, notice: OutgoingNotice, path: str) -> str:
        base = str(notice.config.get("api_url") or API).rstrip("/")
        return f"{base}/{notice.config.get('phone_number_id')}/{path}"

    def _headers(self, notice: OutgoingNotice) -> dict[str, str]:
        return {"authorization": f"Bearer {notice.config.get('token')}"}

    def _refusal(self, answer: HttpAnswer, recipient: str) -> Answered | Rejected | Unanswered:
        error = json_of(answer).get("error")
        found = error if isinstance(error, dict) else {}
        code = found.get("code")
        sentence = sentence_of(answer, str(found.get("message") or ""))
        if code in _BUSY or answer.status in (429, 503) or answer.status >= 500:
            return Answered(
                answer.status if answer.status >= 300 else 503,
                sentence,
                retry_after(answer, self._clock.now()),
            )
        if code in _TOKEN or answer.status == 401:
            return Rejected(answer.status, sentence, stops=True)
        if code in _ADDRESS:
            return Rejected(answer.status, sentence, refused=((recipient, sentence),))
        return Rejected(answer.status, sentence, stops=answer.status in (403, 404))


def message_of(notice: OutgoingNotice, recipient: str) -> dict[str, Any]:
    """Return the request body: a template where the channel names one, else text."""
    config, content = notice.config, notice.content
    if not config.get("template"):
        text = f"{content.title}\n\n{content.text}"[:LONGEST_TEXT]
        return {**_head(recipient), "type": "text", "text": {"preview_url": False, "body": text}}
    parameters = [_parameter(content.title), _parameter(" ".join([*content.lines, content.error or ""]))]
    template = {
        "name": config["template"],
        "language": {"code": config.get("language") or "en_US"},
        "components": [{"type": "body", "parameters": parameters}],
    }
    return {**_head(recipient), "type": "template", "template": template}


def _head(recipient: str) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "recipient_type": "individual", "to": recipient.lstrip("+")}


def _parameter(text: str) -> dict[str, str]:
    """A parameter has no line breaks, tabs or runs of spaces: Meta refuses those."""
    return {"type": "text", "text": " ".join(text.split())[:LONGEST_PARAMETER] or "-"}
