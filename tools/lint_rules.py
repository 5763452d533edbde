"""Rules of the codebase that ruff, mypy and import-linter cannot check: `python -m tools.lint_rules [ROOT]`.

Exceptions and word lists live in `lint_rules.toml` beside this file. `[baseline]` there holds the number of violations
that a rule may still have; a rule that is not listed may have none.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

CONFIG = Path(__file__).with_suffix(".toml")
SOURCE = Path("src/foliot")
BESIDE = ("tests", "tools", "bench")  # the word list holds there too
STEPS = "_steps"
STEPS_IMPORTERS = "foliot.services"
LEAST_LINES = 25
UNCOUNTED = ("__init__", "__main__")


@dataclass(frozen=True, order=True, slots=True)
class Violation:
    rule: str
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Word:
    """A forbidden word: a pattern, its replacement, and the files that may use it."""

    pattern: re.Pattern[str]
    instead: str
    allowed_in: tuple[str, ...] = ()
    names_only: bool = False  # a plain English word that says nothing as the name of a class

    def allows(self, path: str) -> bool:
        return any(re.search(place, path) for place in self.allowed_in)


@dataclass(frozen=True, slots=True)
class Config:
    mirrors: frozenset[str]
    gerunds: frozenset[str]
    small_modules: Mapping[str, str]
    words: tuple[Word, ...]
    baseline: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = CONFIG) -> Config:
        read: dict[str, Any] = tomllib.loads(path.read_text())
        words = tuple(
            Word(
                re.compile(word["pattern"]),
                word["instead"],
                tuple(word.get("allowed_in", ())),
                names_only=word.get("names_only", False),
            )
            for word in read["words"]
        )
        return cls(
            frozenset(read["mirrors"]),
            frozenset(read["gerunds"]),
            read["small_modules"],
            words,
            read.get("baseline", {}),
        )


@dataclass(frozen=True)
class Module:
    root: Path
    file: Path

    @cached_property
    def path(self) -> str:
        return self.file.relative_to(self.root).as_posix()

    @cached_property
    def name(self) -> str:
        """As it is imported, such as `foliot.services.jobs.edit`."""
        parts = self.file.relative_to(self.root / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self) -> str:
        return self.file.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))


def check(root: Path, config: Config) -> list[Violation]:
    modules = [Module(root, file) for file in sorted((root / SOURCE).rglob("*.py"))]
    found = [
        *find_repeated_classes(modules, config),
        *(violation for module in modules for violation in check_module(module, config)),
        *(
            violation
            for folder in BESIDE
            for file in sorted((root / folder).rglob("*.py"))
            for violation in find_words(Module(root, file), config)
        ),
        *find_words_in_sql(root, config),
        *find_unused_reasons(modules, config),
    ]
    return sorted(found)


def check_module(module: Module, config: Config) -> Iterator[Violation]:
    yield from find_gerund(module, config)
    yield from find_words(module, config)
    yield from find_steps_imported(module)
    yield from find_small_module(module, config)


def find_repeated_classes(modules: list[Module], config: Config) -> Iterator[Violation]:
    """A class name means one thing. Private classes are exempt: nobody meets two of them."""
    places: dict[str, list[tuple[Module, int]]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append((module, node.lineno))
    for name, found in places.items():
        if name in config.mirrors:
            continue
        for module, line in found[1:]:
            first = found[0][0].path
            yield Violation("unique-class", module.path, line, f"class {name} is defined in {first} as well")


def find_gerund(module: Module, config: Config) -> Iterator[Violation]:
    """A module is a noun. A compound such as `output_masking` names a thing and is allowed."""
    stem = module.name.rpartition(".")[2]
    if stem.endswith("ing") and "_" not in stem and stem not in config.gerunds:
        yield Violation("gerund-module", module.path, 1, f"module {stem} is named by a bare gerund")


def find_words(module: Module, config: Config) -> Iterator[Violation]:
    """Names, comments and docstrings; other strings are data, and messages in them are seen by reviewers."""
    docstrings = set(_docstring_lines(module.tree))
    for token in module.tokens:
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
        is_name = token.type == tokenize.NAME
        if is_name or token.type == tokenize.COMMENT or is_docstring:
            yield from _match_words(module.path, token.start[0], token.string, config, is_name=is_name)
    stem = module.file.stem if module.file.stem != "__init__" else module.file.parent.name
    yield from _match_words(module.path, 1, stem, config, is_name=True)


def find_words_in_sql(root: Path, config: Config) -> Iterator[Violation]:
    for file in sorted((root / SOURCE).rglob("*.sql")):
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            yield from _match_words(path, number, line, config, is_name=False)


def find_steps_imported(module: Module) -> Iterator[Violation]:
    """A module named `*_steps` takes an open transaction: only services, which open one, import it."""
    if module.name.startswith(STEPS_IMPORTERS):
        return
    for node in ast.walk(module.tree):
        for name in _imported_names(node):
            if any(part.endswith(STEPS) for part in name.split(".")):
                message = f"{name} is a step: only {STEPS_IMPORTERS} imports it"
                yield Violation("steps-import", module.path, getattr(node, "lineno", 1), message)


def find_small_module(module: Module, config: Config) -> Iterator[Violation]:
    lines = count_code_lines(module)
    if lines >= LEAST_LINES or module.file.stem in UNCOUNTED or module.path in config.small_modules:
        return
    message = f"{lines} lines of code; merge it, or list its reason under [small_modules] in {CONFIG.name}"
    yield Violation("small-module", module.path, 1, message)


def find_unused_reasons(modules: list[Module], config: Config) -> Iterator[Violation]:
    """A listed exception that excuses nothing is removed."""
    small = {module.path for module in modules if count_code_lines(module) < LEAST_LINES}
    for path in config.small_modules:
        if path not in small:
            yield Violation(
                "small-module", path, 1, f"listed in {CONFIG.name}, but it is not small or not there"
            )


def count_code_lines(module: Module) -> int:
    """Lines with code on them: no blank lines, comments or docstrings."""
    docstrings = set(_docstring_lines(module.tree))
    idle = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    }  # fmt: skip
    lines: set[int] = set()
    for token in module.tokens:
        if token.type not in idle and token.start[0] not in docstrings:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def report(found: list[Violation], baseline: Mapping[str, int]) -> int:
    """Print the rules that have more violations than their baseline allows; return the exit code."""
    counts = Counter(violation.rule for violation in found)
    failed = [rule for rule in counts if counts[rule] > baseline.get(rule, 0)]
    for violation in found:
        if violation.rule in failed:
            print(violation)
    for rule in sorted(baseline):
        if counts[rule] < baseline[rule]:
            print(
                f"{rule}: {counts[rule]} violations; lower its baseline ({baseline[rule]}) in {CONFIG.name}"
            )
    if failed:
        print(*(f"{rule}: {counts[rule]}, allowed: {baseline.get(rule, 0)}" for rule in failed), sep="\n")
        return 1
    print("Lint rules: " + (", ".join(f"{rule} {counts[rule]}" for rule in sorted(counts)) or "no violation"))
    return 0


def _match_words(path: str, line: int, text: str, config: Config, *, is_name: bool) -> Iterator[Violation]:
    for word in config.words:
        if word.names_only and not is_name:
            continue
        for match in word.pattern.finditer(text):
            if not word.allows(path):
                at = line + text.count("\n", 0, match.start())
                yield Violation("word-list", path, at, f"{match[0]!r}: write {word.instead}")


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module or ''}.{alias.name}" for alias in node.names]
    return []


def main(args: list[str]) -> int:
    root = Path(args[0]) if args else Path(__file__).resolve().parents[1]
    config = Config.load()
    return report(check(root, config), config.baseline)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
