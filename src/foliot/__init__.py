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
    "AsyncClient": "foliot.sdk",
    "Cancel": "foliot.sdk.outcomes",
    "Client": "foliot.sdk",
    "Conflict": "foliot.sdk.errors",
    "Context": "foliot.sdk.context",
    "Denied": "foliot.sdk.errors",
    "Fail": "foliot.sdk.outcomes",
    "FakeContext": "foliot.sdk.context",
    "Foliot": "foliot.sdk",
    "FoliotApiError": "foliot.sdk.errors",
    "Invalid": "foliot.sdk.errors",
    "Job": "foliot.sdk.app.job",
    "NotFound": "foliot.sdk.errors",
    "RateLimited": "foliot.sdk.errors",
    "Retry": "foliot.sdk.outcomes",
    "Skip": "foliot.sdk.outcomes",
    "Stale": "foliot.sdk.errors",
    "TimeOut": "foliot.sdk.outcomes",
    "Unauthorized": "foliot.sdk.errors",
    "Unavailable": "foliot.sdk.errors",
    "Unreachable": "foliot.sdk.errors",
    "Unreadable": "foliot.sdk.errors",
    "Untrusted": "foliot.sdk.errors",
}


def __getattr__(name: str) -> Any:
    """Load a name on first use: the server must not import the client, nor the client the server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
