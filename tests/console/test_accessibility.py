"""Every page for people who see little, use no mouse, no script or large letters: axe, keyboard, zoom, no script, print."""

from __future__ import annotations

from typing import Any

import pytest

from tests.console.site import Site, needs_browser, page_addresses

pytestmark = needs_browser
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
}
SEVERE = {"serious", "critical"}


def addresses(site: Site, role: str = "admin") -> list[str]:
    """All pages, and those of runs and jobs in further states."""
    samples = site.workspaces["acme"]
    more = [f"/console/runs/{samples.runs[name]}" for name in ("sync customers", "copy warehouse", "waiting")]
    more += [f"/console/jobs/{samples.jobs[name]}" for name in ("newsletter", "first try", "send invoices")]
    return [*page_addresses(site, site.session("acme", role), samples.ids), *more, "/console/no-such-page"]


@pytest.mark.parametrize("look", ["light", pytest.param("dark", marks=pytest.mark.slow), "narrow"])
def test_axe_finds_nothing_serious_on_any_page(site: Site, browser: Any, look: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    findings: dict[str, list[str]] = {}
    with site.context(browser, site.session("acme", "admin"), **LOOKS[look]) as context:
        page = context.new_page()
        for each in addresses(site):
            page.goto(each)
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            for found in axe.run(page).response["violations"]:
                if found["impact"] in SEVERE:
                    nodes = [
                        f"{node['html'][:160]} {node['failureSummary'][:200]}" for node in found["nodes"][:2]
                    ]
                    findings.setdefault(f"{found['id']}: {nodes}", []).append(each)
    assert not findings, "\n\n".join(f"{found}\n  on {where[:4]}" for found, where in findings.items())
