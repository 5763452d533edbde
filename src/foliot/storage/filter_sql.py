"""Search queries as SQL conditions: fixed pieces of SQL chosen by field; values are parameters only.

Why: docs/decisions/604-filter-language.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foliot.domain.filters import Between, Query, Term, Value
from foliot.storage.queries import SqlQuery

Put = Callable[[Any], str]  # adds a parameter and returns its placeholder
Column = Callable[[Put, Sequence[Value]], str]  # returns the condition that one of the values matches


class Conditions:
    """Conditions joined by AND, and their parameters."""

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
        # NULL matches a negated term: NOT alone would leave it out.
        return f"({condition}) IS NOT TRUE" if term.negated else f"({condition})"

    def __str__(self) -> str:
        return " AND ".join(self._all) or "true"


def filled(statement: SqlQuery, **pieces: str) -> SqlQuery:
    """Fill the placeholders `{name}` of a statement with pieces of SQL from this package."""
    text = statement.text.decode()
    for name, piece in pieces.items():
        text = text.replace(f"{{{name}}}", piece)
    return SqlQuery(statement.name, text.encode())


def one_of(column: str, kind: str = "text") -> Column:
    def condition(put: Put, values: Sequence[Value]) -> str:
        if len(values) == 1:  # an index that continues with the order then needs no sort
            return f"{column} = {put(values[0])}::{kind}"
        return f"{column} = ANY ({put(list(values))}::{kind}[])"

    return condition


def any_in(column: str) -> Column:
    """Match a column of arrays."""
    return lambda put, values: f"{column} && {put(list(values))}::text[]"


def holds_text(column: str) -> Column:
    """Match a part of the text, ignoring case."""
    return lambda put, values: (
        f"{column} ILIKE ANY ({put([_pattern(str(value)) for value in values])}::text[])"
    )


def within(column: str, kind: str, *, also: str | None = None) -> Column:
    """Match a range. `also` is an indexed column that is never later than this one."""
    return lambda put, values: " OR ".join(_range(put, column, kind, also, value) for value in values)


def _range(put: Put, column: str, kind: str, also: str | None, value: Value) -> str:
    assert isinstance(value, Between), "numbers and instants are parsed as ranges"
    bounds: Iterable[tuple[str, str, Any]] = ((column, ">=", value.low), (column, "<", value.high))
    if also is not None:
        bounds = (*bounds, (also, "<", value.high))
    parts = [f"{name} {sign} {put(bound)}::{kind}" for name, sign, bound in bounds if bound is not None]
    return " AND ".join(parts)


def _pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
