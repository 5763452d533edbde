"""How `./dev` makes its virtual environment: once, whole, and for the folder it is in. Packages are not really installed."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parents[1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("dev", "requirements.lock", "pyproject.toml"):
        shutil.copy(HERE / name, folder / name)
    return folder


def test_two_at_once_in_a_fresh_clone_install_once(clone: Path) -> None:
    dev, calls = script(clone)
    together = threading.Barrier(2)

    def install() -> None:
        together.wait()
        dev.install()

    with ThreadPoolExecutor(2) as threads:
        for done in (threads.submit(install), threads.submit(install)):
            done.result()
    assert [call[0] for call in calls] == ["venv", "pip", "pip"]
    assert (clone / ".venv" / "foliot.stamp").exists()


def test_a_copied_clone_does_not_run_the_code_of_the_old_one(clone: Path, tmp_path: Path) -> None:
    dev, calls = script(clone)
    dev.install()
    dev.install()
    assert len(calls) == 3
    shutil.copytree(clone, tmp_path / "copy")
    there, calls = script(tmp_path / "copy")
    there.install()
    assert len(calls) == 3


def test_the_old_environment_stays_until_the_new_one_is_whole(clone: Path) -> None:
    dev, _ = script(clone)
    dev.install()
    (clone / ".venv" / "old").touch()
    (clone / "requirements.lock").write_text("changed")
    dev.uv = lambda *args: int(args[0] == "pip")
    with pytest.raises(SystemExit):
        dev.install()
    assert (clone / ".venv" / "old").exists()
    dev, _ = script(clone)
    dev.install()
    assert not (clone / ".venv" / "old").exists()
    assert [path.name for path in clone.glob(".venv*")] == [".venv"]


def test_uv_gets_the_index_and_the_certificates_of_pip(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, _ = script(clone)
    forget_settings(monkeypatch)
    file = tmp_path / ".config" / "pip" / "pip.conf"
    file.parent.mkdir(parents=True)
    file.write_text("[global]\nindex-url = https://mirror.example/simple\ncert = /etc/company.pem\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("PIP_CONFIG_FILE")
    assert dev.settings_of_uv() == {
        "UV_SYSTEM_CERTS": "true",
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "SSL_CERT_FILE": "/etc/company.pem",
    }
    dev.setting_of_pip.cache_clear()
    monkeypatch.setenv("PIP_INDEX_URL", "https://other.example/simple")
    monkeypatch.setenv("PIP_CERT", "/etc/other.pem")
    assert dev.settings_of_uv() == {
        "UV_SYSTEM_CERTS": "true",
        "UV_DEFAULT_INDEX": "https://other.example/simple",
        "SSL_CERT_FILE": "/etc/other.pem",
    }


def test_pip_gets_the_certificates_that_the_environment_names(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, _ = script(clone)
    forget_settings(monkeypatch)
    assert dev.certificates_of_pip() == {}
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/company.pem")
    assert dev.certificates_of_pip() == {"PIP_CERT": "/etc/company.pem"}
    dev.setting_of_pip.cache_clear()
    monkeypatch.setenv("PIP_CERT", "/etc/other.pem")
    assert dev.certificates_of_pip() == {}


def forget_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no setting of pip or of certificates from this machine."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "SSL_CERT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_without_a_browser_the_tests_say_how_to_get_one(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dev, _ = script(clone)
    monkeypatch.delenv("FOLIOT_TEST_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(clone))
    dev.print_how_to_use_a_browser()
    assert "apt-get install chromium" in capsys.readouterr().out


def script(clone: Path) -> tuple[Any, list[tuple[str, ...]]]:
    """The script of that clone, with a uv that makes folders and remembers what it was asked."""
    loader = SourceFileLoader("dev", str(clone / "dev"))
    spec = spec_from_loader("dev", loader)
    assert spec is not None
    dev: Any = module_from_spec(spec)
    loader.exec_module(dev)
    calls: list[tuple[str, ...]] = []

    def uv(*args: str) -> int:
        calls.append(args)
        if args[0] == "venv":
            Path(args[-1]).mkdir()
        return 0

    dev.uv = uv
    return dev, calls
