"""Every page for people who see little, use no mouse, no script or large letters: axe, keyboard, zoom, no script, print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.site import Session, Site, address, needs_browser, page_addresses, parameters, paths

pytestmark = needs_browser
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
PARTS = 6  # so that two processes share the work evenly
SEVERE = {"serious", "critical"}
CONTRAST = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
OPEN_DETAILS = "document.querySelectorAll('details').forEach(each => each.open = true)"
# All boxes and menus of a page as parts of it: axe looks only at what is shown, and not at what others cover.
# Those of the shell are the same on every page: one page opens them, too.
OPEN_BOXES = """withShell => [...document.querySelectorAll("[popover]:not(aside)")].filter(
  each => withShell || !["person", "keys"].includes(each.id)
).map(each => {
  each.removeAttribute("popover");
  each.dataset.opened = "yes";
}).length"""
Finding = tuple[str, str]


def addresses(site: Site) -> list[str]:
    """All pages of an administrator, and those of runs and jobs in further states."""
    samples = site.workspaces["acme"]
    more = [f"/console/runs/{samples.runs[name]}" for name in ("sync customers", "copy warehouse", "waiting")]
    more += [f"/console/jobs/{samples.jobs[name]}" for name in ("newsletter", "first try", "send invoices")]
    return [
        *page_addresses(site, site.session("acme", "admin"), samples.ids),
        *more,
        "/console/no-such-page",
    ]


def find(axe: Any, page: Any, address: str, look: str, **options: Any) -> Iterator[Finding]:
    """Yield what axe finds on the page as it looks now."""
    for found in axe.run(page, **options).response["violations"]:
        if found["impact"] in SEVERE:
            nodes = [f"{node['html'][:160]} {node['failureSummary'][:200]}" for node in found["nodes"][:2]]
            yield f"{found['id']}: {nodes}", f"{address} ({look})"


def look_at(page: Any, wanted: list[str]) -> dict[str, list[str]]:
    """Open each page once, and look at it in light, in dark, at 360 px, and with its boxes open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    findings: dict[str, list[str]] = {}
    for each in wanted:
        page.set_viewport_size(WIDE)
        page.emulate_media(color_scheme="light")
        page.goto(each)
        page.evaluate(OPEN_DETAILS)
        found = [*find(axe, page, each, "light")]
        page.emulate_media(color_scheme="dark")  # only colours differ
        found += find(axe, page, each, "dark", options=CONTRAST)
        page.set_viewport_size(NARROW)
        page.emulate_media(color_scheme="light")
        found += find(axe, page, each, "narrow")
        if page.evaluate(OPEN_BOXES, each == "/console/"):
            found += find(axe, page, each, "boxes", context="[data-opened]")
        for what, where in found:
            findings.setdefault(what, []).append(where)
    return findings


def sentences(findings: dict[str, list[str]]) -> str:
    return "\n\n".join(f"{found}\n  on {where[:4]}" for found, where in findings.items())


@pytest.mark.parametrize("part", range(PARTS))
def test_axe_finds_nothing_serious_on_any_page_in_light_in_dark_and_at_360_px(
    site: Site, browser: Any, part: int
) -> None:
    with site.context(browser, site.session("acme", "admin")) as context:
        findings = look_at(context.new_page(), addresses(site)[part::PARTS])
    assert not findings, sentences(findings)


def test_axe_finds_nothing_serious_on_empty_pages_and_on_those_of_others(site: Site, browser: Any) -> None:
    """A workspace without anything, the pages of the installation's administrator, and the page to sign in."""
    site.add_workspace("bare")
    session, ids = site.session("bare", "system"), site.workspaces["acme"].ids
    with site.http(session) as http:
        empty = [address(path, ids) for path in paths("GET") if not parameters(path)]
        empty += [address(path, ids) for path in paths("GET") if parameters(path) == ["slug"]]
        empty = [each for each in empty if http.get(each).text.startswith("<!doctype html>")]
    with site.context(browser, session) as context:
        findings = look_at(context.new_page(), empty)
    with site.context(browser, Session("")) as context:
        findings |= look_at(context.new_page(), ["/console/sign-in", "/console/join"])
    assert not findings, sentences(findings)


# Text that its box hides: neither wrapped, nor scrollable, nor shortened with an ellipsis.
CUT = """() => [...document.querySelectorAll("main *, aside *, header *")].filter(each => {
  const style = getComputedStyle(each);
  return ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis" && !each.closest("svg")
    && each.clientWidth > 4 && each.scrollWidth > each.clientWidth + 2;
}).map(each => each.outerHTML.slice(0, 120))"""
SIZES = {
    "at 360 px": NARROW,
    "at 200 %": {"width": 640, "height": 450},  # a screen of 1280 px, as the browser lays it out at this zoom
    "on a wide screen": {"width": 1920, "height": 1000},
}


