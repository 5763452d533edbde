"""A real server with sample workspaces, a real Chromium, and every address of the console, read from its list of routes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from foliot.web.console.pages import ROUTES
from foliot.web.console.session import COOKIE
from tests.stories.server_process import ServerProcess
from tools.sample_workspace import FUNCTIONS, ApiClient, SampleMaker, Samples, Text, plain_text

CHROMIUM = (
    os.environ.get("FOLIOT_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
)
needs_browser = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(900),
]
LONGEST_WAIT = 60_000  # milliseconds, for whatever a page is to show: a busy machine fails no test
PREFIX = "/console"
NOT_PAGES = {"/live", "/runs/{run_id}/log/stream"}  # streams
# Further views of a page, by its path. `{job_id}` and others are filled in as in the path.
VIEWS = {
    "/jobs": ["?q=status:paused", "?q=tag:nothing-has-this-tag", "?q=status:%20%28"],
    "/jobs/new": ["?copy={job_id}", "?kind=cron&when=30+2+*+*+*"],
    "/jobs/{job_id}": [
        "?at=2026-11-16T02:30:00Z",
        "?tab=figures",
        "?tab=changes",
        "?tab=definition",
        "?tab=alerts",
    ],
    "/jobs/bulk": ["?action=pause&all=1", "?action=tag&id={job_id}"],
    "/runs": ["?q=status:failed", "?q=status:waiting,ready,running", "?q=nonsense:%28"],
    "/runs/bulk": ["?action=retry&q=status:failed"],
    "/freezes": ["?reason=upgrade&after=latest"],
    "/agenda": ["?view=week", "?view=heat", "?view=list"],
    "/calendars/{calendar_id}": ["?year=2030"],
    "/start/schedule": ["?when=30+2+*+*+*"],
}


@dataclass(frozen=True, slots=True)
class Session:
    """One person signed in."""

    cookie: str
    workspace: str | None = None

    @property
    def cookies(self) -> dict[str, str]:
        chosen = {} if self.workspace is None else {"foliot_workspace": self.workspace}
        return {COOKIE: self.cookie, **chosen}


@dataclass
class Site:
    """The server, and what its workspaces hold by the slug of the workspace."""

    server: ServerProcess
    folder: Path
    workspaces: dict[str, Samples] = field(default_factory=dict)
    sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    addresses: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @cached_property
    def base(self) -> str:
        return self.server.wait_for_url()

    @cached_property
    def system_key(self) -> str:
        return (self.folder / "data" / "admin.key").read_text().strip()

    def workspace(self, slug: str, text: Text = plain_text) -> Samples:
        """Fill a new workspace with the samples, once."""
        if slug not in self.workspaces:
            self.add_workspace(slug)
            self.workspaces[slug] = SampleMaker(self.api(slug), text).fill()
        return self.workspaces[slug]

    def add_workspace(self, slug: str) -> None:
        self.api().post("/workspaces", {"slug": slug, "name": slug.title()})

    def api(self, workspace: str | None = None) -> ApiClient:
        return ApiClient(self.base, self.system_key, workspace)

    def session(self, workspace: str, role: str) -> Session:
        """Sign in once with the key of this role; `system` is the administrator of the installation."""
        known = self.sessions.get((workspace, role))
        if known is None:
            key = self.system_key if role == "system" else self.workspaces[workspace].keys[role]
            known = self.sign_in(key, workspace if role == "system" else None)
            self.sessions[workspace, role] = known
        return known

    def sign_in(self, key: str, workspace: str | None = None) -> Session:
        answer = httpx.post(f"{self.base}/console/sign-in", data={"key": key})
        assert answer.status_code == 303, answer.text
        return Session(answer.cookies[COOKIE], workspace)

    def http(self, session: Session) -> httpx.Client:
        """A new connection for each request: the server may close an idle one in the moment in which it is used again."""
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(base_url=self.base, cookies=session.cookies, timeout=60, limits=limits)

    @contextmanager
    def context(self, browser: Any, session: Session, **options: Any) -> Iterator[Any]:
        """A browser context of this person."""
        wanted = {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}, **options}
        context = browser.new_context(base_url=self.base, **wanted)
        context.set_default_timeout(LONGEST_WAIT)
        context.add_cookies(
            [
                {"name": name, "value": value, "url": f"{self.base}/console"}
                for name, value in session.cookies.items()
            ]
        )
        try:
            yield context
        finally:
            context.close()


@contextmanager
def open_site(folder: Path) -> Iterator[Site]:
    shutil.copy(FUNCTIONS, folder)
    site = Site(ServerProcess(folder / "data"), folder)
    try:
        yield site
    finally:
        site.server.end()


def paths(method: str) -> list[str]:
    """The path of every route that takes this method, as it is declared: /jobs/{job_id}."""
    return [
        route.path for route in ROUTES if method in (route.methods or {"GET"}) and route.path not in NOT_PAGES
    ]


def address(path: str, ids: dict[str, str]) -> str:
    """The path with its parameters filled in from the samples."""
    missing = [name for name in parameters(path) if name not in ids]
    assert not missing, f"tools/sample_workspace.py makes no example of {missing} for {path}"
    return PREFIX + re.sub(r"{(\w+)(?::\w+)?}", lambda found: ids[found[1]], path)


def parameters(path: str) -> list[str]:
    return re.findall(r"{(\w+)(?::\w+)?}", path)


def page_addresses(site: Site, session: Session, ids: dict[str, str]) -> list[str]:
    """Every page that this person may open, with its views: the GET routes that answer with a whole page."""
    known = site.addresses.get((session.cookie, ids["job_id"]))
    if known is None:
        known = site.addresses[session.cookie, ids["job_id"]] = _find_pages(site, session, ids)
    return known


def _find_pages(site: Site, session: Session, ids: dict[str, str]) -> list[str]:
    found = []
    with site.http(session) as http:
        for path in paths("GET"):
            for view in ("", *VIEWS.get(path, [])):
                wanted = address(path, ids) + re.sub(r"{(\w+)}", lambda each: ids[each[1]], view)
                answer = http.get(wanted)
                is_whole = answer.text.startswith("<!doctype html>")  # and not a part of a page
                if is_whole and answer.status_code != HTTPStatus.FORBIDDEN:
                    found.append(wanted)
    return found
