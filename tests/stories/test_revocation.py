"""Two `foliot serve` on one database: a key that one of them revokes is refused by the other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from psycopg.conninfo import conninfo_to_dict

from foliot.testing.database import pool_url
from tests.stories.server_process import ServerProcess

PROMISED = 5.0  # seconds


@contextmanager
def node(folder: Path, name: str, owner_url: str, **environ: str) -> Iterator[str]:
    """One that counts no requests: this story asks without a pause."""
    serving = ServerProcess(
        folder / name,
        FOLIOT_DATABASE_URL=as_address(pool_url(owner_url)),
        FOLIOT_MIGRATE_URL=as_address(owner_url),
        FOLIOT_WORKER_CONCURRENCY="0",
        FOLIOT_RATE_PER_KEY="0",
        FOLIOT_RATE_PER_WORKSPACE="0",
        FOLIOT_RATE_OF_FAILURES="0",
        **environ,
    )
    try:
        yield serving.wait_for_url()
    finally:
        serving.end()


def as_address(words: str) -> str:
    """The settings take addresses; tests have words such as `host=… dbname=…`."""
    found = {name: quote(str(value), safe="") for name, value in conninfo_to_dict(words).items()}
    user = f"{found.pop('user')}:{found.pop('password', '')}"
    database = found.pop("dbname")
    return f"postgresql://{user}@/{database}?" + "&".join(f"{name}={value}" for name, value in found.items())


def call(url: str, key: str, method: str = "GET", body: dict[str, Any] | None = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(url, data, headers, method=method), timeout=10) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except HTTPError as refused:
        return refused.code, json.load(refused)


@pytest.mark.parametrize("hears", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_key_that_one_node_revokes_is_refused_by_the_other(
    tmp_path: Path, owner_url: str, empty_url: str, hears: bool
) -> None:
    # A database where nobody of ours speaks is as deaf as a pooler.
    deaf = {} if hears else {"FOLIOT_LISTEN_URL": as_address(empty_url)}
    with node(tmp_path, "one", owner_url) as here, node(tmp_path, "two", owner_url, **deaf) as there:
        admin = (tmp_path / "one" / "admin.key").read_text().strip()
        status, made = call(f"{here}/api/v1/keys", admin, "POST", {"name": "short-lived"})
        assert status == 201, made
        used, pause = made["secret"], threading.Event()
        assert call(f"{there}/api/v1/me", used)[0] == 200
        assert call(f"{here}/api/v1/keys/{made['id']}", admin, "DELETE")[0] == 204
        began = time.monotonic()
        assert call(f"{here}/api/v1/me", used)[0] == 401
        while call(f"{there}/api/v1/me", used)[0] == 200:
            assert time.monotonic() - began < PROMISED
            pause.wait(0.01)
        print(
            f"refused elsewhere after {time.monotonic() - began:.2f} s, hints {'heard' if hears else 'lost'}"
        )
