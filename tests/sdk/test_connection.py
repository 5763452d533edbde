"""Where a client looks for its server and its key."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx2
import pytest

from foliot.sdk.connection import resolve_connection
from foliot.sdk.errors import FoliotApiError, Unauthorized, unreachable_error
from foliot.wiring.listener import publish_address


def test_arguments_come_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text('api_url = "http://file:1"\napi_key = "file-key"\n')
    environ = {"FOLIOT_API_URL": "http://environ:2/", "FOLIOT_API_KEY": "environ-key"}
    place = resolve_connection("http://given:3", "given-key", environ=environ, cwd=tmp_path)
    assert (place.url, place.key) == ("http://given:3", "given-key")
    place = resolve_connection(environ=environ, cwd=tmp_path)
    assert (place.url, place.key) == ("http://environ:2", "environ-key")
    place = resolve_connection(environ={}, cwd=tmp_path)
    assert (place.url, place.key) == ("http://file:1", "file-key")


def test_the_workspace_comes_from_the_environment_but_not_for_a_profile(tmp_path: Path) -> None:
    environ = {"FOLIOT_API_KEY": "system-key", "FOLIOT_WORKSPACE": "acme", "XDG_CONFIG_HOME": str(tmp_path)}
    assert resolve_connection(environ=environ, cwd=tmp_path).workspace == "acme"
    (tmp_path / "foliot").mkdir()
    (tmp_path / "foliot" / "key").write_text("other-key")
    (tmp_path / "foliot" / "profiles.toml").write_text('[other]\nurl = "http://other:1"\nkey_file = "key"\n')
    assert resolve_connection(environ=environ, cwd=tmp_path, profile="other").workspace is None


def test_without_any_the_server_of_this_folder_and_its_key_are_used(tmp_path: Path) -> None:
    (tmp_path / ".foliot").mkdir()
    (tmp_path / ".foliot" / "admin.key").write_text("local-key\n")
    with publish_address(tmp_path / ".foliot", "http://127.0.0.1:8700"):
        place = resolve_connection(environ={}, cwd=tmp_path)
    assert (place.url, place.key, place.is_local) == ("http://127.0.0.1:8700", "local-key", True)
    elsewhere = resolve_connection(environ={"FOLIOT_PORT": "9000", "FOLIOT_HOST": "0.0.0.0"}, cwd=tmp_path)
    assert elsewhere.url == "http://127.0.0.1:9000"
    assert "local-key" not in repr(place)


def test_the_key_of_this_folder_never_leaves_this_machine(tmp_path: Path) -> None:
    (tmp_path / ".foliot").mkdir()
    (tmp_path / ".foliot" / "admin.key").write_text("local-key\n")
    with pytest.raises(Unauthorized, match="No API key for https://foliot"):
        resolve_connection("https://foliot.example.test", environ={}, cwd=tmp_path)
    with publish_address(tmp_path / ".foliot", "http://127.0.0.1:8700"):
        assert resolve_connection("http://[::1]:8700", environ={}, cwd=tmp_path).key == "local-key"


def test_another_program_on_the_server_s_port_does_not_get_its_key(tmp_path: Path) -> None:
    """The server was killed, and another user's program listens where it did."""
    (tmp_path / ".foliot").mkdir()
    (tmp_path / ".foliot" / "admin.key").write_text("local-key\n")
    (tmp_path / ".foliot" / "address").write_text("http://127.0.0.1:8700\n")
    assert resolve_connection(environ={}, cwd=tmp_path).key == ""
    with publish_address(tmp_path / ".foliot", "http://127.0.0.1:8700"):
        assert resolve_connection("http://127.0.0.1:9999", environ={}, cwd=tmp_path).key == ""


def test_a_file_in_the_folder_does_not_choose_who_gets_the_key_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text('api_url = "https://evil.example"\n')
    environ = {"FOLIOT_API_KEY": "secret-key"}
    with pytest.raises(Unauthorized, match=r"evil\.example comes from foliot\.toml"):
        resolve_connection(environ=environ, cwd=tmp_path)
    given = resolve_connection("https://good.example", environ=environ, cwd=tmp_path)
    assert (given.url, given.key) == ("https://good.example", "secret-key")
    named = resolve_connection(environ={**environ, "FOLIOT_CONFIG": "foliot.toml"}, cwd=tmp_path)
    assert named.url == "https://evil.example"


def test_no_key_is_reported_with_the_ways_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(Unauthorized) as refused:
        resolve_connection(environ={}, cwd=tmp_path)
    assert refused.value.code == "no_key"
    assert "FOLIOT_API_KEY" in str(refused.value)
    assert str(tmp_path / ".foliot" / "admin.key") in str(refused.value)


def test_a_slip_in_a_setting_of_the_server_does_not_stop_a_client(tmp_path: Path) -> None:
    environ = {"FOLIOT_API_KEY": "key", "FOLIOT_WROKER_LEASE": "1", "FOLIOT_DATABASE_URL": "nonsense"}
    assert resolve_connection(environ=environ, cwd=tmp_path).key == "key"
    with pytest.raises(FoliotApiError, match="FOLIOT_API_URL"):
        resolve_connection(environ=environ | {"FOLIOT_API_URL": "ftp://x"}, cwd=tmp_path)


def test_a_server_that_speaks_no_tls_is_reported_as_one() -> None:
    broken = httpx2.ConnectError("[SSL] record layer failure")
    broken.__cause__ = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    assert "does not speak TLS" in unreachable_error("https://127.0.0.1:8700", broken).message
