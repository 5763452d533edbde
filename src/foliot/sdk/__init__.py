"""The Python client: every call of the API, typed, sync and async; and apps, whose jobs are decorated functions.

It imports the shapes of `wire` and HTTP, nothing of the server.

asynchronous/  AsyncClient, the source of both clients
synchronous/   Client, generated from it by ./dev format; never edited
app/           Foliot and its decorator
sync/          compares the jobs of a file or an app with those of a server
http_clients.py  opens the HTTP client of a connection; a small one for short commands
request.py     a request as a value, and when to send it again
response.py    reads responses into shapes; accepts fields that a newer server adds
job_fields.py  the scalar fields of a job, generated from wire/jobs.py
keywords.py    jobs and schedules in Python keywords
connection.py  finds the server, its key and the certificates to trust
errors.py      errors of the server and of the connection
context.py     the run that a job's code executes; outcomes.py: how that code asks for a retry, a skip or a failure
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.sdk.app.application import Foliot
    from foliot.sdk.app.options import AppDefinitionError
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
    from foliot.sdk.sync.plan import SyncResult
    from foliot.sdk.synchronous.client import Client

__all__ = [
    "AppDefinitionError",
    "AsyncClient",
    "Client",
    "Conflict",
    "Denied",
    "Foliot",
    "FoliotApiError",
    "Invalid",
    "NotFound",
    "RateLimited",
    "Stale",
    "SyncResult",
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
    "AppDefinitionError": "app.options",
    "SyncResult": "sync.plan",
}


def __getattr__(name: str) -> Any:
    """Import lazily: processes that only run functions need an app and its context, but no HTTP client."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foliot.sdk.{_HOMES.get(name, 'errors')}"), name)
