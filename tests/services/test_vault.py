"""What the master keys seal opens for its own purpose, by its own key, untouched, and in no other way."""

from __future__ import annotations

import base64
import os
from uuid import uuid4

import pytest

from foliot.domain.errors import Conflict, Invalid, Unavailable
from foliot.domain.ids import SecretId, WorkspaceId
from foliot.services.secrets.vault import (
    FixedKeys,
    MasterKey,
    SealedValue,
    UnreadableError,
    Vault,
    purpose,
    read_keys,
)
from foliot.testing.fixtures import InMemoryKeys, a_vault

HERE, IT = WorkspaceId(uuid4()), SecretId(uuid4())
FOR = purpose(HERE, IT, 3)


def test_what_is_sealed_comes_back_and_is_never_sealed_the_same_way_twice() -> None:
    vault = a_vault()
    one, two = vault.seal(FOR, b"value"), vault.seal(FOR, b"value")
    assert one.box != two.box
    assert b"value" not in one.box
    assert vault.open(FOR, one) == vault.open(FOR, two) == b"value"


@pytest.mark.parametrize(
    "other",
    [purpose(WorkspaceId(uuid4()), IT, 3), purpose(HERE, SecretId(uuid4()), 3), purpose(HERE, IT, 2)],
    ids=["workspace", "id", "version"],
)
def test_moved_to_another_place_it_does_not_open(other: bytes) -> None:
    vault = a_vault()
    with pytest.raises(UnreadableError) as refused:
        vault.open(other, vault.seal(FOR, b"value"))
    assert refused.value.is_known


def test_every_bit_of_it_matters() -> None:
    vault = a_vault()
    key_id, box = vault.seal(FOR, b"value")
    for place in range(len(box)):
        touched = box[:place] + bytes((box[place] ^ 1,)) + box[place + 1 :]
        with pytest.raises(UnreadableError):
            vault.open(FOR, SealedValue(key_id, touched))
    for cut in (0, 5, 12, len(box) - 1):
        with pytest.raises(UnreadableError):
            vault.open(FOR, SealedValue(key_id, box[:cut]))


def test_another_key_opens_nothing_even_under_the_id_of_the_right_one() -> None:
    right, wrong = MasterKey.new(), MasterKey.new()
    sealed = a_vault(right).seal(FOR, b"value")
    with pytest.raises(UnreadableError) as unknown:
        a_vault(wrong).open(FOR, sealed)
    assert not unknown.value.is_known
    with pytest.raises(UnreadableError):
        a_vault(wrong).open(FOR, SealedValue(wrong.id, sealed.box))


def test_older_keys_open_and_the_first_one_seals() -> None:
    old, new = MasterKey.new(), MasterKey.new()
    sealed = a_vault(old).seal(FOR, b"value")
    vault = a_vault(new, old)
    assert vault.open(FOR, sealed) == b"value"
    assert vault.seal(FOR, b"value").key_id == new.id


def test_a_key_that_another_process_has_added_is_found_when_it_is_met() -> None:
    shared = InMemoryKeys(MasterKey.new())
    one, two = Vault(shared), Vault(shared)
    one.renew()
    assert two.open(FOR, one.seal(FOR, b"value")) == b"value"


def test_keys_that_were_given_are_not_added_to() -> None:
    with pytest.raises(Conflict, match="FOLIOT_MASTER_KEY"):
        Vault(FixedKeys([MasterKey.new()])).renew()


def test_without_a_key_nothing_is_sealed_and_the_self_test_has_nothing_to_say() -> None:
    vault = Vault(FixedKeys())
    vault.check()
    with pytest.raises(Unavailable, match="no master key"):
        vault.seal(FOR, b"value")


def test_the_self_test_passes_where_encryption_works() -> None:
    a_vault().check()


def test_the_self_test_finds_encryption_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Vault, "seal", lambda self, purpose, plain: SealedValue(self.present, plain))
    monkeypatch.setattr(Vault, "open", lambda self, purpose, sealed: sealed.box)
    with pytest.raises(Unavailable, match="self-test"):
        a_vault().check()


def test_neither_a_key_nor_a_vault_shows_what_it_holds() -> None:
    key = MasterKey.new()
    shown = f"{key!r} {a_vault(key)!r}"
    assert key.text not in shown
    assert key.raw.hex() not in shown
    assert repr(key.raw) not in shown


def test_keys_are_read_in_base64_and_hex_one_or_several() -> None:
    one, two = os.urandom(32), os.urandom(32)
    padded, bare = base64.b64encode(one).decode(), base64.urlsafe_b64encode(two).decode().rstrip("=")
    both = [MasterKey.of(one), MasterKey.of(two)]
    assert read_keys(f"{padded},{bare}", "here") == both
    assert read_keys(f"# ours\n{one.hex()}\n{two.hex().upper()} # until May\n{padded}\n", "here") == both
    assert read_keys(both[0].text, "here") == both[:1]


WEAK = [
    "", " ", "#", "secret", "changeme", "password", "foliot", "0" * 32, "0" * 64, "f" * 64, "deadbeef" * 8, "0123456789abcdef" * 4,
    "A" * 43, "A" * 44, "AAAAAAAA" * 5 + "AAA=", "x" * 43 + "!", base64.b64encode(b"short").decode(),
    base64.b64encode(b"password" * 4).decode(), base64.b64encode(b"\x00\x01" * 16).decode(), base64.b64encode(bytes(31)).decode(),
    base64.b64encode(bytes(33)).decode(), "fol_12345678_abc",
]  # fmt: skip


@pytest.mark.parametrize("text", WEAK)
def test_what_is_no_key_or_a_weak_one_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_keys(text, "FOLIOT_MASTER_KEY")
    assert "FOLIOT_MASTER_KEY" in refused.value.message
    assert len(text) < 6 or text not in f"{refused.value.message} {refused.value.hint}".replace("foliot", "")
