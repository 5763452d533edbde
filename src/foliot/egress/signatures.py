"""Signatures by Standard Webhooks: a receiver that shares the secret can verify that a request is from here, and not a replay.

https://www.standardwebhooks.com: `v1,` and the HMAC-SHA256 of id, time and body, one for each secret while secrets are rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"
SHORTEST = 16  # bytes of a key


class InvalidSigningSecret(Exception):
    """The text is not a valid signing secret. The message does not quote it."""


def signature_headers(secrets: Sequence[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a message. `message_id` stays the same when the message is sent again; without secrets there is no signature."""
    timestamp = str(int(at.timestamp()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [_signature(key_of(secret), signed) for secret in secrets]
    headers = {"webhook-id": message_id, "webhook-timestamp": timestamp}
    return {**headers, "webhook-signature": " ".join(signatures)} if signatures else headers


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
