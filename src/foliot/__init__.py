"""Foliot: durable, multi-tenant job scheduling on PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.sdk import AsyncClient, Client, Foliot
    from foliot.sdk.app.job import Job
    from foliot.sdk.context import Context, FakeContext
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
    from foliot.sdk.outcomes import Cancel, Fail, Retry, Skip, TimeOut

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Cancel",
    "Client",
    "Conflict",
    "Context",
    "Denied",
    "Fail",
    "FakeContext",
    "Foliot",
    "FoliotApiError",
    "Invalid",
    "Job",
    "NotFound",
    "RateLimited",
    "Retry",
    "Skip",
    "Stale",
    "TimeOut",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Unreadable",
    "Untrusted",
    "__version__",
]
_HOMES = {
    "AsyncClient": "asynchronous.client",
    "Cancel": "outcomes",
    "Client": "synchronous.client",
    "Context": "context",
    "Fail": "outcomes",
    "FakeContext": "context",
    "Foliot": "app.application",
    "Job": "app.job",
    "Retry": "outcomes",
    "Skip": "outcomes",
    "TimeOut": "outcomes",
}  # modules of the sdk; the others are errors


def __getattr__(name: str) -> Any:
    """Load a name on first use: the server must not import the client, nor the client the server."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foliot.sdk.{_HOMES.get(name, 'errors')}"), name)
