"""Passwords inside addresses: found, and left out of what people see."""

from __future__ import annotations

import re


def without_password(url: str) -> str:
    return _IN_QUERY.sub(r"\1********", _PASSWORD.sub(r"\1********\3", url))


def passwords_in(url: str) -> list[str]:
    return [match[2] for pattern in (_PASSWORD, _IN_QUERY) for match in pattern.finditer(url)]


# The last @ ends the password: people forget to escape the ones inside.
_PASSWORD = re.compile(r"(://[^:/@]*:)(.*)(@[^@]*$)")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&#]*)")
