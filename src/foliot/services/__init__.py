"""What can be done: one verb, one transaction. Console, API, CLI and agents all come through here."""

from foliot.storage.tx import Database

__all__ = [
    "Database"
]  # the handle that every verb takes; rooms above hand it on without opening the storage door
