"""`email`: send a notice over SMTP, with STARTTLS, TLS from the start or neither, to addresses that egress allows.

A refused address (5xx to RCPT) is reported by itself; the others get the message. Permanent answers to the message are not repeated.
"""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any
from urllib.parse import unquote, urlsplit

from foliot.channels.email_message import build_email
from foliot.domain.delivery import Accepted, Came, PartlyAccepted, Rejected, Unanswered
from foliot.egress.client import AddressRefused, Egress, NoAnswer
from foliot.egress.url import HttpTarget
from foliot.services.messaging.courier import LEASE, OutgoingNotice

WITHIN = LEASE.total_seconds() * 0.75
STEP_WITHIN = 10.0  # seconds for one exchange of lines
PORTS = {"starttls": 587, "tls": 465, "none": 25}
LONGEST_ANSWER = 200


@dataclass(frozen=True, slots=True)
class MailServer:
    """An SMTP server. `security` is starttls, tls or none."""

    host: str
    port: int
    security: str = "starttls"
    username: str | None = None
    password: str | None = None
    sender: str | None = None


def read_mail_url(url: str, sender: str | None) -> MailServer:
    """Read FOLIOT_SMTP_URL: `smtp://` uses STARTTLS, `smtps://` TLS from the start, `smtp+plain://` neither."""
    parts = urlsplit(url)
    security = {"smtp": "starttls", "smtps": "tls", "smtp+plain": "none"}[parts.scheme]
    return MailServer(
        parts.hostname or "",
        parts.port or PORTS[security],
        security,
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
        sender,
    )


class EmailChannel:
    """`default` is the installation's server, for channels that name none."""

    def __init__(
        self, egress: Egress, default: MailServer | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._egress = egress
        self._default = default
        self._tls = tls or ssl.create_default_context()

    async def send(self, notice: OutgoingNotice) -> Came:
        server = self._server(notice.config)
        if server is None:
            return Rejected(
                None, "No mail server is set: the channel names none, and FOLIOT_SMTP_URL is not set."
            )
        sender = notice.config.get("sender") or server.sender
        if not sender:
            return Rejected(None, "The channel has no sender address.")
        if not notice.recipients:
            return Rejected(None, "The channel has no recipients.")
        try:
            message = build_email(notice, str(sender), notice.recipients)
        except (ValueError, IndexError) as error:
            return Rejected(None, f"The message has an invalid address: {error}")
        try:
            async with asyncio.timeout(WITHIN):
                # The installation's own server is the operator's choice; one that a workspace names is checked like any address.
                trusted = server is self._default
                addresses = await self._resolve(server, is_trusted=trusted)
                return await asyncio.to_thread(self._deliver, server, addresses, str(sender), notice, message)
        except AddressRefused as error:
            return Unanswered(error.public)
        except NoAnswer as error:
            return Unanswered(str(error))
        except TimeoutError:
            return Unanswered(f"The mail server did not answer within {WITHIN:g} s.")

    def _server(self, config: Mapping[str, Any]) -> MailServer | None:
        if not config.get("host"):
            return self._default
        security = str(config.get("security", "starttls"))
        return MailServer(
            str(config["host"]),
            int(config.get("port") or PORTS[security]),
            security,
            config.get("username"),
            config.get("password"),
        )

    async def _resolve(self, server: MailServer, *, is_trusted: bool) -> Sequence[str]:
        if is_trusted:
            return (server.host,)
        return await self._egress.approve(HttpTarget("http", server.host.lower(), server.port, "/"))

    def _deliver(
        self,
        server: MailServer,
        addresses: Sequence[str],
        sender: str,
        notice: OutgoingNotice,
        message: EmailMessage,
    ) -> Came:
        """Run in a thread: smtplib blocks. Each exchange has its own timeout, so that the thread ends."""
        try:
            with self._connect(server, addresses) as client:
                if server.username:
                    client.login(server.username, server.password or "")
                refused = client.send_message(message, parseaddr(sender)[1], list(notice.recipients))
        except smtplib.SMTPRecipientsRefused as error:
            return _all_refused(error.recipients)
        except smtplib.SMTPAuthenticationError as error:
            return Rejected(
                error.smtp_code, f"The mail server refused the login: {_words(error)}.", stops=True
            )
        except smtplib.SMTPResponseException as error:
            sentence = f"The mail server answered {error.smtp_code}: {_words(error)}."
            return Rejected(error.smtp_code, sentence) if error.smtp_code >= 500 else Unanswered(sentence)
        except smtplib.SMTPNotSupportedError as error:
            return Unanswered(f"The mail server does not support what the channel asks for: {error}")
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason or str(error)
            return Unanswered(f"No secure connection to the mail server: {why}.")
        except (OSError, smtplib.SMTPException) as error:
            return Unanswered(
                f"No answer from the mail server: {str(error)[:LONGEST_ANSWER] or type(error).__name__}."
            )
        count = len(notice.recipients) - len(refused)
        sentence = f"The mail server took it for {count} of {len(notice.recipients)} recipients"
        bad, left = _divide(refused)
        if left:  # such as greylisting: the others have it
            return PartlyAccepted(
                f"{sentence}: {_line(refused[left[0]])}", left, refused[left[0]][0], refused=bad
            )
        return Accepted(250, f"{sentence}.", refused=bad)

    def _connect(self, server: MailServer, addresses: Sequence[str]) -> smtplib.SMTP:
        last: OSError | None = None
        for address in addresses:
            try:
                client = _PinnedSmtp(server, str(address), self._tls)
            except OSError as error:
                last = error
                continue
            if server.security == "starttls":
                client.starttls(context=self._tls)
            return client
        raise last or OSError("it has no address")


class _PinnedSmtp(smtplib.SMTP):
    """Connect to this address only, whatever the name: the name is for TLS."""

    def __init__(self, server: MailServer, address: str, tls: ssl.SSLContext) -> None:
        self._server, self._address, self._pinned_tls = server, address, tls
        super().__init__(timeout=STEP_WITHIN, local_hostname="foliot")
        self._host = server.host  # the name that starttls checks
        code, answer = self.connect(server.host, server.port)
        if code != 220:
            self.close()
            raise smtplib.SMTPConnectError(code, answer)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = socket.create_connection((self._address, port), timeout)
        if self._server.security != "tls":
            return plain
        return self._pinned_tls.wrap_socket(plain, server_hostname=self._server.host)


def _all_refused(found: Mapping[str, tuple[int, bytes]]) -> Came:
    bad, left = _divide(found)
    code = max(answer[0] for answer in found.values())
    sentence = f"The mail server refused every recipient: {_line(next(iter(found.values())))}"
    if not bad:
        return Unanswered(sentence)
    return PartlyAccepted(sentence, left, refused=bad) if left else Rejected(code, sentence, refused=bad)


def _divide(found: Mapping[str, tuple[int, bytes]]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the addresses that were refused for good, with the answers, and those that were refused for now."""
    bad = tuple((address, _line(answer)) for address, answer in found.items() if answer[0] >= 500)
    return bad, tuple(address for address, answer in found.items() if answer[0] < 500)


def _line(answer: tuple[int, bytes]) -> str:
    code, text = answer
    return f"{code} {_printable(text)}"


def _words(error: smtplib.SMTPResponseException) -> str:
    found = error.smtp_error
    return _printable(found if isinstance(found, bytes) else str(found).encode())


def _printable(text: bytes) -> str:
    shown = text.decode("utf-8", "replace").replace("\n", " ")
    return "".join(filter(str.isprintable, shown))[:LONGEST_ANSWER]
