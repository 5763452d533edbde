"""Finding many by a line of text: `status:failed tag:billing since:24h -type:http "daily sync"`.

One language for API, CLI, console and tools. Each resource declares what it can be filtered by (`Fields`); reading a line gives a
`Query`, a frozen value without any SQL in it.
"""

from foliot.domain.filters.fields import Field, Fields, Kind, Side
from foliot.domain.filters.parser import LONGEST, read_parameters, read_query
from foliot.domain.filters.query import Between, Query, Term, Value

__all__ = [
    "LONGEST",
    "Between",
    "Field",
    "Fields",
    "Kind",
    "Query",
    "Side",
    "Term",
    "Value",
    "read_parameters",
    "read_query",
]
