"""Writes docs/reference/requirements.md: each requirement with the tests that are marked as its proof."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).with_suffix(".toml")
MARK = "requirement"
UNMARKED = "No test is marked yet."


@dataclass(frozen=True, slots=True)
class Requirements:
    texts: Mapping[str, str]  # by id
    not_proven: Mapping[str, str]  # reasons, by id
    tests: Mapping[str, tuple[str, ...]]  # tests/file.py::test_name, by id


@cache
def load() -> Requirements:
    source = tomllib.loads(SOURCE.read_text())
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, identifier in marks(ast.parse(path.read_text())):
            tests[identifier].append(f"{path.relative_to(ROOT)}::{test}")
    return Requirements(
        source["texts"], source["not_proven"], {each: tuple(found) for each, found in tests.items()}
    )


def marks(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each marked test with each id of its marker."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((node.name, identifier) for identifier in ids_of(decorator))


def ids_of(decorator: ast.expr) -> list[str]:
    match decorator:
        case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name == MARK:
            return [str(each.value) for each in arguments if isinstance(each, ast.Constant)]
    return []


def page(made: str) -> str:
    found = load()
    proven = [each for each in found.texts if each in found.tests]
    lines = [
        "# Requirements",
        made,
        "",
        "Foliot replaces the schedulers of five products and what each of them promised: S0 a fleet of game servers, S1 marketing",
        "automation, S2 a data platform, S3 a workflow service, S4 chat agents. X is what all of them assume, C is what they say",
        'differently, with the resolution. A test names what it proves: `@pytest.mark.requirement("S4-8")`.',
        "",
        f"{len(proven)} of {len(found.texts)} have a test.",
        "",
        "| id | requirement | proof |",
        "|---|---|---|",
    ]
    lines += [f"| {each} | {cell(text)} | {proof(found, each)} |" for each, text in found.texts.items()]
    return "\n".join([*lines, ""])


def proof(found: Requirements, identifier: str) -> str:
    if tests := found.tests.get(identifier):
        return "<br>".join(f"`{each}`" for each in tests)
    return f"Not proven. {found.not_proven.get(identifier, UNMARKED)}"


def cell(text: str) -> str:
    return text.replace("|", "\\|")
