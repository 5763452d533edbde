"""The table of planted bugs fits the code, and a planted bug is found and taken out again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutation.__main__ import Copy, judge, try_bug
from tools.mutation.__main__ import Result as MutationResult
from tools.mutation.table import ROOT, Bug, StaleBugError, load_bugs, select_bugs

BUGS = load_bugs()
SMALL = Bug("one-less", "src/sums.py", "a + b", "a - b", ("tests/test_sums.py",), "Sums are wrong.", "small")


def test_every_planted_bug_changes_one_place_of_its_file() -> None:
    for bug in BUGS:
        text = (ROOT / bug.file).read_text()
        assert bug.apply(text) != text


def test_every_planted_bug_has_a_name_of_its_own_and_tests_that_are_there() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 80
    for bug in BUGS:
        assert bug.tests
        assert bug.effect.endswith(".")
        for test in bug.tests:
            path, _, name = test.partition("::")
            assert name in (ROOT / path).read_text(), test


def test_a_text_that_is_gone_or_there_twice_is_refused() -> None:
    for text in ("", "a + b\na + b\n"):
        with pytest.raises(StaleBugError, match="one-less"):
            SMALL.apply(text)


def test_a_text_is_looked_for_within_its_part_of_the_file() -> None:
    text = "def first() -> int:\n    return a + b\n\n\ndef other() -> int:\n    return a + b\n"
    assert replace(SMALL, within="def other").apply(text).count("a - b") == 1
    assert (
        replace(SMALL, within="def other").apply(text).startswith("def first() -> int:\n    return a + b\n")
    )
    with pytest.raises(StaleBugError, match="begins 0 lines"):
        replace(SMALL, within="def oth").apply(text)
    queries = "-- name: one\nSELECT a + b;\n\n-- name: one_more\nSELECT a + b;\n"
    sql = replace(SMALL, file="sums.sql", within="-- name: one")
    assert sql.apply(queries) == queries.replace("a + b", "a - b", 1)


def test_bugs_are_chosen_by_name_table_and_file() -> None:
    assert select_bugs([SMALL], ["one-*"]) == select_bugs([SMALL], ["small"]) == [SMALL]
    assert select_bugs([SMALL], ["src/*"]) == [SMALL]
    with pytest.raises(SystemExit):
        select_bugs([SMALL], ["other"])


def test_a_bug_is_caught_by_a_test_that_fails_and_then_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    (clone / "src").mkdir(parents=True)
    (clone / "tests").mkdir()
    source = "def add(a: int, b: int) -> int:\n    return a + b\n"
    (clone / "src" / "sums.py").write_text(source)
    (clone / "tests" / "test_sums.py").write_text(
        "from sums import add\n\n\ndef test_two_numbers_are_added() -> None:\n    assert add(2, 2) == 4\n"
    )
    monkeypatch.setattr("tools.mutation.__main__.ROOT", clone)
    copy = Copy(tmp_path / "copy")
    found = try_bug(copy, SMALL)
    assert (found.is_caught, found.by) == (True, "tests/test_sums.py::test_two_numbers_are_added")
    assert not try_bug(copy, replace(SMALL, new="b + a")).is_caught
    assert (copy.folder / "src" / "sums.py").read_text() == source
    assert (clone / "src" / "sums.py").read_text() == source
    with pytest.raises(SystemExit, match="the tests do not run"):
        try_bug(copy, replace(SMALL, tests=("tests/test_others.py",)))


@pytest.mark.parametrize(("caught", "explained", "code"), [(20, 0, 0), (19, 0, 1), (19, 1, 0), (18, 2, 1)])
def test_enough_must_be_caught_and_every_survivor_explained(caught: int, explained: int, code: int) -> None:
    survivor = replace(SMALL, survives="Two defences of one rule.")
    results = [MutationResult(SMALL, True, 1.0, "") for _ in range(caught)]
    results += [MutationResult(survivor, False, 1.0, "") for _ in range(explained)]
    results += [MutationResult(SMALL, False, 1.0, "") for _ in range(20 - caught - explained)]
    assert judge(results, 0, is_whole=True) == code
    is_explained = caught + explained == len(results)
    assert judge(results, 1, is_whole=False) == int(not is_explained), (
        "a sample may hold many of the few survivors"
    )
