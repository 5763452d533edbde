"""Markup and script in every text that a user, a job or an agent may write stay text, in a real browser and on every page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.console.hostile import CORPUS, RAN, hostile_text
from tests.console.site import Site, address, needs_browser, page_addresses

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


@pytest.fixture(scope="module")
def hostile(site: Site) -> str:
    """A workspace in which every text is hostile, and a job, a message and a log line for each text of the corpus."""
    made = site.workspace("hostile", hostile_text)
    api = site.api("hostile")
    for text in CORPUS:
        body = {"name": text[:200], "type": "http", "config": {"url": "https://example.test"}, "tags": ["x"]}
        api.post(
            "/jobs", body | {"description": text, "schedule": {"kind": "manual"}, "payload": {text: text}}
        )
        api.post(f"/rooms/{made.ids['room_id']}/messages", {"text": text})
    return "hostile"


@pytest.mark.parametrize("language", ["en", pytest.param("es", marks=pytest.mark.slow)])
def test_hostile_texts_stay_text_on_every_page(site: Site, browser: Any, hostile: str, language: str) -> None:
    session, samples = site.session(hostile, "admin"), site.workspaces[hostile]
    wanted = page_addresses(site, session, samples.ids)
    wanted += [f"/console/runs/{run}" for run in samples.runs.values()]
    wanted += [f"/console/jobs/{job}" for job in samples.jobs.values()]
    wanted += [
        f"/console/jobs?q={part}" for part in ("%3Cscript%3E", "%22%3E%3Csvg onload=x%3E", "javascript:x")
    ]
    wanted += [
        "/console/%3Cscript%3Ewindow.__ran=1%3C/script%3E",
        "/console/jobs/%22%3E%3Cimg%20src=x%20onerror=x%3E",
    ]
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
