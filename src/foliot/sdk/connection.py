"""Find the server, its key, and the certificates to trust.

Sources in order: arguments, a profile, FOLIOT_API_URL and FOLIOT_API_KEY, foliot.toml, then the server of this folder and
the `admin.key` in its data directory.

Why: docs/decisions/801-client-address-key-and-repeats.md, docs/decisions/321-remote-workers-trust.md
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from foliot.sdk.errors import FoliotApiError, Unauthorized
from foliot.sdk.profiles import Profile, read_profile
from foliot.settings import ADDRESS_FILE, ClientSettings, SettingsError, load_client

try:
    import fcntl
except ImportError:  # Windows: no file locks, and no server either
    fcntl = None  # type: ignore[assignment]

MAX_ADDRESS = 300
_ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # the address to listen on, not to call


@dataclass(frozen=True, slots=True)
class Connection:
    url: str
    key: str = field(repr=False)
    is_local: bool
    ca: Path | None = None  # certificates to trust instead of the machine's
    workspace: str | None = None
    transport: Any = None  # of httpx2: where requests go instead of the network
    is_brief: bool = (
        False  # a few requests by one thread: to start fast matters more than to keep connections
    )


def resolve_connection(
    url: str | None = None,
    key: str | None = None,
    ca: Path | None = None,
    *,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Connection:
    """Raise Unauthorized if there is no key, with a hint how to pass one."""
    environ = os.environ if environ is None else environ
    settings = _load_settings(environ, cwd or Path.cwd())
    if url is not None and profile is not None:
        raise FoliotApiError("Give an address or a profile, not both.", code="invalid")
    name = profile or (settings.profile if url is None else None)
    if name is not None:
        return _connect_by_profile(read_profile(name, environ), key, ca)
    given = url is not None
    url = (url or _default_url(settings)).rstrip("/")
    is_local = _is_loopback(url)
    if key is None and settings.api_key is not None and not _may_send_key(settings, named_by_caller=given):
        raise Unauthorized(
            f"{url} comes from {settings.origins['api_url']}, and FOLIOT_API_KEY does not: the key is not sent there.",
            code="no_key",
            hint="Set FOLIOT_API_URL as well, or give the address on the command line.",
        )
    key = key or settings.api_key or (_folder_key(settings, url) if is_local else None)
    if key is None:
        raise Unauthorized(
            f"No API key for {url}.",
            code="no_key",
            hint=f"Set FOLIOT_API_KEY or give key=. Looked for {settings.data_dir / 'admin.key'} too, which "
            "`foliot serve` makes."
            if is_local
            else "Set FOLIOT_API_KEY or give key=.",
        )
    return Connection(url, key, is_local, ca or settings.ca_file, settings.workspace)


def _may_send_key(settings: ClientSettings, *, named_by_caller: bool) -> bool:
    """Return whether the key may go to the address: a file found in the current folder must not choose who gets a key from elsewhere."""
    address, key = settings.origins["api_url"], settings.origins["api_key"]
    is_found_here = address.endswith("foliot.toml") and settings.origins.get("config") == "default"
    return named_by_caller or not is_found_here or key == address


def _folder_key(settings: ClientSettings, url: str) -> str | None:
    """Return the admin key of this folder's server. It is sent to that server alone: where it does not run, another program may
    listen on its port, and gets an empty key.
    """
    key, running = _read_admin_key(settings.data_dir), _running_server_url(settings.data_dir)
    if key is None or (running is not None and urlsplit(running).port == urlsplit(url).port):
        return key
    return ""


def _connect_by_profile(profile: Profile, key: str | None, ca: Path | None) -> Connection:
    """Use nothing but the profile and the arguments: a key of the environment may be that of another server."""
    key = key or profile.key
    if key is None:
        raise Unauthorized(
            f'The profile "{profile.name}" has no key.',
            code="no_key",
            hint="Add key_file to it, or give key=.",
        )
    return Connection(profile.url, key, _is_loopback(profile.url), ca or profile.ca_file, profile.workspace)


def _load_settings(environ: Mapping[str, str], cwd: Path) -> ClientSettings:
    try:
        return load_client(environ, cwd)
    except SettingsError as error:
        hint = next((each.hint for each in error.problems if each.hint), None)
        raise FoliotApiError(str(error), code=error.code, hint=hint) from None


def _default_url(settings: ClientSettings) -> str:
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
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018  # raises ValueError unless it is a port
    except ValueError as error:
        raise _not_a_url(url, str(error)) from None
    if not host or parts.scheme not in {"http", "https"}:
        raise _not_a_url(url, "it has no http:// or https:// and host")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _not_a_url(url: str, why: str) -> FoliotApiError:
    return FoliotApiError(
        f"{url!r} is not a URL: {why}.", code="setting.invalid", hint="Example: http://127.0.0.1:8700."
    )


def _read_admin_key(data_dir: Path) -> str | None:
    try:
        return (data_dir / "admin.key").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def ssl_context(connection: Connection) -> ssl.SSLContext:
    """Return a context that trusts the given file, or else the machine's certificates, SSL_CERT_FILE and SSL_CERT_DIR."""
    if connection.ca is None:
        import httpx2  # noqa: PLC0415  # a connection by http needs none

        return httpx2.create_ssl_context(trust_env=True)
    try:
        return ssl.create_default_context(cafile=connection.ca)
    except (OSError, ssl.SSLError) as error:
        raise FoliotApiError(
            f"{connection.ca} has no readable certificates: {error}",
            code="setting.invalid",
            hint="The file must hold certificates as PEM, such as that of your own authority.",
        ) from None
