"""An authority for one test, certificates that it signs, and a proxy that speaks TLS before a plain server."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SINCE, UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Authority:
    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls, folder: Path, name: str = "test authority") -> Authority:
        folder.mkdir(exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        own = _named(name)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = (
            _begun(own, own, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        made = cls(folder, key, certificate)
        made.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return made

    @property
    def file(self) -> Path:
        """Its certificate, for those who trust it."""
        return self.folder / "authority.pem"

    def server(self, name: str) -> ssl.SSLContext:
        """For a server of this name or address."""
        key = ec.generate_private_key(ec.SECP256R1())
        known_as: x509.GeneralName
        try:
            known_as = x509.IPAddress(ip_address(name))
        except ValueError:
            known_as = x509.DNSName(name)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _begun(_named(name), self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName([known_as]), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        chain = self.folder / f"{name}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


@contextmanager
def in_front_of(port: int, context: ssl.SSLContext) -> Iterator[str]:
    """The address of a proxy that passes on what comes by TLS, both ways, for as long as this block lasts."""
    opened: Future[tuple[int, Callable[[], None]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_pass_on(port, context, opened)), daemon=True)
    thread.start()
    own_port, stop = opened.result(timeout=10)
    try:
        yield f"https://127.0.0.1:{own_port}"
    finally:
        stop()
        thread.join()


async def _pass_on(
    port: int, context: ssl.SSLContext, opened: Future[tuple[int, Callable[[], None]]]
) -> None:
    loop, stopping, lines = asyncio.get_running_loop(), asyncio.Event(), set[asyncio.Task[None]]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.current_task()
        assert line is not None
        lines.add(line)
        theirs, ours = await asyncio.open_connection("127.0.0.1", port)
        ends = [asyncio.create_task(_pump(reader, ours)), asyncio.create_task(_pump(theirs, writer))]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
            for end in (ours, writer):
                end.transport.abort()
            lines.discard(line)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    opened.set_result((server.sockets[0].getsockname()[1], lambda: _soon(loop, stopping.set)))
    await stopping.wait()
    server.close()
    for line in list(lines):
        line.cancel()
    await asyncio.gather(*lines, return_exceptions=True)
    await asyncio.sleep(0)  # for what was aborted to be closed


def _soon(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    loop.call_soon_threadsafe(do)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number(), SINCE, UNTIL
    )
