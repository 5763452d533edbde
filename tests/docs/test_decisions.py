"""The pages in docs/decisions have a plain form, and the index lists each of them once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
INDEX = FOLDER / "README.md"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)
STATUS = re.compile(r"Status: (accepted|superseded by \[?\d{3}\b.*), (\d{4}-\d{2}-\d{2})")
ROW = re.compile(r"\| \[(\d{3} .+)\]\((\S+\.md)\) \| (.+) \| (\S+) \|")
SECTIONS = ["Context", "Decision", "Weighed", "Price"]


def head(page: Path) -> tuple[str, str, str]:
    """Return the title, the status and the date of a page."""
    title, _, status, *_ = page.read_text().splitlines()
    found = STATUS.fullmatch(status)
    assert found, f"{page.name}: the third line is not a status with a date"
    return title.removeprefix("# "), found[1], found[2]


def test_every_page_has_a_number_of_its_own_and_a_plain_name() -> None:
    assert PAGES
    assert [page.name for page in PAGES if not re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", page.name)] == []
    numbers = [page.name[:3] for page in PAGES]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_title_status_date_and_sections(page: Path) -> None:
    title, _, _ = head(page)
    assert title.startswith(f"{page.name[:3]} ")
    sections = re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    assert [each for each in SECTIONS if each in sections] == sections, "an unknown section, or another order"
    assert {"Context", "Decision", "Price"} <= set(sections)


def test_the_index_lists_every_page_once_with_its_title_status_and_date() -> None:
    rows = [(name, title, status, date) for title, name, status, date in ROW.findall(INDEX.read_text())]
    assert rows == [(page.name, *head(page)) for page in PAGES]


def test_a_superseded_page_names_a_page_that_exists() -> None:
    numbers = {page.name[:3] for page in PAGES}
    named = {page.name: re.findall(r"superseded by \[?(\d{3})", head(page)[1]) for page in PAGES}
    assert {name: found for name, found in named.items() if not set(found) <= numbers} == {}


def test_every_decision_that_the_code_names_exists() -> None:
    root = FOLDER.parents[1]
    named = [
        (path.relative_to(root).as_posix(), page)
        for folder in ("src", "tools", "tests", "bench", "examples")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in {".py", ".sql"} and path != Path(__file__)
        for page in re.findall(r"docs/decisions/(\S+\.md)", path.read_text())
    ]
    assert named
    assert [each for each in named if not (FOLDER / each[1]).exists()] == []
