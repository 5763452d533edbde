"""`apprise`: the long tail of services by the Apprise library, in the form of its addresses, such as discord://… or tgram://….

Only services with a fixed address of their own are allowed: an Apprise address could otherwise call any host past egress. The library blocks,
so it runs in a thread; it does not retry, the courier does.
"""

from __future__ import annotations

import asyncio
import importlib.util
from urllib.parse import urlsplit

from foliot.domain.delivery import Accepted, Came, Rejected, Unanswered
from foliot.domain.notifications.content import NoticeContent, Severity
from foliot.services.messaging.courier import LEASE, OutgoingNotice

WITHIN = LEASE.total_seconds() * 0.75
# Each of these services has one address that its plugin knows; host and path of the given address are tokens.
SCHEMES = frozenset(
    {
        "discord", "msteams", "tgram", "pushover", "pover", "pagerduty", "opsgenie", "sendgrid", "twilio", "webex", "wxteams",
        "gchat", "line", "pushbullet", "pbul", "pushed", "simplepush", "spugpush", "threema", "signl4", "ifttt",
    }
)  # fmt: skip
_TYPES = {Severity.BAD: "failure", Severity.GOOD: "success", Severity.NEUTRAL: "info"}


def check_apprise_url(url: str) -> str | None:
    """Return why the address cannot be used, or None."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in SCHEMES:
        return f"Apprise addresses of the kind {scheme or 'none'} are not allowed here. Allowed: {', '.join(sorted(SCHEMES))}."
    if importlib.util.find_spec("apprise") is None:
        return "The package apprise is not installed: pip install 'foliot[apprise]'."
    return None


class AppriseChannel:
    async def send(self, notice: OutgoingNotice) -> Came:
        url = str(notice.config.get("url"))
        refused = check_apprise_url(url)
        if refused is not None:
            return Rejected(None, refused)
        try:
            async with asyncio.timeout(WITHIN):
                return await asyncio.to_thread(_notify, url, notice.content)
        except TimeoutError:
            return Unanswered(f"The service did not answer within {WITHIN:g} s.")


def _notify(url: str, content: NoticeContent) -> Came:
    import apprise  # noqa: PLC0415  # optional, and slow to load

    asset = apprise.AppriseAsset(async_mode=False)
    sender = apprise.Apprise(asset=asset)
    if not sender.add(url):
        return Rejected(None, "Apprise does not understand this address.", stops=True)
    text, title = (
        each.replace("@", "@\u2060") for each in (content.text, content.title)
    )  # names must not call anyone
    done = sender.notify(body=text, title=title, notify_type=_TYPES[content.severity], body_format="text")
    if done:
        return Accepted(200, "The service took it.")
    return Unanswered("The service did not take it.")
