"""Profiles: several servers by name, in profiles.toml of the user's configuration folder.

[staging]
url = "https://foliot.staging.example"
key_file = "~/.config/foliot/staging.key"
workspace = "acme"                # only for system keys
ca_file = "/etc/ssl/company.pem"  # optional
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foliot.sdk.errors import FoliotApiError

FILE_NAME = "profiles.toml"
KEYS = ("url", "key_file", "workspace", "ca_file")


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    url: str
    key: str | None = field(default=None, repr=False)
    workspace: str | None = None
    ca_file: Path | None = None


def profiles_path(environ: Mapping[str, str]) -> Path:
    folder = environ.get("XDG_CONFIG_HOME") or ""
    return (Path(folder) if folder.startswith("/") else Path.home() / ".config") / "foliot" / FILE_NAME


def read_profile(name: str, environ: Mapping[str, str]) -> Profile:
    """Raise FoliotApiError if there is no such profile, or if it is not valid."""
    path = profiles_path(environ)
    sections = read_profiles(path)
    if name not in sections:
        known = ", ".join(sections) or "none"
        raise _invalid(f'There is no profile "{name}" in {path}.', f"Profiles there: {known}.")
    return _profile(name, sections[name], path)


def read_profiles(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sections of the file by name; none if there is no file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _invalid(f"{path} cannot be read: {error}.") from None
    for name, section in content.items():
        if not isinstance(section, dict):
            raise _invalid(f'"{name}" in {path} is not a section.', f"Write [{name}] and its keys below.")
    return content


def _profile(name: str, section: Mapping[str, Any], path: Path) -> Profile:
    where = f'The profile "{name}" in {path}'
    for key, value in section.items():
        if key not in KEYS:
            raise _invalid(f'{where} has an unknown key "{key}".', f"Known keys: {', '.join(KEYS)}.")
        if not isinstance(value, str) or not value:
            raise _invalid(f'"{key}" of {where[0].lower()}{where[1:]} must be text.')
    url = section.get("url", "")
    if not url.startswith(("http://", "https://")):
        raise _invalid(f"{where} needs a url.", 'Example: url = "https://foliot.example".')
    ca_file = section.get("ca_file")
    return Profile(
        name,
        url.rstrip("/"),
        _read_key(section["key_file"], where, path) if "key_file" in section else None,
        section.get("workspace"),
        None if ca_file is None else _path(ca_file, path),
    )


def _read_key(name: str, where: str, path: Path) -> str | None:
    try:
        return _path(name, path).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _invalid(f"{where} names the key file {name}, which cannot be read: {why}.") from None


def _path(name: str, file: Path) -> Path:
    """Relative paths start at the folder of profiles.toml."""
    return file.parent / Path(name).expanduser()


def _invalid(message: str, hint: str | None = None) -> FoliotApiError:
    return FoliotApiError(message, code="setting.invalid", hint=hint)
