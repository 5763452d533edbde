"""Find the server, its key, and the certificates to trust.

Sources in order: arguments, FOLIOT_API_URL and FOLIOT_API_KEY, foliot.toml, then the server of this folder and the
`admin.key` in its data directory.

Why: docs/decisions/801-client-address-key-and-repeats.md, docs/decisions/321-remote-workers-trust.md
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx2

from foliot.sdk.errors import FoliotApiError, Unauthorized
from foliot.settings import ADDRESS_FILE, FILE_SUFFIX, PREFIX, Settings, SettingsError, load

try:
    import fcntl
except ImportError:  # Windows: no file locks, and no server either
    fcntl = None  # type: ignore[assignment]

# The settings of a client. It does not check settings of the server.
_CLIENT_SETTINGS = frozenset(
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
MAX_ADDRESS = 300
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # the address to listen on, not to call


@dataclass(frozen=True, slots=True)
class Connection:
    url: str
    key: str = field(repr=False)
    is_local: bool
    ca: Path | None = None  # certificates to trust instead of the machine's


def resolve_connection(
    url: str | None = None,
    key: str | None = None,
    ca: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Connection:
    """Raise Unauthorized if there is no key, with a hint how to pass one."""
    environ = os.environ if environ is None else environ
    settings = _load_settings(
        {name: environ[name] for name in _CLIENT_SETTINGS & environ.keys()}, cwd or Path.cwd()
    )
    url = (url or _default_url(settings)).rstrip("/")
    is_local = _is_loopback(url)
    # The admin key of this folder's server is never sent to another machine.
    key = key or settings.api_key or (_read_admin_key(settings.data_dir) if is_local else None)
    if key is None:
        raise Unauthorized(
            f"No API key for {url}.",
            code="no_key",
            hint=f"Set FOLIOT_API_KEY or give key=. Looked for {settings.data_dir / 'admin.key'} too, which "
            "`foliot serve` makes."
            if is_local
            else "Set FOLIOT_API_KEY or give key=.",
        )
    return Connection(url, key, is_local, ca or settings.ca_file)


def _load_settings(environ: Mapping[str, str], cwd: Path) -> Settings:
    try:
        return load(environ, {}, cwd)
    except SettingsError as error:
        hint = next((each.hint for each in error.problems if each.hint), None)
        raise FoliotApiError(str(error), code=error.code, hint=hint) from None


def _default_url(settings: Settings) -> str:
    """Return the URL of this folder's running server, or else the one in its settings."""
    if settings.origins["api_url"] != "default":
        return settings.api_url
    living = _running_server_url(settings.data_dir)
    if living is not None and _is_loopback(living):  # the file names only servers of this machine
        return living
    host = "127.0.0.1" if settings.host in _ANY_ADDRESS else settings.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{settings.port}" if settings.port else settings.api_url


def _running_server_url(data_dir: Path) -> str | None:
    """Read the address file of a running server. Ignore one without a lock: its server is gone, and the port may be taken."""
    if fcntl is None:
        return None
    try:
        with (data_dir / ADDRESS_FILE).open(encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(MAX_ADDRESS).strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _is_loopback(url: str) -> bool:
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        raise FoliotApiError(
            f"{url!r} is not a URL: {error}",
            code="setting.invalid",
            hint="Example: http://127.0.0.1:8700.",
        ) from None
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _read_admin_key(data_dir: Path) -> str | None:
    try:
        return (data_dir / "admin.key").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def ssl_context(connection: Connection) -> ssl.SSLContext:
    """Return a context that trusts the given file, or else the machine's certificates, SSL_CERT_FILE and SSL_CERT_DIR."""
    if connection.ca is None:
        return httpx2.create_ssl_context(trust_env=True)
    try:
        return ssl.create_default_context(cafile=connection.ca)
    except (OSError, ssl.SSLError) as error:
        raise FoliotApiError(
            f"{connection.ca} has no readable certificates: {error}",
            code="setting.invalid",
            hint="The file must hold certificates as PEM, such as that of your own authority.",
        ) from None
