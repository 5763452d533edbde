"""`slack`: send a notice by an incoming webhook, or as a bot with a token, which can answer in the thread of an incident.

Text from users is escaped as Slack asks: `&`, `<` and `>`. Links and mentions need angle brackets, so none can be made of names or errors.
"""

from __future__ import annotations

from typing import Any

from foliot.channels.http_request import json_of, post_json, sentence_of
from foliot.clock import Clock, SystemClock
from foliot.domain.delivery import Accepted, Answered, Came, Rejected, Unanswered
from foliot.domain.notifications.content import NoticeContent, Severity
from foliot.egress.client import Egress, HttpAnswer, retry_after
from foliot.services.messaging.courier import OutgoingNotice

API = "https://slack.com/api"
LONGEST_BLOCK = 2_900  # characters; Slack refuses sections beyond 3,000
_MARKS = {Severity.BAD: "🔴", Severity.GOOD: "🟢", Severity.NEUTRAL: "🔵"}
# Answers that another try does not change, and of these the ones that every message would get.
_FOR_GOOD = frozenset({"invalid_blocks", "msg_too_long", "no_text", "restricted_action", "invalid_payload"})
_STOPPED = frozenset(
    {
        "account_inactive", "channel_is_archived", "channel_not_found", "invalid_auth", "invalid_token", "is_archived",
        "missing_scope", "no_service", "no_team", "not_authed", "not_in_channel", "team_disabled", "token_expired",
        "token_revoked", "user_not_found",
    }
)  # fmt: skip


class SlackChannel:
    def __init__(self, egress: Egress, clock: Clock | None = None) -> None:
        self._egress = egress
        self._clock = clock or SystemClock()

    async def send(self, notice: OutgoingNotice) -> Came:
        config = notice.config
        if config.get("webhook_url"):
            return await self._by_webhook(str(config["webhook_url"]), notice)
        return await self._by_token(notice)

    async def _by_webhook(self, url: str, notice: OutgoingNotice) -> Came:
        answer = await post_json(self._egress, url, body_of(notice.content))
        if not isinstance(answer, HttpAnswer):
            return answer
        said = answer.body.decode("utf-8", "replace").strip()
        if 200 <= answer.status < 300:
            return Accepted(answer.status, sentence_of(answer, said))
        return self._refusal(answer, said)

    async def _by_token(self, notice: OutgoingNotice) -> Came:
        config = notice.config
        url = f"{str(config.get('api_url') or API).rstrip('/')}/chat.postMessage"
        body = {**body_of(notice.content), "channel": config.get("channel"), "unfurl_links": False}
        if notice.thread:
            body["thread_ts"] = notice.thread
            body["reply_broadcast"] = notice.content.severity is Severity.GOOD
        headers = {"authorization": f"Bearer {config.get('token')}"}
        answer = await post_json(self._egress, url, body, headers)
        if not isinstance(answer, HttpAnswer):
            return answer
        said = json_of(answer)
        if answer.status == 200 and said.get("ok") is True:
            return Accepted(
                answer.status, sentence_of(answer, "ok"), thread=str(said["ts"]) if said.get("ts") else None
            )
        return self._refusal(answer, str(said.get("error") or ""))

    def _refusal(self, answer: HttpAnswer, said: str) -> Answered | Rejected | Unanswered:
        code = said.partition(" ")[0].partition("\n")[0]
        sentence = sentence_of(answer, said)
        if code in _STOPPED or answer.status in (401, 403, 404, 410):
            return Rejected(answer.status, sentence, stops=True)
        if code in _FOR_GOOD or answer.status == 400:
            return Rejected(answer.status, sentence)
        if answer.status < 300:  # Slack answers errors of its API with 200
            wait = retry_after(answer, self._clock.now())
            return Unanswered(sentence) if wait is None else Answered(503, sentence, wait)
        return Answered(answer.status, sentence, retry_after(answer, self._clock.now()))


def body_of(content: NoticeContent) -> dict[str, Any]:
    """Return text for notifications and search, and blocks for reading."""
    title = f"{_MARKS[content.severity]} *{escape(content.title)}*"
    blocks: list[dict[str, Any]] = [_section("\n".join([title, *map(escape, content.lines)]))]
    if content.error:
        blocks.append(_section("```" + escape(content.error)[: LONGEST_BLOCK - 6] + "```"))
    if content.facts:
        blocks.append(
            _section("\n".join(f"*{escape(label)}*  {escape(value)}" for label, value in content.facts))
        )
    if content.links:
        links = " · ".join(f"<{_link(each.url)}|{escape(each.label)}>" for each in content.links)
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": links}]})
    return {"text": escape(content.title), "blocks": blocks}


def escape(text: str) -> str:
    """Escape what Slack reads as control characters; formatting marks are separated from their words."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(_INERT.get(c, c) for c in safe)


# A zero-width space would be removed by some clients; a word joiner keeps the mark from opening a format.
_INERT = {mark: f"\u2060{mark}\u2060" for mark in "*_~`"}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:LONGEST_BLOCK], "verbatim": True}}


def _link(url: str) -> str:
    return url.replace("&", "&amp;").replace("<", "%3C").replace(">", "%3E").replace("|", "%7C")
