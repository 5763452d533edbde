"""Signatures by Standard Webhooks: a receiver that shares the secret can verify that a request is from here, and not a replay.

https://www.standardwebhooks.com: `v1,` and the HMAC-SHA256 of id, time and body, one for each secret while secrets are rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

PREFIX = "whsec_"
SHORTEST = 16  # bytes of a key
TOLERANCE = timedelta(minutes=5)  # between the sender's clock and ours
LONGEST_ID = 256  # characters of a message id


class InvalidSigningSecret(Exception):
    """The text is not a valid signing secret. The message does not quote it."""


def signature_headers(secrets: Sequence[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a message. `message_id` stays the same when the message is sent again; without secrets there is no signature."""
    timestamp = str(int(at.timestamp()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [_signature(key_of(secret), signed) for secret in secrets]
    headers = {"webhook-id": message_id, "webhook-timestamp": timestamp}
    return {**headers, "webhook-signature": " ".join(signatures)} if signatures else headers


def refuse_signature(
    secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> str | None:
    """Return why a received message is refused, or None where one of the secrets has signed it."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "").split()
    if not (0 < len(message_id) <= LONGEST_ID and message_id.isprintable() and timestamp and given):
        return "The headers webhook-id, webhook-timestamp and webhook-signature are needed."
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return "webhook-timestamp must be seconds since 1970."
    if abs(now.timestamp() - int(timestamp)) > TOLERANCE.total_seconds():
        return "webhook-timestamp is more than 5 minutes away from this server's clock."
    signed = f"{message_id}.{timestamp}.".encode() + body
    valid = [_signature(key_of(secret), signed).encode() for secret in secrets]
    # Every pair is compared: the time must not tell which secret or signature came close.
    matches = [hmac.compare_digest(each.encode(), one) for each in given[:20] for one in valid]
    return None if any(matches) else "No signature fits."


def key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < SHORTEST:
        raise InvalidSigningSecret(
            f"A secret to sign with is {PREFIX} and at least {SHORTEST} bytes in base64, "
            f"such as `echo {PREFIX}$(openssl rand -base64 32)` makes."
        )
    return key


def _signature(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode("ascii")
