"""Take the pictures of the console for README and docs: `./dev screenshots`.

Starts a server with sample jobs in a temporary directory, waits until runs have happened, and writes docs/images/.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import ViewportSize, expect, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE = ViewportSize(width=1280, height=860)
NARROW = ViewportSize(width=360, height=740)
JOBS: tuple[dict[str, Any], ...] = (
    {"name": "heartbeat probe", "when": "every 2 seconds", "tags": ["infra"]},
    {
        "name": "nightly invoices",
        "when": "every weekday at 2:30",
        "timezone": "Europe/Paris",
        "tags": ["billing"],
    },
    {
        "name": "weekly report",
        "when": "every monday at 9am",
        "timezone": "America/Argentina/Buenos_Aires",
        "tags": ["reports"],
    },
    {"name": "clean up carts", "when": "every 15 minutes", "tags": ["shop"]},
    {
        "name": "sync customers",
        "when": "every 3 seconds",
        "url": "http://127.0.0.1:1/sync",
        "tags": ["billing", "sync"],
    },
)


def main() -> int:
    chromium = os.environ.get("FOLIOT_TEST_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("Chromium is missing. On Debian: apt-get install chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = (Path(sys.executable).with_name("foliot"), "serve", "--port", "0", "--data-dir", folder)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
        ) as server:
            try:
                link = _link(server)
                base = link.partition("/console")[0]
                make_jobs(base, (Path(folder) / "admin.key").read_text().strip())
                take_pictures(chromium, base, link)
            finally:
                server.terminate()
    return 0


def _link(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if found := re.search(r"(http://\S+/console/sign-in\?link=\S+)", line):
            return found[1]
    raise SystemExit("the server printed no sign-in link")


def make_jobs(base: str, key: str) -> None:
    for job in JOBS:
        schedule = {"words": job["when"], "timezone": job.get("timezone", "UTC")}
        body = {
            "name": job["name"],
            "type": "http",
            "config": {"url": job.get("url", f"{base}/healthz"), "method": "GET"},
            "schedule": schedule,
            "tags": job["tags"],
            "retry": {"max": 0, "strategy": "none"},
        }
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = Request(f"{base}/api/v1/jobs", json.dumps(body).encode(), headers)  # noqa: S310  # our own server
        urlopen(request).read()  # noqa: S310


def take_pictures(chromium: str, base: str, link: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(base_url=base, locale="en-GB", viewport=WIDE)
        page = context.new_page()
        page.goto(link)
        expect(page.locator("#verdict")).to_contain_text("need", timeout=60_000)
        page.goto("/console/jobs?q=name:heartbeat")
        page.locator("a.name").first.click()
        job = page.url
        expect(page.locator("#strip svg a")).to_have_count(12, timeout=60_000)
        page.goto("/console/runs?q=status:failed")
        page.locator("a.name").first.click()
        run = page.url
        views = {
            "today": "/console/",
            "jobs": "/console/jobs",
            "job": job,
            "run": run,
            "editor": "/console/jobs/new?name=nightly+report",
            "agenda": "/console/agenda",
        }
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for name, address in views.items():
                page.goto(address)
                page.screenshot(path=IMAGES / f"{name}-{theme}.png")
        page.set_viewport_size(NARROW)
        page.goto("/console/")
        page.screenshot(path=IMAGES / "today-narrow.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
