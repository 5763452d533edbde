"""Markup and script in every text that a user, a job or an agent may write stay text, in a real browser and on every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import httpx2 as httpx
import pytest

from tests.console.hostile import CORPUS, RAN, hostile_text
from tests.console.site import Site, address, needs_browser, page_addresses
from tools.sample_workspace import ApiClient, SampleMaker, Samples

pytestmark = needs_browser
# Elements and attributes that only a payload brings: pages have no inline script, style or handler, and load nothing from elsewhere.
PLANTED = """() => {
  const found = [];
  if (window.__ran) found.push("script ran");
  for (const each of document.querySelectorAll("*")) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith("on") || name === "srcdoc" || name === "style") found.push(`${each.localName} ${name}`);
      if (["href", "src", "action", "formaction"].includes(name)) {
        const url = new URL(value, location.href);
        if (!["http:", "https:", "mailto:"].includes(url.protocol)) found.push(`${each.localName} ${name}=${value}`);
        if (url.host.endsWith("evil.test")) found.push(`${each.localName} ${name}=${value}`);
      }
    }
    if (["iframe", "math", "base", "object", "embed", "style"].includes(each.localName)) found.push(each.localName);
    if (each.localName === "script" && !each.src) found.push("inline script");
  }
  return found;
}"""


# Parameters of addresses: those of forms, and those that choose a view.
REFLECTED = (
    ("q", "tag", "queue", "name", "reason", "when", "kind", "timezone", "description", "copy", "tags"),
    (
        "view",
        "date",
        "tab",
        "at",
        "since",
        "until",
        "cursor",
        "sort",
        "state",
        "action",
        "year",
        "next",
        "actor",
    ),
)
# Texts of the API that no page can show as they were sent, and why.
NOT_SHOWN = {
    r"/(expr|words|timezone|default_timezone|time_zone|q)$": "a language, or the name of a zone: refused unless it is valid",
    r"/(owner|agent|agents/\*|rooms/\*|config/room|target/host|target/server)$": "the name of something that exists",
    r"/recipients/\*$": "a mail address or a phone number: refused unless it is one",
    r"^/secrets /value$": "never leaves the server",
    r"^/imports /channels/\*$": "the name of a channel that exists",
    r"^/batch /writes/\*/if_match$": "is compared and not stored",
    r"^/(preview|freezes/preview|calendars/ics) ": "stores nothing",
    r"^/jobs/batch-delete ": "a filter",
    r"^/worker/(log|artifact|report) ": "a worker's own calls; the sample jobs log, store and raise these texts",
}


@pytest.fixture(scope="session")
def sent(site: Site) -> list[tuple[str, str, Any]]:
    """Fill a workspace in which every text is hostile. Return all requests."""
    api = site.api("hostile")
    name = hostile_text("hostile", 200)
    site.api().post("/workspaces", {"slug": "hostile", "name": name})
    made = site.workspaces["hostile"] = SampleMaker(api, hostile_text).fill()
    for text in CORPUS:
        body = {"name": text[:200], "type": "http", "config": {"url": "https://example.test"}, "tags": ["x"]}
        api.post(
            "/jobs", body | {"description": text, "schedule": {"kind": "manual"}, "payload": {text: text}}
        )
        api.post(f"/rooms/{made.ids['room_id']}/messages", {"text": text})
    send_other_texts(api, made)
    return [("POST", "/workspaces", {"name": name}), *api.sent]


@pytest.fixture(scope="session")
def hostile(sent: list[tuple[str, str, Any]]) -> str:
    """The workspace."""
    return "hostile"


def send_other_texts(api: ApiClient, made: Samples) -> None:
    """Write the texts that the samples do without."""
    ids = made.ids
    without_blanks = hostile_text("address", 300).replace(" ", "/").replace("\u2028", "")
    changed = api.post("/jobs", {
        "name": hostile_text("changed", 200), "type": "check_in", "schedule": {"words": "every day at 4am"},
        "concurrency_key": hostile_text("limit", 100),
    })["id"]  # fmt: skip
    api.call("PATCH", f"/jobs/{changed}", {"description": hostile_text("changed", 500)})
    api.post(f"/jobs/{changed}/revert", {"revision": 1, "note": hostile_text("note", 1_000)})
    api.post("/webhooks", {"name": hostile_text("hook", 100), "kind": "check_in", "job_id": changed})
    for name in ("first", "second"):
        lasting = {
            "type": "python",
            "config": {"call": "sample_functions:last"},
            "schedule": {"kind": "manual"},
        }
        job = api.post("/jobs", lasting | {"name": hostile_text(name, 200)})["id"]
        run = api.post(f"/jobs/{job}/run", {"input": {hostile_text("key", 500): "x"}})["id"]
        if name == "first":
            api.post(f"/runs/{run}/cancel", {"reason": hostile_text("cancel", 1_000)})
        else:
            api.post("/runs/bulk", {"action": "cancel", "ids": [run], "reason": hostile_text("bulk", 1_000)})
    many = {"ids": [changed], "action": "pause", "args": {"reason": hostile_text("all", 500)}}
    api.post("/jobs/bulk", many)
    api.post("/jobs/bulk", many | {"action": "tag", "args": {"tags": [hostile_text("tag", 60)]}})
    day = {"kind": "date", "date": "2030-12-25", "name": hostile_text("day", 200)}
    calendar = {"name": hostile_text("days", 100), "kind": "blackout", "rules": [day]}
    coverage = {"tags": [hostile_text("tag", 60)], "hosts": [hostile_text("host", 60)]}
    api.post("/calendars", calendar | {"scope": coverage})
    api.call("PUT", "/job-types/http", {"enabled": False, "reason": hostile_text("type", 500)})
    api.call("PUT", "/job-types/http", {"enabled": True, "reason": hostile_text("type", 500)})
    line = hostile_text("crontab", 500).replace("\u2028", "")
    api.post("/imports", {"source": "crontab", "file_name": hostile_text("file", 100), "text": f"0 9 * * * {line}"})  # fmt: skip
    webhook = {"url": f"https://example.test/{without_blanks}", "secret": {"secret": "crm-token"}}
    api.post("/rooms", {"name": hostile_text("other", 100), "key": "other", "webhook": webhook})
    slack = {"kind": "slack", "token": {"secret": "crm-token"}, "channel": hostile_text("channel", 100)}
    api.post("/channels", {"name": hostile_text("chat", 100), "config": slack})
    mail = {"kind": "email", "host": "mail.example.test", "sender": "a@example.test", "to": ["b@example.test"], "username": hostile_text("user", 300)}  # fmt: skip
    api.post("/channels", {"name": hostile_text("mail", 100), "config": mail})
    scope = {"tags": [hostile_text("tag", 60)], "queues": [hostile_text("queue", 60)]}
    api.post("/notification-rules", {
        "name": hostile_text("rule", 100), "events": ["run_failed"], "channels": [ids["channel_id"]], "scope": scope,
        "attachments": [hostile_text("file", 100)],
    })  # fmt: skip

    register_host(api, made)


def register_host(api: ApiClient, made: Samples) -> None:
    """Register a host with its worker, and add an instance to it."""
    key = api.post(
        "/keys", {"name": hostile_text("host", 100), "principal": made.ids["member_id"], "scopes": ["worker"]}
    )
    shape = {"name": "hostile", "description": hostile_text("type", 500), "config_schema": {"type": "object"}}
    host = {"name": hostile_text("host", 100), "instances": [hostile_text("instance", 100)]}
    hello = {"name": hostile_text("worker", 100), "version": CORPUS[0], "types": ["hostile"], "capacity": 1}
    worker = replace(api, key=key["secret"], workspace=None)
    found = worker.post("/worker/register", {**hello, "described": [shape], "host": host})
    api.post(f"/hosts/{found['host_id']}/instances", {"name": hostile_text("other", 100)})


def free_texts(description: dict[str, Any], shape: dict[str, Any], pointer: str = "") -> Iterator[str]:
    """Yield a pointer to each text of a shape that takes markup."""
    if "$ref" in shape:
        shape = description["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
    for each in (*shape.get("anyOf", ()), *shape.get("oneOf", ()), *shape.get("allOf", ())):
        yield from free_texts(description, each, pointer)
    for name, each in shape.get("properties", {}).items():
        yield from free_texts(description, each, f"{pointer}/{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(shape.get(key), dict):
            yield from free_texts(description, shape[key], f"{pointer}/*")
    is_free = shape.get("type") == "string" and not {"enum", "const", "format"} & shape.keys()
    if is_free and re.search(shape.get("pattern", ""), "<b>\"'"):
        yield pointer


def texts_of(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each, f"{pointer}/*")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from texts_of(each, f"{pointer}/{name}")


@pytest.mark.slow
def test_every_text_that_the_api_takes_is_hostile_there(site: Site, sent: list[tuple[str, str, Any]]) -> None:
    """A new field of the API comes with a hostile text of its own, or with the reason why no page shows it."""
    key = {"Authorization": f"Bearer {site.system_key}"}
    description = httpx.get(f"{site.base}/openapi.json", headers=key, timeout=60).json()
    described: dict[str, set[str]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body and method in {"post", "put"}:
                place = re.sub(r"/{\w+}$", "", path.removeprefix("/api/v1")) if method == "put" else path[7:]
                described.setdefault(place, set()).update(free_texts(description, body["schema"]))
    wrote = {
        (re.sub(r"(?<=/)[0-9a-f-]{36}", "*", place), pointer)
        for method, path, body in sent
        for place in ((path, path.rpartition("/")[0]) if method == "PUT" else (path,))
        for pointer, text in texts_of(body)
        if "<" in text or RAN in text
    }
    missing = [
        f"{place} {pointer}"
        for place, pointers in described.items()
        for pointer in sorted(pointers)
        if (re.sub(r"{\w+}", "*", place), pointer) not in wrote
        and not any(re.search(pattern, f"{place} {pointer}") for pattern in NOT_SHOWN)
    ]
    assert missing == []


@pytest.mark.parametrize("language", ["en", "es"])
def test_hostile_texts_stay_text_on_every_page(site: Site, browser: Any, hostile: str, language: str) -> None:
    session, samples = site.session(hostile, "admin"), site.workspaces[hostile]
    pages = page_addresses(site, session, samples.ids)
    wanted = [*pages]
    wanted += [f"/console/runs/{run}" for run in samples.runs.values()]
    wanted += [f"/console/jobs/{job}" for job in samples.jobs.values()]
    wanted += [
        "/console/%3Cscript%3Ewindow.__ran=1%3C/script%3E",
        "/console/jobs/%22%3E%3Cimg%20src=x%20onerror=x%3E",
    ]
    if language == "en":
        queries = [urlencode(dict.fromkeys(names, CORPUS[5] + CORPUS[9])) for names in REFLECTED]
        paths = dict.fromkeys(each.partition("?")[0] for each in pages)
        wanted += [f"{path}?{query}" for path in paths for query in queries]
    problems: list[str] = []
    with site.context(browser, session) as context:
        context.add_cookies([{"name": "foliot_language", "value": language, "url": f"{site.base}/console"}])
        page = context.new_page()

        def on_dialog(dialog: Any) -> None:
            problems.append(f"{page.url}: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", on_dialog)
        page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda said: problems.append(f"{page.url}: {said.text}") if "Policy" in said.text else None,
        )
        page.on(
            "request",
            lambda sent: problems.append(f"{page.url}: {sent.url}") if "evil.test" in sent.url else None,
        )
        for each in wanted:
            page.goto(each)
            problems += [f"{each}: {found}" for found in page.evaluate(PLANTED)]
    assert problems == []


def test_the_palette_shows_hostile_names_as_text(site: Site, browser: Any, hostile: str) -> None:
    with site.context(browser, site.session(hostile, "admin")) as context:
        page = context.new_page()
        page.goto("/console/")
        page.keyboard.press("Control+k")
        page.keyboard.type("<")
        page.locator("#palette li").first.wait_for()
        assert page.evaluate(PLANTED) == []


def test_an_artifact_with_script_never_runs_it_here(site: Site, browser: Any, hostile: str) -> None:
    """It is a download, or it is shown in a sandbox without script; never a page of this site."""
    samples = site.workspaces[hostile]
    with site.http(site.session(hostile, "viewer")) as http:
        run = samples.runs["nightly invoices"]
        names = [each["name"] for each in site.api(hostile).items(f"/runs/{run}/artifacts")]
        hostile_names = [name for name in names if RAN in name]
        assert hostile_names
        for name in names:
            answer = http.get(
                address("/runs/{run_id}/artifacts/", {"run_id": run})
                + name.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
            )
            assert answer.status_code == 200, name
            assert answer.headers["content-disposition"].startswith("attachment")
            assert "\n" not in answer.headers["content-disposition"]
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_another_site_cannot_show_a_page_in_a_frame(site: Site, browser: Any) -> None:
    with site.context(browser, site.session("acme", "viewer")) as context:
        page = context.new_page()
        page.route(
            "http://evil.test/",
            lambda route: route.fulfill(
                content_type="text/html", body=f"<iframe src='{site.base}/console/'></iframe>"
            ),
        )
        page.goto("http://evil.test/")
        frame = page.frames[1]
        frame.wait_for_load_state()
        assert "Foliot" not in frame.content()
