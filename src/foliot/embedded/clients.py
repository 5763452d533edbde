"""The client programs (psql, pg_dump, pg_restore) of one version, connected to one database."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from foliot.domain.errors import DatabaseUnavailable
from foliot.embedded.binaries import OLDEST, Binaries, find_client

USER_INFO = re.compile(r"^(postgres(?:ql)?://[^:@/?#]*):([^@/?#]*)@")
IN_QUERY = re.compile(r"(?<=[?&])password=([^&#]*)&?")
WORD = re.compile(r"\s*(\w+)\s*=\s*('(?:\\.|[^'\\])*'|(?:\\.|[^\s'\\])*)")


@dataclass(frozen=True, slots=True)
class ClientAddress:
    """A database address as libpq takes it. Every user can see `text` (`ps`), so the password goes into the environment."""

    text: str
    password: str | None = None

    def environment(self) -> dict[str, str]:
        return {} if self.password is None else {"PGPASSWORD": self.password}


def parse(url: str) -> ClientAddress:
    if url.startswith(("postgresql://", "postgres://")):
        password = None
        if found := USER_INFO.match(url):
            url, password = f"{found[1]}@{url[found.end() :]}", unquote(found[2])
        if found := IN_QUERY.search(url):
            url, password = IN_QUERY.sub("", url).rstrip("?&"), unquote(found[1])
        return ClientAddress(url, password)
    words = WORD.findall(url)
    secret = [_plain(value) for name, value in words if name == "password"]
    return ClientAddress(
        " ".join(f"{name}={value}" for name, value in words if name != "password"),
        secret[-1] if secret else None,
    )


def _plain(value: str) -> str:
    inner = value[1:-1] if value.startswith("'") else value
    return re.sub(r"\\(.)", r"\1", inner)


HEAD = 20  # lines in which pg_restore sets up the session, before any data


def connect(bindir: Path | None, url: str, program: str) -> Clients:
    """Return clients that have `program` and are at least as new as the server at `url`."""
    where = parse(url)
    psql = Clients(find_client("psql", bindir, OLDEST), where, OLDEST)
    server = int(psql.ask("SHOW server_version_num")) // 10_000
    return Clients(find_client(program, bindir, server), where, server)


@dataclass(frozen=True, slots=True)
class Clients:
    programs: Binaries
    where: ClientAddress
    server_major: int

    @property
    def version(self) -> str:
        return self.programs.version

    def run(
        self, program: str, *args: str | Path, connected: bool = True
    ) -> subprocess.CompletedProcess[str]:
        to = (f"--dbname={self.where.text}",) if connected else ()
        return subprocess.run(
            (self.programs / program, *to, *args),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=self._environment(),
        )

    def ask(self, query: str) -> str:
        """Run a query and return its one value."""
        done = self.run("psql", "--no-psqlrc", "--tuples-only", "--no-align", f"--command={query}")
        if done.returncode:
            raise DatabaseUnavailable(
                f"The database does not answer: {done.stderr.strip()}",
                hint="Is the server running, and the address right?",
            )
        return done.stdout.strip()

    def run_restore(self, source: Path, first: str, last: str = "") -> str | None:
        """Run `first`, the dump and `last` in one transaction, committed only when both programs succeed; else return their output.

        It goes through psql: pg_restore alone cannot drop and restore in the same transaction.
        """
        with tempfile.TemporaryFile() as psql_said, tempfile.TemporaryFile() as restore_said:
            player = subprocess.Popen(
                (
                    self.programs / "psql",
                    f"--dbname={self.where.text}",
                    "-X",
                    "-q",
                    "-v",
                    "ON_ERROR_STOP=1",
                    "-f",
                    "-",
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=psql_said,
                env=self._environment(),
            )
            reader = subprocess.Popen(
                (self.programs / "pg_restore", "--no-owner", "--exit-on-error", "--file=-", source),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=restore_said,
                env=self._environment(),
            )
            try:
                succeeded = self._pipe(reader, player, first, last)
            finally:
                for process in (player, reader):
                    process.kill()
                    process.communicate()
            return None if succeeded else _text(psql_said) + _text(restore_said)

    def _pipe(
        self, reader: subprocess.Popen[bytes], player: subprocess.Popen[bytes], first: str, last: str
    ) -> bool:
        script, into = reader.stdout, player.stdin
        assert script is not None
        assert into is not None
        try:
            into.write(f"BEGIN;\n{first}\n".encode())
            for number, line in enumerate(script):
                # Newer programs write it for every server; an older server would stop there.
                if number < HEAD and self.server_major < 17 and line == b"SET transaction_timeout = 0;\n":
                    continue
                into.write(line)
            if reader.wait() != 0:
                return False  # psql is killed without its COMMIT
            into.write(f"{last}\nCOMMIT;\n".encode())
            into.close()
        except BrokenPipeError:
            player.wait()  # it stopped at an error, which it prints
            return False
        return player.wait() == 0

    def _environment(self) -> dict[str, str]:
        """Return the caller's environment, for certificates and password files, with messages in English, since some are parsed."""
        fixed = {"LC_ALL": "C", "PGAPPNAME": "foliot"}
        return {"PGCONNECT_TIMEOUT": "10", **os.environ, **fixed, **self.where.environment()}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
