"""The Python client: every call of the API, typed, sync and async. Sees the shapes of `wire` and HTTP, nothing of the server.

asynchronous/  AsyncClient, written by hand
synchronous/   Client, its twin, made from it by ./dev format; never edited
asking.py      a request as a value, and when it may be sent again
reading.py     answers into shapes, tolerant of fields that a newer server adds
keywords.py    jobs and schedules as people write them in Python
place.py       where the server is and which key opens it
errors.py      what the server refuses, and what never reached it
"""

from foliot.sdk.asynchronous.client import AsyncClient
from foliot.sdk.errors import (
    Conflict,
    Denied,
    FoliotApiError,
    Invalid,
    NotFound,
    RateLimited,
    Stale,
    Unauthorized,
    Unavailable,
    Unreachable,
    Unreadable,
)
from foliot.sdk.synchronous.client import Client

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Denied",
    "FoliotApiError",
    "Invalid",
    "NotFound",
    "RateLimited",
    "Stale",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Unreadable",
]
