"""Celery's app of the benchmark: its queue in one database of a Redis, its results in another."""

from __future__ import annotations

import os

from celery import Celery

REDIS = os.environ.get("BENCH_REDIS", "redis://127.0.0.1:6379")
app = Celery("bench", broker=f"{REDIS}/0", backend=f"{REDIS}/1")


@app.task(name="noop")  # type: ignore[untyped-decorator]
def noop() -> None:
    """Its result is stored all the same."""
