"""Named queries: every statement has one name, and none asks the database for the time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import foliot.storage
from foliot.storage.queries import Queries, sql

ROOM = Path(foliot.storage.__file__).parent


def test_queries_are_found_by_file_and_name() -> None:
    queries = Queries(
        {
            "runs": "-- a file about runs\n\n-- name: one\n-- why it is so\nSELECT 1;\n\n-- name: two\nSELECT\n  2;\n"
        }
    )
    assert (queries.runs.one.name, queries.runs.one.text) == ("runs.one", b"SELECT 1")
    assert queries.runs.two.text == b"SELECT\n  2"
    assert [query.name for query in queries] == ["runs.one", "runs.two"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;", "the first statement has no name"),
        ("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;", "two queries are named one"),
        ("-- name: one\n-- name: two\nSELECT 2;", "one has no statement"),
        ("-- name: One\nSELECT 1;", "is not a name line"),
        ("-- name:\nSELECT 1;", "is not a name line"),
    ],
)
def test_a_badly_named_query_fails_when_it_is_loaded(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Queries({"file": text})


def test_an_unknown_query_is_named_in_the_error() -> None:
    with pytest.raises(AttributeError, match=r"keys\.sql has no query named instert"):
        _ = sql.keys.instert
    with pytest.raises(AttributeError, match=r"no nothing\.sql"):
        _ = sql.nothing


def test_every_file_of_queries_has_the_name_of_the_module_beside_it() -> None:
    files = [file for file in ROOM.rglob("*.sql") if file.parent.name != "migrations"]
    assert files
    assert [file.name for file in files if not file.with_suffix(".py").exists()] == []


def test_every_query_that_the_code_names_exists() -> None:
    named = {
        match.groups()
        for file in ROOM.rglob("*.py")
        for match in re.finditer(r"(?<![\w.])sql\.([a-z_]+)\.([a-z_]+)", file.read_text())
    }
    assert named
    for file, name in named:
        assert getattr(getattr(sql, file), name).text
    assert {query.name for query in sql} == {f"{file}.{name}" for file, name in named}, "a query nobody uses"


def test_no_query_reads_the_time() -> None:
    """The instant comes in as a parameter, so that all statements of a transaction agree and a test can name it.

    `to_timestamp` only converts its argument.
    """
    clock = re.compile(
        rb"\b(now\s*\(|(?!to_)\w+_timestamp\b|current_(time|date)\b|localtime|timeofday)", re.IGNORECASE
    )
    assert [query.name for query in sql if clock.search(query.text)] == []


QUEUE_WRITERS = {"run_queue", "fires", "leases"}  # the queue module, firing, settling


def queue_writers(queries: Queries) -> set[str]:
    """The files with a statement that writes ready, waiting or leases."""
    writes = re.compile(rb"\b(?:INSERT INTO|UPDATE|DELETE FROM) (?:ready|waiting|leases)\b")
    return {query.name.partition(".")[0] for query in queries if writes.search(query.text)}


def test_one_module_writes_the_queue_beside_firing_and_settling() -> None:
    assert queue_writers(sql) == QUEUE_WRITERS
    planted = Queries({"jobs": "-- name: purge\nWITH gone AS (DELETE FROM ready RETURNING run_id) SELECT 1;"})
    assert queue_writers(planted) == {"jobs"}
