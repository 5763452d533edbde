"""Spanish on every page: no text stays English unless a person, a job or the API wrote it."""

from __future__ import annotations

import json

import pytest

from foliot.web.console.text import catalogue
from tests.console.html import Page
from tests.console.site import Site, page_addresses

LISTS = (
    "jobs", "runs", "freezes", "incidents", "rooms", "calendars", "members", "keys", "channels", "secrets", "limits", "queues", "workers",
    "hosts", "job-types", "audit?limit=200", "agenda", "stats", "deliveries", "notification-rules", "me",
)  # fmt: skip


def written_by_others(site: Site, workspace: str) -> str:
    """Everything that the API says of the workspace, as one text."""
    api, samples = site.api(workspace), site.workspaces[workspace]
    details = [
        f"jobs/{job}{part}"
        for job in samples.jobs.values()
        for part in ("", "/explain", "/next", "/revisions")
    ]
    details += [
        f"runs/{run}{part}"
        for run in samples.runs.values()
        for part in ("", "/explain", "/logs?limit=1000", "/attempts")
    ]
    details += [f"rooms/{samples.ids['room_id']}/messages"]
    answers = [api.call("GET", f"/{path}") for path in (*LISTS, *details)]
    return " ".join(json.dumps(answers, ensure_ascii=False).replace("\\n", " ").replace('\\"', '"').split())


@pytest.mark.slow
def test_no_page_holds_an_english_text_of_the_catalogue(site: Site) -> None:
    spanish = catalogue("es")
    english = {text for text, translated in spanish.items() if text != translated and "{" not in text}
    session, ids = site.session("acme", "admin"), site.workspaces["acme"].ids
    data = written_by_others(site, "acme")
    wrong: dict[str, str] = {}
    with site.http(session) as http:
        http.cookies.set("foliot_language", "es", path="/console", domain="127.0.0.1")
        for each in page_addresses(site, session, ids):
            page = Page(each, http.get(each).text)
            wrong |= {text: each for text in page.texts if text in english and text not in data}
    assert wrong == {}
