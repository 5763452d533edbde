"""The Python client: every call of the API, typed, sync and async; and apps, whose jobs are decorated functions.
Sees the shapes of `wire` and HTTP, nothing of the server.

asynchronous/  AsyncClient, written by hand
synchronous/   Client, its twin, made from it by ./dev format; never edited
app/           Foliot and its decorator
code/          jobs as code: what is wanted against what is there
asking.py      a request as a value, and when it may be sent again
reading.py     answers into shapes, tolerant of fields that a newer server adds
keywords.py    jobs and schedules as people write them in Python
connection.py       where the server is and which key opens it
tls.py       whose certificates it trusts
errors.py      what the server refuses, and what never reached it
context.py     what a job's own code knows about its run; outcomes.py how it says that it wants a retry, a skip or an end
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot
    from foliot.sdk.app.errors import Misdefined
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
        Untrusted,
    )
    from foliot.sdk.sync.result import Synced
    from foliot.sdk.synchronous.client import Client

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Denied",
    "Foliot",
    "FoliotApiError",
    "Invalid",
    "Misdefined",
    "NotFound",
    "RateLimited",
    "Stale",
    "Synced",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Unreadable",
    "Untrusted",
]
_HOMES = {
    "AsyncClient": "asynchronous.client",
    "Client": "synchronous.client",
    "Foliot": "app.application",
    "Misdefined": "app.errors",
    "Synced": "sync.result",
}


def __getattr__(name: str) -> Any:
    """Loaded when asked for: the processes that functions run in need an app and its context, and no HTTP client."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foliot.sdk.{_HOMES.get(name, 'errors')}"), name)
