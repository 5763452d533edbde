"""The papers say what the code does: references are fresh, commands exist, nothing points at one machine."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import references, requirements
from foliot.domain.errors import FoliotError
from foliot.settings import TABLE
from tests.fork_server import run_foliot

ROOT = Path(__file__).resolve().parents[2]


def own_files() -> Iterator[Path]:
    """What belongs to the repository: all but what .gitignore leaves out. Also works in a tree without git."""
    left_out = {
        ".venv",
        ".tools",
        ".cache",
        ".foliot",
        ".hypothesis",
        ".ruff_cache",
        ".mypy_cache",
        ".git",
        "__pycache__",
    }
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in left_out]
        yield from (
            Path(folder, name) for name in names if name not in left_out and not name.endswith(".pyc")
        )


@pytest.mark.parametrize("page", ["settings.md", "cli.md", "errors.md", "api.md", "requirements.md"])
def test_the_reference_is_what_the_code_says(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text()
    assert written == references.pages()[page], "run ./dev docs"


def test_every_requirement_has_a_test_or_a_reason_and_every_marker_names_one() -> None:
    found = requirements.load()
    assert sorted(found.tests.keys() - found.texts.keys()) == [], "not an id of docs/requirements.toml"
    assert sorted(found.not_proven.keys() - found.texts.keys()) == []
    assert sorted(found.not_proven.keys() & found.tests.keys()) == [], "a test proves it: drop the reason"
    assert sorted(found.texts.keys() - found.tests.keys() - found.not_proven.keys()) == [], (
        "no test, no reason"
    )


def test_every_setting_and_error_code_is_documented() -> None:
    settings = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert [row.env for row in TABLE if f"## {row.env}\n" not in settings] == []
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text()
    codes = [error.code for error in references.tree(FoliotError)]
    assert len(set(codes)) == len(codes), "two errors share a code"
    assert [code for code in codes if f"| `{code}` |" not in errors] == []


def test_the_tree_drawn_in_errors_is_the_tree() -> None:
    from foliot.domain import errors

    drawn = re.findall(
        r"^[│├└─ ]*([A-Z]\w+)", (errors.__doc__ or "").partition("\n\n")[2], flags=re.MULTILINE
    )
    assert drawn == [
        error.__name__ for error in references.tree(FoliotError) if error.__module__ == errors.__name__
    ]


def test_the_commands_in_the_papers_exist() -> None:
    helps = {line.split()[0] for line in dev("--help").splitlines() if line.startswith("  ") and line.split()}
    for paper in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        text = (ROOT / paper).read_text()
        assert set(re.findall(r"\./dev (\w+)", text)) <= helps, paper
        for command in set(re.findall(r"foliot (serve|preview|migrate|settings|db \w+|keys \w+)", text)):
            done = run_foliot(*command.split(), "--help", cwd=ROOT)
            assert done.returncode == 0, command


def dev(*args: str) -> str:
    return subprocess.run(
        (sys.executable, ROOT / "dev", *args), capture_output=True, text=True, check=True, timeout=600
    ).stdout


def test_every_link_between_papers_leads_to_a_file_and_a_heading() -> None:
    broken = [
        f"{paper.relative_to(ROOT)} -> {target}#{heading}"
        for paper in own_files()
        if paper.suffix == ".md"
        for target, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", paper.read_text())
        if "://" not in target and not leads_somewhere(paper.parent / target if target else paper, heading)
    ]
    assert broken == []


def leads_somewhere(target: Path, heading: str) -> bool:
    return target.exists() and (not heading or heading in anchors(target))


@functools.cache
def anchors(paper: Path) -> frozenset[str]:
    """Return the anchors that a Markdown viewer makes from the headings of a paper."""
    headings = re.findall(r"^#+ (.+)$", paper.read_text(), flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings)


def test_every_path_of_code_that_a_paper_names_exists() -> None:
    packages = {path.name for path in (ROOT / "src" / "foliot").iterdir()}
    folders = {"src", "tests", "docs", "bench", "examples", "tools"}
    missing = [
        f"{paper.relative_to(ROOT)} -> {named}"
        for paper in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
        for named in re.findall(r"`([\w-]+/[\w./-]*)`", paper.read_text())
        if (top := named.partition("/")[0]) in packages | folders and not named.startswith("bench/results/")
        if not ((ROOT if top in folders else ROOT / "src" / "foliot") / named).exists()
    ]
    assert missing == []


# `./dev` reads pip's setting of that name, and its test uses an address that nobody has.
NAMED_INDEX = r"index-url[\s='\"]+\w+://(?!\w+\.example/)"


def test_no_file_points_at_one_machine_or_index() -> None:
    here = re.compile("|".join([r"/(?:home|Users|root)/\w", "/work" + "/", "pypi" + r"\.org", NAMED_INDEX]))
    found = []
    for path in own_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}: {match[0]}" for match in here.finditer(text) if path != Path(__file__)
        ]
    assert found == []


def test_the_lock_names_versions_and_hashes_but_no_address() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()
    assert "--hash=sha256:" in (ROOT / "requirements.lock").read_text()


def test_the_architecture_names_files_and_tables_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = "domain|storage|services|engine|worker|handlers|channels|egress|web|wire|sdk|cli|wiring|settings|tools|tests"
    named = set(re.findall(rf"(?<![\w/])((?:{packages})/[\w/]+\.(?:py|sql|toml))", text))
    assert len(named) > 30
    assert [
        path
        for path in sorted(named)
        if not ((ROOT / path).exists() or (ROOT / "src/foliot" / path).exists())
    ] == []
    migrations = (ROOT / "src/foliot/storage/migrations").glob("*.sql")
    tables = {table for file in migrations for table in re.findall(r"CREATE TABLE (\w+)", file.read_text())}
    assert tables <= set(re.findall(r"`(\w+)`", text)), "a table that the page does not list"
