"""Which address Foliot takes, and how it says why it cannot."""

from __future__ import annotations

import errno
import socket
import stat
from pathlib import Path

import pytest

from foliot.domain.errors import Conflict, Invalid
from foliot.wiring.database import write_admin_key
from foliot.wiring.listener import cannot_listen, listener, url_of
from foliot.wiring.policies import is_loopback


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("localhost", "http://")],
)
def test_port_0_takes_a_free_one_and_the_address_can_be_opened(host: str, shown: str) -> None:
    with listener(host, 0) as taken:
        assert url_of(taken).startswith(shown)
        assert not url_of(taken).endswith(":0")


def test_a_taken_port_is_a_conflict_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"Port {port} on 127.0.0.1 is taken"), listener("127.0.0.1", port):
            pass


def test_a_host_that_is_not_here_is_refused_with_a_hint() -> None:
    with (
        pytest.raises(Invalid, match=r"cannot listen on host 'no\.such\.host\.invalid'"),
        listener("no.such.host.invalid", 0),
    ):
        pass
    assert "1024" in str(cannot_listen("127.0.0.1", 80, OSError(errno.EACCES, "x")).hint)


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("foliot.test", False),
    ],
)
def test_loopback_is_known(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_the_key_file_is_ours_alone_and_an_older_one_is_kept_aside(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    for key in ("fol_one", "fol_two"):
        path = write_admin_key(data_dir, key)
        assert path.read_text() == key + "\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (data_dir / "admin.key.old").read_text() == "fol_one\n"
