"""Sign in with OpenID Connect: authorization code with PKCE, state and nonce. A member is found by a verified e-mail address.

Why: docs/decisions/705-openid-connect.md
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from foliot.clock import monotonic
from foliot.egress.client import AddressRefused, Egress
from foliot.egress.connection import NoAnswer, OutgoingRequest
from foliot.egress.url import InvalidTarget, read_target
from foliot.web.console.id_token import BadToken, Expected, verify
from foliot.web.console.session import safe_next

log = logging.getLogger(__name__)
FLOW_COOKIE = "foliot_openid"
FLOW_PATH = "/console/sign-in"
FLOW_LASTS = 600  # seconds between leaving for the provider and coming back
FRESH = 3_600.0  # seconds that the provider's description and keys are used
DEADLINE = 10.0
MOST_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """Where people sign in, and the workspace whose members they are."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    workspace: str = "default"
    name: str = "OpenID Connect"
    public_url: str | None = None


class SignInRefused(Exception):
    """The provider or the token refused; the text is shown to the person."""


class OpenIdSignIn:
    """Talks to one provider. Keeps its description and keys for an hour; a sign-in itself lives in a cookie of the browser."""

    def __init__(self, provider: OpenIdProvider, egress: Egress) -> None:
        self.provider = provider
        self._egress = egress
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    async def begin(self, request: Request) -> Response:
        """Send the browser to the provider. State, nonce and verifier wait in a cookie that scripts cannot read."""
        described = await self._describe()
        flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        flow["next"] = safe_next(request.query_params.get("next"))
        challenge = hashlib.sha256(flow["verifier"].encode()).digest()
        asked = {
            "response_type": "code", "scope": "openid email", "client_id": self.provider.client_id,
            "redirect_uri": self._callback(request), "state": flow["state"], "nonce": flow["nonce"],
            "code_challenge": urlsafe_b64encode(challenge).rstrip(b"=").decode(), "code_challenge_method": "S256",
        }  # fmt: skip
        endpoint = self._endpoint(described, "authorization_endpoint")
        response = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}", 303)
        response.set_cookie(
            FLOW_COOKIE, quote(json.dumps(flow)), max_age=FLOW_LASTS, path=FLOW_PATH, httponly=True, samesite="lax",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    async def finish(self, request: Request, flow: Mapping[str, str], now: datetime) -> str:
        """Return the verified e-mail address of the person who came back, or raise SignInRefused."""
        given = request.query_params
        if not hmac.compare_digest(given.get("state", "").encode(), flow["state"].encode()):
            raise SignInRefused("This sign-in was not begun in this browser, or it took too long.")
        if "code" not in given:
            log.info("openid.refused", extra={"reason": given.get("error", "no code")[:100]})
            raise SignInRefused("The provider did not sign you in.")
        described = await self._describe()
        token = await self._token(described, request, given["code"], flow["verifier"])
        keys = await self._load("keys", self._endpoint(described, "jwks_uri"))
        expected = Expected(self.provider.issuer, self.provider.client_id, flow["nonce"], now)
        try:
            claims = verify(
                token, [each for each in keys.get("keys", []) if isinstance(each, dict)], expected
            )
        except BadToken as error:
            self._known.pop("keys", None)  # perhaps the provider has new ones
            log.warning("openid.bad_token", extra={"reason": str(error)})
            raise SignInRefused("The provider's answer could not be verified.") from None
        email = claims.get("email")
        if not isinstance(email, str) or claims.get("email_verified") is not True:
            raise SignInRefused("The provider has not verified your e-mail address.")
        return email

    async def _token(self, described: dict[str, Any], request: Request, code: str, verifier: str) -> str:
        pair = f"{quote(self.provider.client_id, safe='')}:{quote(self.provider.client_secret, safe='')}"
        form = {
            "grant_type": "authorization_code", "code": code, "code_verifier": verifier,
            "redirect_uri": self._callback(request), "client_id": self.provider.client_id,
        }  # fmt: skip
        headers = [("content-type", "application/x-www-form-urlencoded")]
        methods = described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if "client_secret_basic" in methods:
            headers.append(("authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        else:
            form["client_secret"] = self.provider.client_secret
        endpoint = self._endpoint(described, "token_endpoint")
        answer = await self._ask("POST", endpoint, headers, urlencode(form).encode())
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("The provider did not sign you in.")
        return token

    async def _describe(self) -> dict[str, Any]:
        issuer = self.provider.issuer
        described = await self._load("description", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if described.get("issuer") != issuer:
            raise SignInRefused("The provider names itself otherwise than FOLIOT_OIDC_ISSUER.")
        return described

    def _endpoint(self, described: dict[str, Any], name: str) -> str:
        """An address of the provider. Only a provider on plain HTTP may name one on plain HTTP."""
        found = str(described.get(name, ""))
        schemes = {"https", urlsplit(self.provider.issuer).scheme}
        if urlsplit(found).scheme not in schemes:
            raise SignInRefused("The provider does not describe itself.")
        return found

    async def _load(self, name: str, url: str) -> dict[str, Any]:
        read_at, kept = self._known.get(name, (0.0, {}))
        if not kept or monotonic() - read_at > FRESH:
            kept = await self._ask("GET", url)
            self._known[name] = (monotonic(), kept)
        return kept

    async def _ask(
        self,
        method: str,
        url: str,
        headers: list[tuple[str, str]] | None = None,
        content: bytes | None = None,
    ) -> dict[str, Any]:
        asked = [("accept", "application/json"), *(headers or [])]
        try:
            async with asyncio.timeout(DEADLINE):
                answer = await self._egress.send(
                    OutgoingRequest(method, read_target(url), asked, content), keep=MOST_BYTES
                )
            read = json.loads(answer.body) if answer.status == 200 and not answer.truncated else None
        except (AddressRefused, InvalidTarget, NoAnswer, TimeoutError, ValueError, RecursionError) as error:
            log.warning("openid.unreachable", extra={"url": url, "reason": str(error)[:300]})
            raise SignInRefused("The provider cannot be reached.") from None
        if not isinstance(read, dict):
            log.warning("openid.refused", extra={"url": url, "status": answer.status})
            raise SignInRefused("The provider did not sign you in.")
        return read

    def _callback(self, request: Request) -> str:
        base = self.provider.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        return f"{base.rstrip('/')}/console/sign-in/openid/callback"


def read_flow(raw: str) -> dict[str, str] | None:
    """The sign-in that the cookie holds; None where it holds none."""
    try:
        flow = json.loads(unquote(raw))
    except ValueError:
        return None
    names = ("state", "nonce", "verifier", "next")
    if not isinstance(flow, dict) or not all(
        isinstance(flow.get(each), str) and flow[each] for each in names
    ):
        return None
    return {each: flow[each] for each in names}
