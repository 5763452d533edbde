"""Every query that is read into a type returns the columns of that type: checked by preparing it, without running it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import ExecStatus

import foliot.storage
from foliot.storage.queries import sql
from foliot.storage.rows import row_reader

STORAGE = Path(foliot.storage.__file__).parent
READERS = ("fetch_as", "fetch_one_as", "fetch_value")
# PostgreSQL cannot infer the types of their parameters without values.
UNTYPED = {"freezes.reserve_slots", "timers.reset"}


def typed_reads() -> Iterator[tuple[Any, str, tuple[str, str]]]:
    """Yield (type, method, (file, query)) for every call that names both."""
    for file in sorted(STORAGE.rglob("*.py")):
        module = None
        for call in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr not in (*READERS, "fetch_pairs"):
                continue
            names = [re.fullmatch(r"sql\.(\w+)\.(\w+)", ast.unparse(each)) for each in call.args]
            found = next((name for name in names if name), None)
            if found is None or not isinstance(call.args[0], ast.Name):
                continue
            path = file.relative_to(STORAGE.parent).with_suffix("")
            module = module or import_module(".".join(("foliot", *path.parts)))
            kind = getattr(module, call.args[0].id, None) or getattr(builtins, call.args[0].id, None)
            yield kind, call.func.attr, (found[1], found[2])


def columns(owner: psycopg.Connection[Any], text: str) -> tuple[bytes | None, ...]:
    names: dict[str, int] = {}
    numbered = re.sub(
        r"%\((\w+)\)s", lambda match: f"${names.setdefault(match[1], len(names) + 1)}", text
    ).replace("%%", "%")
    prepared = owner.pgconn.prepare(b"", numbered.encode())
    assert prepared.status == ExecStatus.COMMAND_OK, prepared.get_error_message()
    described = owner.pgconn.describe_prepared(b"")
    return tuple(described.fname(at) for at in range(described.nfields))


def test_every_typed_query_returns_the_columns_of_its_type(owner: psycopg.Connection[Any]) -> None:
    owner.execute("SET search_path TO foliot")
    checked = 0
    for kind, method, (file, name) in typed_reads():
        query = getattr(getattr(sql, file), name)
        if query.name in UNTYPED or b"{" in query.text.replace(b"'{}'", b""):
            continue
        found = columns(owner, query.text.decode())
        if method == "fetch_pairs":
            assert len(found) == 2, query.name
        elif kind is not None:
            try:
                row_reader(kind, found)
            except TypeError as error:
                pytest.fail(f"{query.name}: {error}")
        checked += 1
    assert checked > 100
