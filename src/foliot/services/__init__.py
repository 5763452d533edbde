"""Everything that console, API, CLI and agents can do: one verb, one transaction."""

from foliot.storage.tx import Database

__all__ = ["Database"]  # every verb takes it; upper layers pass it on without importing storage
