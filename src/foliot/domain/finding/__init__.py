"""Finding many by a line of text: `status:failed tag:billing since:24h -type:http "daily sync"`.

One language for API, CLI, console and tools. Each resource declares what it can be filtered by (`Fields`); reading a line gives a
`Query`, a frozen value without any SQL in it.
"""

from foliot.domain.finding.fields import Field, Fields, Kind, Side
from foliot.domain.finding.query import Between, Query, Term, Value
from foliot.domain.finding.reading import LONGEST, read_parameters, read_query

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
