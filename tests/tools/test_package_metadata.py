"""The metadata of wheel and sdist, as hatchling builds them: no link of the README leads nowhere on a package index."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from tools.package_metadata import long_description

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://forge.example/acme/foliot"
LINK = re.compile(r"\]\(([^)]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files that decide about the metadata, with little of the code."""
    folder = tmp_path / "project"
    (folder / "src" / "foliot").mkdir(parents=True)
    (folder / "src" / "foliot" / "__init__.py").touch()
    (folder / "tools").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "tools/package_metadata.py"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("images", "*.py"))
    return folder


@pytest.mark.parametrize("address", ["", ADDRESS, f"{ADDRESS}/"])
def test_wheel_and_sdist_have_no_relative_link(
    project: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("PROJECT_URL", address)
    subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=project, check=True, capture_output=True)
    for built in (of_wheel(project), of_sdist(project)):
        text = built.get_payload()
        assert isinstance(text, str)
        links = [one or other for one, other in LINK.findall(without_code(text))]
        assert [each for each in links if not each.startswith("https://")] == []
        assert "[The tutorial](docs/tutorial.md)" not in text
        assert "The tutorial" in text
        addresses = dict(each.split(", ") for each in built.get_all("Project-URL", []))
        if not address:
            assert (links, addresses) == ([], {})
            assert "<picture>" not in text
            assert "The page Today of the console" in text
            continue
        assert addresses == {
            "Homepage": ADDRESS,
            "Documentation": f"{ADDRESS}/blob/HEAD/docs/README.md",
            "Changelog": f"{ADDRESS}/blob/HEAD/CHANGELOG.md",
            "Issues": f"{ADDRESS}/issues",
        }
        assert f"[The tutorial]({ADDRESS}/blob/HEAD/docs/tutorial.md)" in text
        assert f'src="{ADDRESS}/raw/HEAD/docs/images/today-light.png"' in text


def test_code_anchors_and_addresses_stay_as_they_are() -> None:
    readme = "[`a[0]`](b.md) [c](#d) [e](https://f.example) ![g](h.png)\n```\n[i](j.md)\n```\n"
    assert long_description(readme, "") == ("`a[0]` [c](#d) [e](https://f.example) g\n```\n[i](j.md)\n```\n")
    assert long_description(readme, ADDRESS) == (
        f"[`a[0]`]({ADDRESS}/blob/HEAD/b.md) [c](#d) [e](https://f.example) ![g]({ADDRESS}/raw/HEAD/h.png)\n"
        "```\n[i](j.md)\n```\n"
    )


def of_wheel(project: Path) -> Message:
    [path] = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        [name] = [each for each in wheel.namelist() if each.endswith("/METADATA")]
        return message_from_string(wheel.read(name).decode())


def of_sdist(project: Path) -> Message:
    [path] = (project / "dist").glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = sdist.getnames()
        assert any(name.endswith("tools/package_metadata.py") for name in names)  # a build from it needs that
        [name] = [each for each in names if each.endswith("/PKG-INFO")]
        file = sdist.extractfile(name)
        assert file is not None
        return message_from_string(file.read().decode())


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
