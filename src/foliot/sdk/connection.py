"""Where the server is and which key opens it: arguments, then FOLIOT_API_URL and FOLIOT_API_KEY, then foliot.toml, then the
server of this folder and the `admin.key` that it keeps in its data directory.

Why: docs/decisions/801-client-address-key-and-repeats.md
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx2

from foliot.sdk.errors import FoliotApiError, Unauthorized
from foliot.settings import ADDRESS_FILE, FILE_SUFFIX, PREFIX, Settings, SettingsError, load

try:
    import fcntl
except ImportError:  # where there are no such locks, there is no server either
    fcntl = None  # type: ignore[assignment]

# What a client reads. A slip in a setting of the server is none of its business.
_READ = frozenset(
    PREFIX + name
    for name in (
        "API_URL",
        "API_KEY",
        "API_KEY" + FILE_SUFFIX,
        "CA_FILE",
        "CONFIG",
        "DATA_DIR",
        "HOST",
        "PORT",
    )
)
LONGEST_ADDRESS = 300
_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # the address to listen on, not to call


@dataclass(frozen=True, slots=True)
class Place:
    url: str
    key: str = field(repr=False)
    is_local: bool
    ca: Path | None = None  # certificates to trust in the place of the machine's


def find(
    url: str | None = None,
    key: str | None = None,
    ca: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Place:
    """Raises Unauthorized where no key can be found, and says how to give one."""
    environ = os.environ if environ is None else environ
    settings = _settings({name: environ[name] for name in _READ & environ.keys()}, cwd or Path.cwd())
    url = (url or _url(settings)).rstrip("/")
    is_local = _is_loopback(url)
    # The key of this folder's server opens everything in it: it is never sent to another machine.
    key = key or settings.api_key or (_kept(settings.data_dir) if is_local else None)
    if key is None:
        raise Unauthorized(
            f"There is no key for {url}.",
            code="no_key",
            hint=f"Set FOLIOT_API_KEY or give key=. Looked for {settings.data_dir / 'admin.key'} too, which "
            "`foliot serve` makes."
            if is_local
            else "Set FOLIOT_API_KEY or give key=.",
        )
    return Place(url, key, is_local, ca or settings.ca_file)


def _settings(environ: Mapping[str, str], cwd: Path) -> Settings:
    try:
        return load(environ, {}, cwd)
    except SettingsError as error:
        hint = next((each.hint for each in error.problems if each.hint), None)
        raise FoliotApiError(str(error), code=error.code, hint=hint) from None


def _url(settings: Settings) -> str:
    """Where FOLIOT_API_URL is not set, this folder's server says where it listens; else its settings do."""
    if settings.origins["api_url"] != "default":
        return settings.api_url
    living = _address(settings.data_dir)
    if living is not None and _is_loopback(living):  # it names servers of this machine alone
        return living
    host = "127.0.0.1" if settings.host in _EVERYWHERE else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{settings.port}" if settings.port else settings.api_url


def _address(data_dir: Path) -> str | None:
    """What a server that lives keeps locked. What a dead one left is not believed: the port may be anybody's by now."""
    if fcntl is None:
        return None
    try:
        with (data_dir / ADDRESS_FILE).open(encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(LONGEST_ADDRESS).strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _is_loopback(url: str) -> bool:
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        raise FoliotApiError(
            f"{url!r} is not an address: {error}",
            code="setting.invalid",
            hint="Such as http://127.0.0.1:8700.",
        ) from None
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _kept(data_dir: Path) -> str | None:
    try:
        return (data_dir / "admin.key").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
