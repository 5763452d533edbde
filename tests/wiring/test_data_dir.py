"""Which database the settings mean, and what it takes to bring it up to date."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.wiring.database import DatabaseHandle, migrate_and_inspect, write_admin_key


def test_a_node_on_an_up_to_date_database_needs_no_owner(login_url: str) -> None:
    applied, facts = migrate_and_inspect(DatabaseHandle(login_url, login_url, None))
    assert applied == ()
    assert not facts.one_login


def test_a_link_in_the_place_of_the_key_is_moved_away_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "admin.key").symlink_to(tmp_path / "nowhere")
    path = write_admin_key(tmp_path, "fol_key")
    assert path.read_text() == "fol_key\n"
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert (tmp_path / "admin.key.old").is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_key_that_cannot_be_kept_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "admin.key").mkdir()
    (tmp_path / "admin.key.old").write_text("a file, which a folder cannot replace")
    with pytest.raises(DatabaseUnavailable, match=r"admin\.key: Not a directory"):
        write_admin_key(tmp_path, "fol_key")
