"""PgBouncer in transaction mode: each transaction may use either of its two server connections."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from foliot.storage.server import RetryPeriod
from foliot.testing.database import as_unprivileged, unprivileged_user

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class PgBouncer:
    def __init__(self, server_url: str) -> None:
        self._server = conninfo_to_dict(server_url)
        self._folder = tempfile.TemporaryDirectory(prefix="foliot-bouncer-")

    @property
    def url(self) -> str:
        user = str(self._server["user"])
        return make_conninfo(host=self._folder.name, port=6432, dbname="pooled", user=user)

    def start(self) -> None:
        self._process = subprocess.Popen(
            as_unprivileged(Path(str(PGBOUNCER)), "-q", f"{self._folder.name}/ini"), stderr=subprocess.DEVNULL
        )
        waiting = RetryPeriod(20)
        while not Path(self._folder.name, ".s.PGSQL.6432").exists():
            assert self._process.poll() is None
            assert waiting.again()

    def kill(self) -> None:
        """As a crash would: sockets and clients are left as they are."""
        self._process.kill()
        self._process.wait(timeout=10)
        for left in Path(self._folder.name).glob(".s.PGSQL.*"):
            left.unlink()

    def __enter__(self) -> Self:
        folder, server = self._folder.name, self._server
        os.chown(folder, *unprivileged_user())
        target = " ".join(
            f"{name}={server[name]}" for name in ("host", "port", "dbname", "user") if name in server
        )
        Path(folder, "users").write_text(f'"{server["user"]}" "{server.get("password") or ""}"\n')
        Path(folder, "ini").write_text(
            f"[databases]\npooled = {target}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
            f"auth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\ndefault_pool_size = 2\n"
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=10)
        self._folder.cleanup()
