"""Queries of people as conditions: fixed pieces of SQL, chosen by the fields a query names; its values travel as parameters only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foliot.domain.filters import Between, Query, Term, Value
from foliot.storage.queries import SqlQuery as Statement

Put = Callable[[Any], str]  # keeps a value, answers with the place of its parameter
Column = Callable[[Put, Sequence[Value]], str]  # the values of a term -> a condition that one of them holds


class Conditions:
    """What must hold, and the parameters that say so."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self._all: list[str] = []

    def put(self, value: Any) -> str:
        name = f"v{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"

    def add(self, condition: str) -> None:
        self._all.append(condition)

    def add_query(self, query: Query, columns: Mapping[str, Column]) -> None:
        for term in query.terms:
            self.add(self._condition(term, columns[term.field]))

    def _condition(self, term: Term, column: Column) -> str:
        condition = column(self.put, term.values)
        # What is not there is not what was unwanted: NOT alone would leave it out.
        return f"({condition}) IS NOT TRUE" if term.negated else f"({condition})"

    def __str__(self) -> str:
        return " AND ".join(self._all) or "true"


def filled(statement: Statement, **pieces: str) -> Statement:
    """The statement with its places `{name}` taken by pieces of SQL from this room."""
    text = statement.text.decode()
    for name, piece in pieces.items():
        text = text.replace(f"{{{name}}}", piece)
    return Statement(statement.name, text.encode())


def one_of(column: str, kind: str = "text") -> Column:
    def condition(put: Put, values: Sequence[Value]) -> str:
        if len(values) == 1:  # an index with the order behind it then needs no sort
            return f"{column} = {put(values[0])}::{kind}"
        return f"{column} = ANY ({put(list(values))}::{kind}[])"

    return condition


def any_in(column: str) -> Column:
    """For a column of arrays."""
    return lambda put, values: f"{column} && {put(list(values))}::text[]"


def holds_text(column: str) -> Column:
    """Somewhere in it, whether in capitals or not."""
    return lambda put, values: (
        f"{column} ILIKE ANY ({put([_pattern(str(value)) for value in values])}::text[])"
    )


def within(column: str, kind: str, *, also: str | None = None) -> Column:
    """Between two bounds. `also` is a column with an index that is never later than this one."""
    return lambda put, values: " OR ".join(_stretch(put, column, kind, also, value) for value in values)


def _stretch(put: Put, column: str, kind: str, also: str | None, value: Value) -> str:
    assert isinstance(value, Between), "numbers and instants are read as stretches"
    bounds: Iterable[tuple[str, str, Any]] = ((column, ">=", value.low), (column, "<", value.high))
    if also is not None:
        bounds = (*bounds, (also, "<", value.high))
    told = [f"{name} {sign} {put(bound)}::{kind}" for name, sign, bound in bounds if bound is not None]
    return " AND ".join(told)


def _pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
