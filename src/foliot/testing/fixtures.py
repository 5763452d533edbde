"""Actors and master keys for tests."""

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
    """A key source that accepts new keys, like the key file. Several vaults may share it, like processes on one machine."""

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
