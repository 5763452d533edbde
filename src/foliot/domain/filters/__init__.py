"""The filter language: `status:failed tag:billing since:24h -type:http "daily sync"`.

API, CLI, console and agent tools share it. Each resource declares its fields (`FilterFields`); parsing returns a `Query`, a frozen value
without SQL.

Why: docs/decisions/604-filter-language.md
"""

from foliot.domain.filters.fields import FieldKind, FilterField, FilterFields, TimeDirection
from foliot.domain.filters.parser import LONGEST, read_parameters, read_query
from foliot.domain.filters.query import Between, Query, Term, Value

__all__ = [
    "LONGEST",
    "Between",
    "FieldKind",
    "FilterField",
    "FilterFields",
    "Query",
    "Term",
    "TimeDirection",
    "Value",
    "read_parameters",
    "read_query",
]
