"""What goes wrong is said in one sentence, with what to do next."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.locks import serve_lock
from foliot.embedded.server import EmbeddedServer, start

Run = Callable[..., EmbeddedServer]
LIMITED = """
import resource, sys
from pathlib import Path
from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
try:
    start(EmbeddedConfig(Path(sys.argv[1])))
except DatabaseUnavailable as error:
    print(error.message, error.hint)
"""


def test_a_file_in_the_way_of_the_directory_is_named(fresh: EmbeddedConfig, folder: Path) -> None:
    (folder / "file").touch()
    for path in (folder / "file", folder / "file" / "inside"):
        with pytest.raises(
            DatabaseUnavailable, match=f"cannot write to its data directory {path}"
        ) as refused:
            start(replace(fresh, data_dir=path))
        assert "FOLIOT_DATA_DIR" in str(refused.value.hint)


def test_an_unwritable_directory_is_named(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    lowered = os.geteuid() == 0  # root could write anyway, so for once be another user
    if lowered:
        os.seteuid(65534)
    try:
        for path in (closed, closed / "inside"):
            with pytest.raises(DatabaseUnavailable, match=f"{path}: Permission denied"):
                start(EmbeddedConfig(path))
            with pytest.raises(DatabaseUnavailable, match=f"{path}: Permission denied"), serve_lock(path):
                pass
    finally:
        if lowered:
            os.seteuid(0)


def test_another_major_version_is_answered_with_the_commands(config: EmbeddedConfig) -> None:
    written_by = config.data_dir / "postgres" / "data" / "PG_VERSION"
    written_by.write_text("14\n")
    with pytest.raises(DatabaseUnavailable, match="was written by PostgreSQL 14") as refused:
        start(config)
    hint = str(refused.value.hint)
    home, old = config.data_dir / "postgres", "FOLIOT_PG_BINDIR=/usr/lib/postgresql/14/bin"
    assert f"{old} FOLIOT_DATA_DIR={config.data_dir} foliot db dump {config.data_dir}/from-14.dump\n" in hint
    assert f"mv {home} {home}-14\n" in hint
    assert f"mv {config.data_dir}/postgres.json {home}-14/\n" in hint
    assert hint.endswith(
        f"FOLIOT_DATA_DIR={config.data_dir} foliot db restore {config.data_dir}/from-14.dump"
    )
    assert written_by.read_text() == "14\n"


def test_a_limit_on_file_size_is_reported_as_a_full_disk(
    folder: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    said, _ = spawn(LIMITED, folder / "data").communicate()
    assert f"No space for the database in {folder / 'data'}" in said
    assert "File too large" in said
    assert "MiB free" in said
    assert not list((folder / "data").rglob("data.new"))


def test_a_full_disk_is_named_on_the_first_start_and_gets_its_room_back(small_disk: Path) -> None:
    with pytest.raises(
        DatabaseUnavailable, match=rf"No space left on device. The file system {small_disk} has \d+ MiB free"
    ) as refused:
        start(EmbeddedConfig(small_disk / "data"))
    assert str(small_disk) in str(refused.value.hint)
    assert shutil.disk_usage(small_disk).used < 2**20


def test_a_disk_that_fills_up_later_is_named_and_loses_nothing(
    config: EmbeddedConfig, small_disk: Path, run: Run
) -> None:
    subprocess.run(("mount", "-o", "remount,size=120m", small_disk), check=True)
    shutil.copytree(config.data_dir, small_disk / "data")
    (small_disk / "data").chmod(0o711)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while (left := shutil.disk_usage(small_disk).free) > 0:
            file.write(bytes(left))
    with pytest.raises(DatabaseUnavailable, match="No space left on device"):
        run(data_dir=small_disk / "data")
    filler.unlink()
    run(data_dir=small_disk / "data").stop()


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """Needs the right to mount; without it the limit on file size above stands in for a full disk."""
    where = folder / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ("mount", "-t", "tmpfs", "-o", "size=24m,mode=0711", "none", where), check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"may not mount a small disk: {mounted.stderr.decode().strip()}")
    yield where
    subprocess.run(("umount", where), check=True)
