"""Each rule of tools/lint_rules.py finds a violation that is planted, and leaves alone what it allows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tools.lint_rules import CONFIG, Config, Violation, check, report

ROOT = Path(__file__).resolve().parents[2]
LONG = "\n".join(f"x{number} = {number}" for number in range(30)) + "\n"


def rules(root: Path, modules: dict[str, str]) -> list[tuple[str, str]]:
    """Write the modules, each long enough, and return (rule, path) of each violation."""
    for name, text in modules.items():
        path = root / "src" / "foliot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + LONG)
    config = Config.load()
    found = check(root, Config(config.mirrors, config.gerunds, {}, config.words))
    return [(each.rule, each.path.removeprefix("src/foliot/")) for each in found]


def test_a_class_name_that_two_modules_define_is_found(tmp_path: Path) -> None:
    modules = {"domain/job.py": "class Planted: ...\n", "sdk/job.py": "class Planted: ...\n"}
    assert rules(tmp_path, modules) == [("unique-class", "sdk/job.py")]


def test_listed_mirrors_and_private_classes_may_repeat(tmp_path: Path) -> None:
    text = "class Retry: ...\nclass _State: ...\n"
    assert rules(tmp_path, {"domain/policy.py": text, "wire/jobs.py": text}) == []


@pytest.mark.parametrize("name", ["seeing", "wanting", "tending"])
def test_a_module_named_by_a_bare_gerund_is_found(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path, {f"services/{name}.py": ""}) == [("gerund-module", f"services/{name}.py")]


def test_a_package_named_by_a_bare_gerund_is_found(tmp_path: Path) -> None:
    assert rules(tmp_path, {"seeing/__init__.py": ""}) == [("gerund-module", "seeing/__init__.py")]


@pytest.mark.parametrize("name", ["masking", "output_masking"])
def test_a_gerund_of_the_trade_and_a_compound_are_allowed(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path, {f"worker/{name}.py": ""}) == []


@pytest.mark.parametrize(
    "text",
    [
        "in_hand = 1\n",
        "class InHand: ...\n",
        "class Around: ...\n",
        "def as_it_stands() -> None: ...\n",
        "# started by hand\n",
        '"""What is told to somebody."""\n',
        "def f() -> None:\n    '''Makes room for\n    more.'''\n",
        "has_room = True\n",
        "room = 4\n",
    ],
)
def test_a_word_of_the_list_is_found_in_names_comments_and_docstrings(tmp_path: Path, text: str) -> None:
    assert {rule for rule, _ in rules(tmp_path, {"services/jobs.py": text})} == {"word-list"}


def test_a_word_of_the_list_is_found_in_tests(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "domain" / "test_jobs.py"
    path.parent.mkdir(parents=True)
    path.write_text("told = 1\n")
    found = check(tmp_path, replace(Config.load(), small_modules={}))
    assert [(each.rule, each.path) for each in found] == [("word-list", "tests/domain/test_jobs.py")]


def test_a_string_that_is_no_docstring_is_data(tmp_path: Path) -> None:
    assert rules(tmp_path, {"services/jobs.py": 'x = "by hand"\n'}) == []


def test_a_room_is_allowed_where_chat_rooms_are(tmp_path: Path) -> None:
    assert rules(tmp_path, {"services/messaging/rooms.py": "room = 4\n"}) == []
    assert rules(tmp_path, {"services/messaging/rooms.py": "has_room = 4\n"}) != []


def test_a_word_of_the_list_is_found_in_sql(tmp_path: Path) -> None:
    path = tmp_path / "src" / "foliot" / "storage" / "jobs.sql"
    path.parent.mkdir(parents=True)
    path.write_text("-- name: lock\n-- whoever comes second waits\nSELECT 1;\n")
    assert [str(each) for each in check(tmp_path, Config.load()) if each.rule == "word-list"] == [
        "src/foliot/storage/jobs.sql:2: word-list: 'whoever': write the caller, the worker, the reader: who it is"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from foliot.services.jobs.lock_steps import lock_job\n",
        "from foliot.services.jobs import lock_steps\n",
        "import foliot.services.jobs.lock_steps\n",
    ],
)
def test_a_step_that_an_edge_imports_is_found(tmp_path: Path, text: str) -> None:
    assert rules(tmp_path, {"web/api.py": text}) == [("steps-import", "web/api.py")]
    assert rules(tmp_path, {"web/api.py": "", "services/jobs/edit.py": text}) == []


def test_a_small_module_without_a_reason_is_found(tmp_path: Path) -> None:
    path = tmp_path / "src" / "foliot" / "domain" / "tiny.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""Many\n' + "\n" * 30 + 'lines of words."""\n' + "# and comments\n" * 30 + "x = 1\n")
    config = Config.load()
    alone = Config(config.mirrors, config.gerunds, {}, config.words)
    excused = Config(config.mirrors, config.gerunds, {"src/foliot/domain/tiny.py": "why"}, config.words)
    assert [each.rule for each in check(tmp_path, alone)] == ["small-module"]
    assert check(tmp_path, excused) == []


def test_a_reason_that_excuses_nothing_is_found(tmp_path: Path) -> None:
    config = Config(frozenset(), frozenset(), {"src/foliot/domain/gone.py": "why"}, ())
    assert [each.rule for each in check(tmp_path, config)] == ["small-module"]


def test_more_violations_than_the_baseline_fail(capsys: pytest.CaptureFixture[str]) -> None:
    found = [Violation("unique-class", "a.py", 1, "first"), Violation("unique-class", "b.py", 2, "second")]
    assert report(found, {"unique-class": 2}) == 0
    assert report(found, {"unique-class": 3}) == 0
    assert "lower its baseline" in capsys.readouterr().out
    assert report(found, {"unique-class": 1}) == 1
    assert report(found, {}) == 1
    assert "b.py:2: unique-class: second" in capsys.readouterr().out


def test_the_command_of_dev_lint_fails_on_a_planted_violation(tmp_path: Path) -> None:
    text = (ROOT / "dev").read_text()
    assert '("python", "-m", "tools.lint_rules")' in text
    planted = tmp_path / "src" / "foliot" / "seeing.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(LONG + "in_hand = 1\n" * 10_000)
    command = (sys.executable, "-m", "tools.lint_rules", str(tmp_path))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "src/foliot/seeing.py:31: word-list: 'in_hand'" in done.stdout


def test_the_lists_are_sorted_out() -> None:
    """Every exception has a reason, and no word is allowed everywhere."""
    config = Config.load()
    assert all(reason for reason in config.small_modules.values()), CONFIG
    assert all(word.instead for word in config.words)
    assert not any(word.allows("src/foliot/domain/job.py") for word in config.words)
