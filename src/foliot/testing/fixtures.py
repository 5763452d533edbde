"""The people in tests, by the names that records and audit keep of them."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Actor
from foliot.services.secrets.vault import MasterKey, Vault

ADA = Actor("ada")
ANA = Actor("ana")
BEN = Actor("ben")
EVE = Actor("eve")
TEST = Actor("test")


class InMemoryKeys:
    """A source that takes new keys, like the key file; several vaults may share it, like processes on one machine."""

    def __init__(self, *keys: MasterKey) -> None:
        self.keys = list(keys)

    def read(self) -> Sequence[MasterKey]:
        return tuple(self.keys)

    def may_add(self) -> None:
        pass

    def add(self, key: MasterKey) -> None:
        self.keys.insert(0, key)


def a_vault(*keys: MasterKey) -> Vault:
    return Vault(InMemoryKeys(*(keys or (MasterKey.new(),))))
