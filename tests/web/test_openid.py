"""Sign in with OpenID Connect, against a provider that speaks real HTTP and signs real tokens."""

from __future__ import annotations

import hashlib
import json
import threading
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2 as httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from foliot.domain.addresses import networks
from foliot.egress.client import Egress
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.web.console.openid import FLOW_COOKIE, OpenIdProvider, OpenIdSignIn
from foliot.web.console.session import COOKIE
from tests.web.conftest import ApiHarness, open_api

pytestmark = pytest.mark.anyio
EMAIL = "ana@example.com"


def encoded(value: bytes | dict[str, Any]) -> str:
    raw = json.dumps(value).encode() if isinstance(value, dict) else value
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8))


class Provider:
    """An OpenID provider on a port of this machine. `claims` and `head` change what the next tokens say."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.key = self.signing_key = rsa.generate_private_key(65537, 2048)
        self.claims: dict[str, Any] = {}
        self.head: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                provider.answer(self, *provider.token(dict(parse_qsl(body)), self.headers["authorization"]))

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def get(self, request: BaseHTTPRequestHandler) -> None:
        address = urlsplit(request.path)
        if address.path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            described = {name: f"{self.issuer}/{path}" for name, path in names.items()}
            self.answer(request, 200, {"issuer": self.issuer, **described})
        elif address.path == "/keys":
            public = self.key.public_key().public_numbers()
            key = {"kty": "RSA", "kid": "k1", "use": "sig", "n": number(public.n), "e": number(public.e)}
            self.answer(request, 200, {"keys": [key]})
        else:
            asked = dict(parse_qsl(address.query))
            code = f"code-{len(self.codes)}"
            self.codes[code] = asked
            request.send_response(302)
            back = urlencode({"code": code, "state": asked["state"]})
            request.send_header("Location", f"{asked['redirect_uri']}?{back}")
            request.end_headers()

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(form["code"], None)  # a code counts once
        challenge = encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        pair = b64decode(authorization.removeprefix("Basic ")).decode()
        if asked is None or asked["code_challenge"] != challenge or pair != "foliot:hush":
            return 400, {"error": "invalid_grant"}
        if form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(self.clock.now().timestamp())
        claims = {
            "iss": self.issuer, "aud": "foliot", "sub": "1", "exp": now + 300, "iat": now, "nonce": asked["nonce"],
            "email": EMAIL, "email_verified": True, **self.claims,
        }  # fmt: skip
        signed = f"{encoded({'alg': 'RS256', 'kid': 'k1', **self.head})}.{encoded(claims)}"
        signature = self.signing_key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return 200, {
            "id_token": f"{signed}.{encoded(signature)}",
            "access_token": "x",
            "token_type": "Bearer",
        }

    def answer(self, request: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(raw)))
        request.end_headers()
        request.wfile.write(raw)


@pytest.fixture
def provider(clock: ManualClock) -> Iterator[Provider]:
    made = Provider(clock)
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
async def api(database: Database, provider: Provider) -> AsyncIterator[ApiHarness]:
    egress = Egress(networks(("127.0.0.0/8",)))
    known = OpenIdProvider(provider.issuer, "foliot", "hush", workspace="acme", name="Corp")
    async with open_api(database, openid=OpenIdSignIn(known, egress)) as made:
        yield made
    egress.close()


async def add_member(api: ApiHarness) -> None:
    body = {"kind": "user", "name": "ana", "role": "editor", "email": "Ana@example.com"}
    answer = await api.request("POST", "/members", role="admin", json=body)
    assert answer.status_code == 201, answer.text


async def come_back(api: ApiHarness, next_page: str = "/console/jobs") -> httpx.Response:
    """Follow the way to the provider and back, as a browser does."""
    begun = await api.http.get("/console/sign-in/openid", params={"next": next_page})
    assert begun.status_code == 303, begun.text
    assert "HttpOnly" in begun.headers["set-cookie"]
    async with httpx.AsyncClient() as outside:
        sent = await outside.get(begun.headers["location"])
    back = urlsplit(sent.headers["location"])
    return await api.http.get(f"{back.path}?{back.query}")


async def test_a_member_signs_in_and_comes_back_to_the_page(
    api: ApiHarness, provider: Provider, clock: ManualClock
) -> None:
    await add_member(api)
    clock.advance(timedelta(seconds=1))
    assert "Sign in with Corp" in (await api.http.get("/console/sign-in")).text
    answer = await come_back(api)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/console/jobs"
    page = await api.http.get("/console/", headers={"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}"})
    assert page.status_code == 200
    assert "ana" in page.text
    entries = (await api.request("GET", "/audit", role="admin")).json()["items"]
    assert entries[0]["action"] == "member.signed_in"


async def test_nobody_comes_in_without_a_member_or_a_verified_address(
    api: ApiHarness, provider: Provider
) -> None:
    assert (await come_back(api)).status_code == 403
    await add_member(api)
    provider.claims = {"email_verified": False}
    answer = await come_back(api)
    assert answer.status_code == 403
    assert COOKIE not in answer.cookies


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"aud": "another"},
        {"iss": "https://evil.test"},
        {"exp": 1},
        {"iat": 9e9},
        {"azp": "x"},
    ],
)
async def test_a_token_for_another_sign_in_is_refused(
    api: ApiHarness, provider: Provider, claims: dict[str, Any]
) -> None:
    await add_member(api)
    provider.claims = claims
    answer = await come_back(api)
    assert answer.status_code == 403
    assert "could not be verified" in answer.text


@pytest.mark.parametrize("head", [{"alg": "none"}, {"alg": "HS256"}, {"kid": "unknown"}])
async def test_a_token_that_no_key_of_the_provider_signed_is_refused(
    api: ApiHarness, provider: Provider, head: dict[str, Any]
) -> None:
    await add_member(api)
    provider.head = head
    assert (await come_back(api)).status_code == 403
    provider.head = {}
    provider.signing_key = rsa.generate_private_key(65537, 2048)
    assert (await come_back(api)).status_code == 403


async def test_another_browser_cannot_finish_the_sign_in(api: ApiHarness, provider: Provider) -> None:
    """A link with a stranger's code would sign the victim in as the stranger."""
    await add_member(api)
    begun = await api.http.get("/console/sign-in/openid")
    async with httpx.AsyncClient() as outside:
        sent = await outside.get(begun.headers["location"])
    back = urlsplit(sent.headers["location"])
    api.http.cookies.clear()
    answer = await api.http.get(f"{back.path}?{back.query}")
    assert answer.status_code == 403
    assert COOKIE not in answer.cookies
    odd = await api.http.get(f"{back.path}?{back.query}", headers={"Cookie": f"{FLOW_COOKIE}=%7B%7D"})
    assert odd.status_code == 403


async def test_without_a_provider_there_is_no_such_page(shared_api: ApiHarness) -> None:
    answer = await shared_api.http.get("/console/sign-in/openid")
    assert answer.status_code in (303, 404)
    assert "Sign in with" not in (await shared_api.http.get("/console/sign-in")).text
