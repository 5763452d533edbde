"""Foliot: durable, multi-tenant job scheduling on PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.sdk import AsyncClient, Client, Foliot
    from foliot.sdk.app.job import Job
    from foliot.sdk.context import Context
    from foliot.sdk.outcomes import Fail, Retry, Skip

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "Context", "Fail", "Foliot", "Job", "Retry", "Skip", "__version__"]
_HOMES = {
    "AsyncClient": "foliot.sdk",
    "Client": "foliot.sdk",
    "Context": "foliot.sdk.context",
    "Fail": "foliot.sdk.outcomes",
    "Foliot": "foliot.sdk",
    "Job": "foliot.sdk.app.job",
    "Retry": "foliot.sdk.outcomes",
    "Skip": "foliot.sdk.outcomes",
}


def __getattr__(name: str) -> Any:
    """Load a name on first use: the server must not import the client, nor the client the server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
