"""Verify the ID token of an OpenID Connect provider: signature, issuer, audience, times and nonce."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

SKEW = timedelta(minutes=1)  # clocks of two machines differ
LEAST_RSA_BITS = 2048
HALF = 32  # bytes of each number of an ES256 signature


class BadToken(Exception):
    """The token proves nothing; the text says why, for the log."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token of this sign-in must say."""

    issuer: str
    client_id: str
    nonce: str
    now: datetime


def verify(token: str, keys: Sequence[Mapping[str, Any]], expected: Expected) -> dict[str, Any]:
    """Return the claims of a token that one of the provider's keys signed for this sign-in. Raise BadToken otherwise."""
    head, claims, signed, signature = _parts(token)
    _check_signature(_key_of(head, keys), head.get("alg"), signed, signature)
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != expected.issuer:
        raise BadToken("another issuer")
    if expected.client_id not in audiences or claims.get("azp", expected.client_id) != expected.client_id:
        raise BadToken("another audience")
    if claims.get("nonce") != expected.nonce:
        raise BadToken("another nonce")
    if _instant(claims, "exp") + SKEW <= expected.now:
        raise BadToken("it has expired")
    if _instant(claims, "iat") - SKEW > expected.now:
        raise BadToken("it is from the future")
    return claims


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    try:
        head, claims, signature = token.split(".")
        read = (json.loads(_decode(head)), json.loads(_decode(claims)))
        decoded = _decode(signature)
    except (ValueError, RecursionError):
        raise BadToken("it cannot be read") from None
    if not all(isinstance(each, dict) for each in read):
        raise BadToken("it cannot be read")
    return *read, f"{head}.{claims}".encode("ascii", "replace"), decoded


def _key_of(head: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The key that the head names. Its kind, not the token, decides the algorithm."""
    wanted = {"RS256": "RSA", "ES256": "EC"}.get(str(head.get("alg")))
    fitting = [
        key
        for key in keys
        if key.get("kty") == wanted
        and key.get("use", "sig") == "sig"
        and head.get("kid") in (None, key.get("kid"))
    ]
    if wanted is None or len(fitting) != 1:
        raise BadToken("no key of the provider fits it")
    return fitting[0]


def _check_signature(key: Mapping[str, Any], algorithm: Any, signed: bytes, signature: bytes) -> None:
    try:
        if algorithm == "RS256":
            public = rsa.RSAPublicNumbers(_number(key["e"]), _number(key["n"])).public_key()
            if public.key_size < LEAST_RSA_BITS:
                raise BadToken("the provider's key is too short")
            public.verify(signature, signed, padding.PKCS1v15(), SHA256())
        else:
            if key.get("crv") != "P-256" or len(signature) != 2 * HALF:
                raise BadToken("the signature has another form")
            curve = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1())
            r, s = (int.from_bytes(each) for each in (signature[:HALF], signature[HALF:]))
            curve.public_key().verify(encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))
    except (InvalidSignature, KeyError, ValueError, TypeError):
        raise BadToken("the signature is wrong") from None


def _instant(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise BadToken(f"{name} is missing")
    return datetime.fromtimestamp(value, UTC)


def _number(text: str) -> int:
    return int.from_bytes(_decode(text))


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
