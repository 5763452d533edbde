"""What an answer says, for whoever reads about it: its code with a reason, and how long its sender wants to be left alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from foliot.egress.client import Answer

BUSY = frozenset({429, 503})  # whose Retry-After is heeded


def reason_of(answer: Answer) -> str:
    """In the words of the target, as far as they can be shown; else in those of HTTP."""
    return "".join(filter(str.isprintable, answer.reason))[:100].strip() or _phrase(answer.status)


def asked_to_wait(answer: Answer, now: datetime) -> timedelta | None:
    return retry_after(answer.headers.get("retry-after", ""), now) if answer.status in BUSY else None


def retry_after(text: str, now: datetime) -> timedelta | None:
    """Seconds, or a date of HTTP; None for what is neither, or no wait."""
    text = text.strip()
    try:
        if text.isascii() and text.isdecimal():
            wait = timedelta(seconds=int(text[:10]))
        else:
            wait = timedelta(seconds=int((parsedate_to_datetime(text) - now).total_seconds()))
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait > timedelta(0) else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
