"""A FastAPI route with one indexed query and nothing else: what `bench/api.py` compares with."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import uvicorn
from fastapi import FastAPI
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

QUERY = "SELECT id, name, status, revision, created_at, updated_at FROM foliot.jobs WHERE id = %s"


def main() -> None:
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(sys.argv[1], min_size=4, max_size=4, open=False)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/jobs/{job_id}")
    async def get_job(job_id: UUID) -> Any:
        async with pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            return await (await cursor.execute(QUERY, [job_id])).fetchone()

    # asyncio turns Nagle's algorithm off only on sockets made with IPPROTO_TCP; with it each answer waits 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
