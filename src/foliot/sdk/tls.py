"""Whose certificates a client trusts: those of the file it was given, else those of the machine. Never none.

Why: docs/decisions/321-remote-workers-trust.md
"""

from __future__ import annotations

import ssl

import httpx2

from foliot.sdk.connection import Place
from foliot.sdk.errors import FoliotApiError


def trusted_by(place: Place) -> ssl.SSLContext:
    """SSL_CERT_FILE and SSL_CERT_DIR count on this machine too, where proxies do not."""
    if place.ca is None:
        return httpx2.create_ssl_context(trust_env=True)
    try:
        return ssl.create_default_context(cafile=place.ca)
    except (OSError, ssl.SSLError) as error:
        raise FoliotApiError(
            f"{place.ca} has no certificates that can be read: {error}",
            code="setting.invalid",
            hint="It must be a file of certificates as PEM, such as the one of your own authority.",
        ) from None
