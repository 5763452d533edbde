"""A real SMTP server for tests: it keeps what it gets, and refuses what a test tells it to refuse."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


@dataclass
class MailServer:
    """`refuses` maps an address to an answer to RCPT; `answers` holds answers to DATA, then 250."""

    refuses: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    came: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def subjects(self) -> list[str]:
        return [str(message["Subject"]) for _, message in self.came]

    async def handle_RCPT(  # noqa: N802  # the name is aiosmtpd's
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address in self.refuses:
            return self.refuses[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answers:
            return self.answers.pop(0)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.came.append((list(envelope.rcpt_tos), message))
        return "250 Kept"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"right", handled=False)


@asynccontextmanager
async def mail_server(
    tls: ssl.SSLContext | None = None, *, needs_login: bool = False
) -> AsyncIterator[MailServer]:
    """Serve on a free port in the test's own loop. With `tls`, STARTTLS is required."""
    made = MailServer()

    def protocol() -> SMTP:
        return SMTP(
            made,
            hostname="mail.test",
            tls_context=tls,
            require_starttls=tls is not None,
            auth_required=needs_login,
            auth_require_tls=tls is not None,
            authenticator=made.authenticate,
        )

    server: object = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    assert isinstance(server, asyncio.Server)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
