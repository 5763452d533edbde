"""Foliot: durable, multi-tenant job scheduling on PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.sdk import AsyncClient, Client

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "__version__"]


def __getattr__(name: str) -> Any:
    """The client is loaded when it is asked for: importing a room of the server must not cost it, nor the reverse."""
    if name in {"AsyncClient", "Client"}:
        return getattr(import_module("foliot.sdk"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
