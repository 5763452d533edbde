"""Take the pictures of the console: `./dev screenshots [folder]`, or only those of the docs: `./dev screenshots --docs`.

Starts a server with the sample workspace in a temporary directory and walks the console's list of routes. Every page is taken
light, dark and at 360 px, with and without content, into `folder` (default: .cache/screenshots, which git ignores). The pictures
that README and docs show go to docs/images/ as well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Error, sync_playwright

from foliot.web.console.pages import ROUTES
from tools.sample_workspace import FUNCTIONS, ApiClient, SampleMaker, Samples

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
ALL = ROOT / ".cache" / "screenshots"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}},
    "narrow-dark": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}},
}
NOT_PAGES = {"/live", "/runs/{run_id}/log/stream", "/sign-in/openid", "/sign-in/openid/callback"}
# Pages of README and docs, by the path of their route: the name of the picture, and the looks that are kept in git.
IN_DOCS = {
    "/": ("today", ("light", "dark", "narrow")),
    "/jobs": ("jobs", ("light", "dark")),
    "/jobs/{job_id}": ("job", ("light", "dark")),
    "/jobs/new": ("editor", ("light", "dark")),
    "/runs": ("runs", ("light",)),
    "/runs/{run_id}": ("run", ("light", "dark", "narrow")),
    "/agenda": ("agenda", ("light", "dark")),
    "/capacity": ("capacity", ("light",)),
    "/incidents/{incident_id}": ("incident", ("light",)),
    "/rooms/{room_id}": ("room", ("light",)),
    "/freezes": ("freezes", ("light",)),
    "/calendars/{calendar_id}": ("calendar", ("light",)),
    "/audit": ("audit", ("light",)),
    "/settings/channels/{channel_id}": ("channel", ("light",)),
    "/start": ("start", ("light",)),
}
COLOURS = (
    128  # of a picture; flat pages need few. The rare ones, such as a small green dot, must be among them
)
USAGE = (__doc__ or "").strip()


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(USAGE)
        return 0
    chromium = os.environ.get("FOLIOT_TEST_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("Chromium is missing. On Debian: apt-get install chromium", file=sys.stderr)
        return 1
    given = [each for each in sys.argv[1:] if each != "--docs"]
    folder = Path(given[0]) if given else ALL
    folder.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as base:
        system = ApiClient(base, (Path(directory) / "data" / "admin.key").read_text().strip())
        for slug in ("acme", "empty"):
            system.post("/workspaces", {"slug": slug, "name": slug.title()})
        samples = SampleMaker(ApiClient(base, system.key, "acme"), has_past=True).fill()
        samples.ids["run_id"] = samples.runs["sync customers"]
        take_pictures(chromium, base, system.key, samples, folder)
    size = sum(each.stat().st_size for each in IMAGES.glob("*.png"))
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}; docs/images holds {size / 1e6:.1f} MB")
    return 0


class served:  # noqa: N801  # used as a context
    """A server of its own in this directory, with the functions of the sample jobs beside it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> str:
        shutil.copy(FUNCTIONS, self._directory)
        command = (Path(sys.executable).with_name("foliot"), "serve", "--port", "0", "--data-dir", "data")
        self._server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self._directory
        )
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if found := re.search(r"serving at (http://\S+)", line):
                # A pipe that nobody reads fills up with log lines, and then the server stops at the next one.
                threading.Thread(target=self._server.stdout.read, daemon=True).start()
                return found[1]
        raise SystemExit("the server did not start")

    def __exit__(self, *error: object) -> None:
        self._server.terminate()
        self._server.wait()


def addresses(samples: Samples) -> Iterator[tuple[str, str]]:
    """The path of each route and the address of its example."""
    for route in ROUTES:
        if "GET" in (route.methods or ()) and route.path not in NOT_PAGES:
            yield (
                route.path,
                "/console" + re.sub(r"{(\w+)[^}]*}", lambda found: samples.ids[found[1]], route.path),
            )


def take_pictures(chromium: str, base: str, key: str, samples: Samples, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for look, options in LOOKS.items():
            context = browser.new_context(base_url=base, locale="en-GB", timezone_id="UTC", **options)
            page = context.new_page()
            page.goto("/console/sign-in")
            page.get_by_label("API key").fill(key)
            page.get_by_role("button", name="Sign in").first.click()
            page.wait_for_url("**/console/")
            for workspace in ("acme", "empty"):
                cookie = {"name": "foliot_workspace", "value": workspace, "url": f"{base}/console"}
                context.add_cookies([cookie])  # type: ignore[list-item]
                for path, address in addresses(samples):
                    if workspace == "empty" and "{" in path:
                        continue  # there is nothing of this kind
                    is_in_docs = workspace == "acme" and look in IN_DOCS.get(path, ("", ()))[1]
                    if "--docs" in sys.argv and not is_in_docs:
                        continue
                    take_picture(
                        page, path, address, f"{look}{'' if workspace == 'acme' else '-empty'}", folder
                    )
            take_picture(page, "/error", "/console/jobs/no-such-job", look, folder)
            context.close()
        browser.close()


def take_picture(page: Any, path: str, address: str, look: str, folder: Path) -> None:
    try:
        answer = page.goto(address)
    except Error:  # a download
        return
    if (
        answer is None
        or "html" not in answer.headers.get("content-type", "")
        or page.locator("h1").count() == 0
    ):
        return
    name = re.sub(r"\W+", "-", path).strip("-") or "today"
    file = folder / f"{name}-{look}.png"
    page.screenshot(path=file)
    reduce_colours(file)
    known, looks = IN_DOCS.get(path, ("", ()))
    if look in looks:
        shutil.copy(file, IMAGES / f"{known}-{look}.png")


def reduce_colours(file: Path) -> None:
    """Keep the most frequent colours as they are, and colours that are near to each of the others, a small dot's included."""
    with Image.open(file) as opened:
        picture = opened.convert("RGB")
    counted: Any = picture.getcolors(picture.width * picture.height)
    frequent = [part for _, colour in sorted(counted, reverse=True)[:COLOURS] for part in colour]
    covering = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(frequent + covering[: 3 * COLOURS])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
