"""The Celery app of these tests, for `celery -A tests.bridges.celery_app worker`."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery

from tests.bridges import engine_functions
from tests.bridges.engines import celery_broker

app = Celery("tests", broker=celery_broker(os.environ["BROKER"]), backend=os.environ["BROKER"])


@app.task(name="engine_functions.work", ignore_result=True, bind=True)  # type: ignore[untyped-decorator]  # a hand-over asks for the result all the same
def work(self: Any, **given: Any) -> Any:
    if given.pop("talk", False):
        self.update_state(state="PROGRESS", meta={"current": 40, "total": 80})
    return engine_functions.work(**given)
