"""Named queries. `<file>.sql` beside a storage module holds statements that begin with `-- name: take_ready`; `sql.<file>.take_ready` is one.

They are read once, at import, which fails for a statement without a name, a name used twice or a name without a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

_NAME = re.compile(r"-- name: ([a-z][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class SqlQuery:
    name: str  # such as keys.insert, for logs and errors
    text: bytes


class QueryFile:
    def __init__(self, name: str, queries: Mapping[str, SqlQuery]) -> None:
        self._name = name
        self._queries = queries

    def __getattr__(self, name: str) -> SqlQuery:
        try:
            return self._queries[name]
        except KeyError:
            raise AttributeError(f"{self._name}.sql has no query named {name}") from None

    def __iter__(self) -> Iterator[SqlQuery]:
        return iter(self._queries.values())


class Queries:
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._files = {name: QueryFile(name, parse(name, text)) for name, text in texts.items()}

    def __getattr__(self, name: str) -> QueryFile:
        try:
            return self._files[name]
        except KeyError:
            raise AttributeError(f"there is no {name}.sql") from None

    def __iter__(self) -> Iterator[SqlQuery]:
        return (query for file in self._files.values() for query in file)


def parse(file: str, text: str) -> dict[str, SqlQuery]:
    queries: dict[str, SqlQuery] = {}
    preamble, *statements = re.split(r"^(?=-- name:)", text, flags=re.MULTILINE)
    if _without_comments(preamble):
        raise ValueError(f"{file}.sql: the first statement has no name")
    for statement in statements:
        first, _, rest = statement.partition("\n")
        found = _NAME.fullmatch(first.rstrip())
        if found is None:
            raise ValueError(f"{file}.sql: {first!r} is not a name line such as '-- name: take_ready'")
        if found[1] in queries:
            raise ValueError(f"{file}.sql: two queries are named {found[1]}")
        if not (body := _without_comments(rest)):
            raise ValueError(f"{file}.sql: {found[1]} has no statement")
        queries[found[1]] = SqlQuery(f"{file}.{found[1]}", body.encode())
    return queries


def _without_comments(text: str) -> str:
    """Drop comments: a % in one would be read as a parameter, and every byte would be sent."""
    return (
        "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
        .strip()
        .removesuffix(";")
    )


def _packaged() -> Queries:
    """Read every .sql file of the package. A file's stem names its group of queries, so stems are unique."""
    texts: dict[str, str] = {}
    folders = [files("foliot.storage")]
    for folder in folders:
        for entry in folder.iterdir():
            if entry.is_dir() and entry.name != "migrations":
                folders.append(entry)
            elif entry.name.endswith(".sql"):
                stem = entry.name.removesuffix(".sql")
                if stem in texts:
                    raise ValueError(f"two files are named {entry.name}")
                texts[stem] = entry.read_text("utf-8")
    return Queries(texts)


sql = _packaged()
