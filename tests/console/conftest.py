"""One server for all tests of the console in a test process, and one browser for those of a file.

The browser is closed after each file: while its driver is open, no other event loop runs in this thread, and the async tests of other
folders need one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.site import CHROMIUM, LONGEST_WAIT, Site, open_site
from tests.temporary import temporary_folder


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with temporary_folder() as folder, open_site(folder) as made:
        made.workspace("acme")
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=LONGEST_WAIT)
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
