"""Sign in and out. A session is an API key of its own that expires after twelve hours.

The key is made with the key that the person presents, so it can do no more, it ends when that key's family is revoked, and
administrators see it in the list of keys. The browser keeps it in a cookie that scripts cannot read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from foliot.clock import Clock, SystemClock
from foliot.services import Database
from foliot.web.console.api import Api, ApiRefusal

COOKIE = "foliot_session"
WORKSPACE_COOKIE = "foliot_workspace"
LASTS = timedelta(hours=12)
LINK_LASTS = 600.0  # seconds
LINKS_FOLDER = "sign-in-links"  # in the data directory
HOME = "/console/"


class SignInLinks:
    """One-time links that `foliot serve` prints on a loopback address. Each signs in once, within ten minutes.

    A link is a file in the data directory, named by the hash of its token: the node makes it, and the HTTP process that
    removes the file has redeemed it.
    """

    def __init__(self, data_dir: Path | None = None, clock: Clock | None = None) -> None:
        self._folder = None if data_dir is None else data_dir / LINKS_FOLDER
        self._clock = clock or SystemClock()

    def make(self, key: str) -> str | None:
        """Return the token of a new link for this key, or None where the data directory cannot be written."""
        if self._folder is None:
            return None
        token = secrets.token_urlsafe(24)
        until = self._clock.now() + timedelta(seconds=LINK_LASTS)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for link in self._folder.iterdir():
                if self._read(link)[1] <= self._clock.now():
                    link.unlink(missing_ok=True)
            descriptor = os.open(
                self._folder / _hash(token), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
            )
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(f"{until.isoformat()} {key}\n")
        except OSError:
            return None
        return token

    def redeem(self, token: str) -> str | None:
        if self._folder is None:
            return None
        link = self._folder / _hash(token)
        try:
            key, until = self._read(link)
            link.unlink()  # of two processes that redeem it at once, one finds it gone
        except OSError:
            return None
        return key if key and self._clock.now() < until else None

    @staticmethod
    def _read(link: Path) -> tuple[str, datetime]:
        until, _, key = link.read_text(encoding="ascii").strip().partition(" ")
        return key, datetime.fromisoformat(until)


class NotSignedIn(Exception):
    """No session, or one that has ended."""


def now_of(request: Request) -> datetime:
    """This instant by the clock that names the instants of transactions."""
    database: Database = request.app.state.database
    return (database.clock or SystemClock()).now()


def api_of(request: Request) -> Api:
    key = request.cookies.get(COOKIE)
    if not key:
        raise NotSignedIn
    return Api(request.app.state.api, request, key, request.cookies.get(WORKSPACE_COOKIE))


def visitor_api(request: Request, key: str = "") -> Api:
    """The API in the key's own workspace, whatever an earlier session chose."""
    return Api(request.app.state.api, request, key, None)


async def open_session(request: Request, response: Response, presented: str) -> None:
    """Make the session's key and set the cookie. Raises ApiRefusal where the presented key is not valid."""
    api = visitor_api(request, presented)
    me: dict[str, Any] = await api.me()
    if me.get("role") is None:
        raise ApiRefusal(403, {"detail": "This key is for workers. Sign in with the key of a person."})
    expires = now_of(request) + LASTS
    if (ends := me["key"]["expires_at"]) and ends < expires.isoformat():
        until: str = ends
    else:
        until = expires.isoformat()
    body = {"name": "Console session", "expires_at": until, "session": True}
    made = await api.call("POST", "/keys", body)
    keep_session(request, response, made["secret"])


def keep_session(request: Request, response: Response, secret: str) -> None:
    """Set the cookie of a new session. The one before, and the workspace chosen in it, are gone."""
    response.set_cookie(COOKIE, secret, max_age=int(LASTS.total_seconds()), **_attributes(request))
    if WORKSPACE_COOKIE in request.cookies:  # chosen in an earlier session, perhaps with another key
        response.delete_cookie(WORKSPACE_COOKIE, path="/console")


async def close_session(request: Request, response: Response) -> None:
    """Revoke the session's key, so that a copied cookie is worth nothing."""
    try:
        api = api_of(request)
        me = await api.me()
        await api.call("POST", f"/keys/{me['key']['id']}/revoke")
    except (ApiRefusal, NotSignedIn):
        pass
    response.delete_cookie(COOKIE, path="/console")


def csrf_token(request: Request) -> str:
    """Derived from the session's key: nobody without the cookie can make it, and nothing is stored."""
    key = request.cookies.get(COOKIE, "")
    return hmac.new(key.encode(), b"foliot console form", hashlib.sha256).hexdigest()


def is_same_origin(request: Request) -> bool:
    """Browsers state where a form post comes from. A post from another site is refused whatever it carries."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False


def has_csrf_token(request: Request, given: str) -> bool:
    return hmac.compare_digest(given.encode(), csrf_token(request).encode())


def safe_next(target: str | None) -> str:
    """Only a page of this console: a link elsewhere would be an open redirect."""
    if (
        not target
        or not target.startswith("/console")
        or target.startswith("//")
        or "\\" in target
        or "\n" in target
    ):
        return HOME
    return target


def _attributes(request: Request) -> dict[str, Any]:
    return {"path": "/console", "httponly": True, "samesite": "lax", "secure": request.url.scheme == "https"}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
