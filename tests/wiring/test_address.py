"""A server says in its data directory where it listens, for as long as it does; its clients find it there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from foliot.sdk.connection import resolve_connection
from foliot.wiring.listener import publish_address

URL = "http://127.0.0.1:12345"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    found = tmp_path / ".foliot"
    found.mkdir()
    (found / "admin.key").write_text("local-key\n")
    return found


def test_a_client_of_this_folder_finds_the_server_that_lives(data_dir: Path) -> None:
    with publish_address(data_dir, URL):
        place = resolve_connection(environ={}, cwd=data_dir.parent)
        assert (place.url, place.key) == (URL, "local-key")
        assert resolve_connection(environ={"FOLIOT_PORT": "9000"}, cwd=data_dir.parent).url == URL
        named = {"FOLIOT_API_URL": "http://127.0.0.1:1", "FOLIOT_API_KEY": "k"}
        assert resolve_connection(environ=named, cwd=data_dir.parent).url == "http://127.0.0.1:1"
        assert (
            resolve_connection("http://127.0.0.1:2", environ={}, cwd=data_dir.parent).url
            == "http://127.0.0.1:2"
        )
    assert not (data_dir / "address").exists()
    assert resolve_connection(environ={}, cwd=data_dir.parent).url == "http://127.0.0.1:8700"


def test_what_a_killed_server_left_is_not_believed(data_dir: Path) -> None:
    """Another program may have its port by now, and the key of this folder would be sent there."""
    script = (
        "import os, sys; from pathlib import Path; from foliot.wiring.listener import publish_address\n"
        "with publish_address(Path(sys.argv[1]), sys.argv[2]): print('kept', flush=True); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run(
        (sys.executable, "-c", script, data_dir, URL), capture_output=True, text=True, check=False
    )
    assert (died.stdout, died.returncode) == ("kept\n", -9)
    assert (data_dir / "address").read_text() == f"{URL}\n"
    assert resolve_connection(environ={}, cwd=data_dir.parent).url == "http://127.0.0.1:8700"
    with publish_address(data_dir, "http://127.0.0.1:5"):
        assert resolve_connection(environ={}, cwd=data_dir.parent).url == "http://127.0.0.1:5"


def test_the_first_of_two_servers_with_one_directory_is_named(data_dir: Path) -> None:
    with publish_address(data_dir, URL):
        with publish_address(data_dir, "http://127.0.0.1:2"):
            assert resolve_connection(environ={}, cwd=data_dir.parent).url == URL
        assert resolve_connection(environ={}, cwd=data_dir.parent).url == URL


def test_no_address_of_another_machine_is_taken_from_a_folder(data_dir: Path) -> None:
    """A folder may belong to another user, and the key that is sent comes from the environment."""
    for url in ("http://203.0.113.7:8700", "https://evil.example.test"):
        with publish_address(data_dir, url):
            assert (
                resolve_connection(environ={"FOLIOT_API_KEY": "k"}, cwd=data_dir.parent).url
                == "http://127.0.0.1:8700"
            )


def test_a_server_goes_on_where_its_address_cannot_be_kept(tmp_path: Path) -> None:
    with publish_address(tmp_path / "not there", URL):
        pass


def test_a_link_is_not_followed(data_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (data_dir / "address").symlink_to(other)
    with publish_address(data_dir, URL):
        pass
    assert other.read_text() == "precious"