@pytest.mark.parametrize("part", [0, 1])
def test_no_page_scrolls_sideways_or_hides_text_at_any_size(site: Site, browser: Any, part: int) -> None:
    wrong = []
    with site.context(browser, site.session("acme", "admin"), device_scale_factor=2) as context:
        page = context.new_page()
        for each in addresses(site)[part::2]:
            page.goto(each)
            for name, size in SIZES.items():
                page.set_viewport_size(size)
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    wrong.append(f"{each} is wider than the screen {name}")
                # The text of a field scrolls within it.
                cut = [found for found in page.evaluate(CUT) if not found.startswith("<input")]
                wrong += [f"{each} cuts {found} {name}" for found in cut]
    assert wrong == []


def test_every_page_is_read_without_script(site: Site, browser: Any) -> None:
    """With script, a page may say more; without it, nothing of the content is missing."""
    with (
        site.context(browser, site.session("acme", "admin")) as scripted,
        site.context(browser, site.session("acme", "admin"), java_script_enabled=False) as plain,
    ):
        with_script, without = scripted.new_page(), plain.new_page()
        for each in addresses(site):
            with_script.goto(each)
            assert without.goto(each).status in {200, 404} or each == "/console/join", (
                each
            )  # it needs an invite
            headings = [page.locator("main h1, main h2").all_inner_texts() for page in (with_script, without)]
            assert headings[0] == headings[1], each
            assert without.locator("h1").count() == 1, each


def test_single_actions_work_without_script(site: Site, browser: Any) -> None:
    with site.context(browser, site.session("acme", "editor"), java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/console/jobs/new")
        page.get_by_label("Name", exact=True).fill("without script")
        page.get_by_label("Schedule", exact=True).fill("every hour")
        page.get_by_label("URL").fill(f"{site.base}/healthz")
        page.get_by_role("button", name="Create job").click()
        assert page.locator("h1").inner_text() == "without script"
        page.get_by_role("button", name="Pause", exact=True).first.click()
        page.get_by_label("Reason").first.fill("no script needed")
        page.locator("#pause button.primary").click()
        assert "no script needed" in page.locator("#head").inner_text()
        page.get_by_role("button", name="Resume", exact=True).first.click()
        assert "no script needed" not in page.locator("#head").inner_text()


# The control that has the focus, and whether it or the box around it shows it.
FOCUSED = """() => {
  const each = document.activeElement, isMarked = element => {
    const style = getComputedStyle(element);
    return style.outlineStyle !== "none" || style.boxShadow !== "none";
  };
  return {
    name: (each.labels?.[0]?.innerText || each.getAttribute("aria-label") || each.innerText || "").trim(),
    isShown: each === document.body || isMarked(each) || isMarked(each.parentElement),
  };
}"""


def tab_to(page: Any, name: str) -> None:
    """Press Tab until the control of this name has the focus. Each control on the way shows that it has it."""
    seen = []
    for _ in range(150):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        assert found["isShown"], f"{found['name']} does not show its focus"
        seen.append(found["name"])
        if found["name"].startswith(name):
            return
    raise AssertionError(f"Tab does not reach {name!r}: {seen}")


def test_a_job_is_created_and_paused_by_keyboard_alone(site: Site, browser: Any) -> None:
    with site.context(browser, site.session("acme", "editor")) as context:
        page = context.new_page()
        page.goto("/console/jobs")
        tab_to(page, "Skip to content")
        tab_to(page, "New job")
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs/new*")
        page.get_by_label("Name", exact=True).wait_for()
        page.keyboard.type("typed")  # the first field has the focus
        tab_to(page, "Schedule")
        page.keyboard.press("Control+a")
        page.keyboard.type("every 2 hours")
        tab_to(page, "URL")
        page.keyboard.type(f"{site.base}/healthz")
        page.keyboard.press("Enter")
        page.locator("h1", has_text="typed").wait_for()
        tab_to(page, "Pause")
        page.keyboard.press("Enter")
        tab_to(page, "Reason")
        page.keyboard.type("lunch")
        page.keyboard.press("Enter")
        page.locator("#head", has_text="lunch").wait_for()


def test_a_printed_page_holds_its_content_and_no_controls(site: Site, browser: Any) -> None:
    with site.context(browser, site.session("acme", "admin"), color_scheme="dark") as context:
        page = context.new_page()
        page.emulate_media(media="print", color_scheme="dark")
        for each in addresses(site):
            page.goto(each)
            assert page.locator("h1").is_visible(), each
            assert not page.locator("aside.side nav").is_visible(), each
            assert not page.locator("#live-toggle").is_visible(), each
        assert len(page.pdf()) > 1_000
