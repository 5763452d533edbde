"""Addresses of a database as libpq takes them, URL or `key=value` words, with the password kept off the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

USER_INFO = re.compile(r"^(postgres(?:ql)?://[^:@/?#]*):([^@/?#]*)@")
IN_QUERY = re.compile(r"(?<=[?&])password=([^&#]*)&?")
WORD = re.compile(r"\s*(\w+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s'\\])*)")


@dataclass(frozen=True, slots=True)
class Address:
    """`text` may be seen by every user of the machine (`ps`); the password travels in the environment."""

    text: str
    password: str | None = None

    def environment(self) -> dict[str, str]:
        return {} if self.password is None else {"PGPASSWORD": self.password}


def parse(url: str) -> Address:
    if url.startswith(("postgresql://", "postgres://")):
        password = None
        if found := USER_INFO.match(url):
            url, password = f"{found[1]}@{url[found.end() :]}", unquote(found[2])
        if found := IN_QUERY.search(url):
            url, password = IN_QUERY.sub("", url).rstrip("?&"), unquote(found[1])
        return Address(url, password)
    words = WORD.findall(url)
    secret = [_plain(value) for name, value in words if name == "password"]
    return Address(
        " ".join(f"{name}={value}" for name, value in words if name != "password"),
        secret[-1] if secret else None,
    )


def _plain(value: str) -> str:
    inner = value[1:-1] if value.startswith("'") else value
    return re.sub(r"\\(.)", r"\1", inner)
