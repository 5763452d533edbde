"""TLS: the certificate must be for the name that was written, though the connection goes to an address."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from foliot.clock import SystemClock
from foliot.domain.addresses import networks
from foliot.egress.client import Egress, NoAnswer, OutgoingRequest
from foliot.egress.url import read_target
from tests.egress.dns import name_server

pytestmark = pytest.mark.anyio
OURS = "127.0.0.2"


def certificate(folder: Path, name: str) -> Path:
    """Signed by itself, key and all in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), SystemClock().now()
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@asynccontextmanager
async def secure(chain: Path, asked: list[str | None]) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    context.sni_callback = lambda _, name, __: asked.append(name)
    async with await asyncio.start_server(serve, OURS, 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def test_the_certificate_is_checked_against_the_name_and_the_name_is_asked_for(tmp_path: Path) -> None:
    chain, asked = certificate(tmp_path, "shop.test"), list[str | None]()
    trusting = ssl.create_default_context(cafile=str(chain))
    async with (
        secure(chain, asked) as port,
        name_server({"shop.test": [[OURS]], "other.test": [[OURS]]}) as names,
    ):
        egress = Egress(networks((f"{OURS}/32",)), resolve=names.resolve, tls=trusting)
        answer = await egress.send(OutgoingRequest("GET", read_target(f"https://shop.test:{port}/")))
        assert (answer.status, asked) == (204, ["shop.test"])
        with pytest.raises(NoAnswer, match=r"other\.test") as failed:
            await egress.send(OutgoingRequest("GET", read_target(f"https://other.test:{port}/")))
        assert failed.value.code == "tls_failed"


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    async with (
        secure(certificate(tmp_path, "shop.test"), []) as port,
        name_server({"shop.test": [[OURS]]}) as names,
    ):
        egress = Egress(networks((f"{OURS}/32",)), resolve=names.resolve)
        with pytest.raises(NoAnswer, match="self-signed") as failed:
            await egress.send(OutgoingRequest("GET", read_target(f"https://shop.test:{port}/")))
    assert failed.value.code == "tls_failed"
