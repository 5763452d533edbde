"""Master keys from a file and from the setting: kept for one user alone, added whole, refused where they are none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from foliot.domain.errors import Conflict, Invalid
from foliot.services.secrets.vault import MasterKey, SealedValue, Vault
from foliot.settings import load
from foliot.wiring.master_keys import FILE, KeyFile, given_keys, vault_of

FOR = b"a purpose"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_first_key_makes_the_file_and_later_ones_stand_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    vault = vault_of((), folder)
    assert vault.present is None
    first = vault.renew()
    sealed = vault.seal(FOR, b"value")
    second = vault.renew()
    assert vault.known == (second, first)
    assert mode(folder / FILE) == 0o600
    assert [path.name for path in folder.iterdir()] == [FILE]
    again = vault_of((), folder)
    assert (again.known, again.open(FOR, sealed)) == ((second, first), b"value")


def test_a_process_that_read_the_file_before_finds_the_new_key_when_it_meets_it(tmp_path: Path) -> None:
    node = vault_of((), tmp_path / "data")
    node.renew()
    worker = vault_of((), tmp_path / "data")
    node.renew()
    assert worker.open(FOR, node.seal(FOR, b"value")) == b"value"


def test_keys_that_are_in_use_survive_a_file_that_was_spoilt_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vault = vault_of((), tmp_path / "data")
    known = vault.renew()
    (tmp_path / "data" / FILE).write_text("no key at all\n")
    assert not vault.knows("ffffffffffff")
    assert vault.known == (known,)
    assert "master_key.not_read" in caplog.text


@pytest.mark.parametrize("text", ["", "# nothing\n", "changeme\n", "\N{SNOWMAN}\n"])
def test_a_file_that_holds_no_key_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(Invalid, match=FILE):
        Vault(KeyFile(tmp_path / FILE))


def test_a_file_that_others_can_read_is_used_and_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / FILE
    path.write_text(MasterKey.new().text)
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        vault = vault_of((), tmp_path)
        vault.read_again()
    assert vault.present is not None
    assert [record.message for record in caplog.records] == ["master_key.exposed"]


def test_keys_of_the_setting_come_before_the_file_and_cannot_be_added_to(tmp_path: Path) -> None:
    one, two = MasterKey.new(), MasterKey.new()
    vault_of((), tmp_path / "data").renew()
    settings = load({"FOLIOT_MASTER_KEY": f"{one.text}, {two.text}"}, {}, tmp_path)
    vault = vault_of(given_keys(settings), tmp_path / "data")
    assert vault.known == (one.id, two.id)
    with pytest.raises(Conflict):
        vault.renew()
    assert isinstance(vault.seal(FOR, b"value"), SealedValue)


def test_the_setting_may_name_a_file(tmp_path: Path) -> None:
    key = MasterKey.new()
    (tmp_path / "mounted").write_text(f"# from the keeper\n{key.text}\n")
    settings = load({"FOLIOT_MASTER_KEY_FILE": "mounted"}, {}, tmp_path)
    assert given_keys(settings) == (key.text,)
