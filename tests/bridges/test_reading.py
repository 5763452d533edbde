"""What engines store of an end, read without trusting it; and what is not there when no engine is configured."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers import bridge_handlers
from foliot.handlers.bridge import celery, rq
from foliot.handlers.bridge.engine import Handover
from foliot.handlers.dependencies import HandlerDeps, QueueEngineUrls
from foliot.handlers.registry import HandlerResult
from foliot.storage.tx import Database

pytestmark = pytest.mark.anyio
NOWHERE = "redis://127.0.0.1:1"


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return Path.touch, (self.target,)


def handover(**config: Any) -> Handover:
    return Handover("foliot-1-1", "jobs", config, {}, "1", 1, "", 60.0)


def returned(value: Any, **config: Any) -> HandlerResult:
    fields = {"type": "1", "return_value": b64encode(pickle.dumps(value)).decode()}
    done = rq._end(fields, handover(**config))
    assert done is not None
    return done


def test_plain_values_come_out_of_a_pickle_and_anything_with_a_name_does_not(tmp_path: Path) -> None:
    plain = {"a": [1, 2.5, None, "ü", True]}
    assert returned(plain) == HandlerResult(Succeeded(), plain)
    for value, named in (
        (Bomb(tmp_path / "went-off"), "pathlib.Path.touch"),
        (datetime(2026, 1, 1, tzinfo=UTC), "datetime"),
    ):
        outcome = returned(value).outcome
        assert isinstance(outcome, Failed)
        assert (outcome.permanent, outcome.error.code) == (True, "result_unreadable")
        assert named.split(".")[0] in outcome.error.message
    assert not (tmp_path / "went-off").exists()


def test_a_result_of_celery_that_is_no_json_fails_for_good_and_states_on_the_way_are_no_ends() -> None:
    broken = celery._end("\x80\x04pickle")
    assert broken is not None
    assert isinstance(broken.outcome, Failed)
    assert broken.outcome.permanent
    assert "result_serializer" in broken.outcome.error.message
    assert celery._end('{"status": "STARTED", "result": null}') is None
    assert celery._end(None) is None


def test_a_function_that_asks_rq_to_be_called_again_has_not_ended() -> None:
    assert rq._end({"type": "4"}, handover()) is None


def test_nothing_of_the_engines_is_loaded_before_a_broker_is_configured() -> None:
    probe = """
import sys
from foliot.handlers import registry
from foliot.handlers.dependencies import HandlerDeps
import foliot.wiring.node
assert {"celery", "rq", "bullmq"} <= set(registry.describe_types())
assert not {"celery", "rq", "bullmq"} & set(registry.load_handlers(HandlerDeps()))
print({"redis", "celery", "rq", "bullmq", "kombu"} & set(sys.modules))
"""
    reported = subprocess.run(
        (sys.executable, "-c", probe), capture_output=True, text=True, check=True, timeout=60
    )
    assert reported.stdout.strip() == "set()"


@pytest.mark.parametrize("extra", ["celery", "rq", "bullmq"])
async def test_a_missing_extra_is_reported_with_what_installs_it(
    extra: str, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    monkeypatch.delitem(sys.modules, f"foliot.handlers.bridge.{extra}", raising=False)
    handler: Any = {
        "celery": bridge_handlers.CeleryHandler,
        "rq": bridge_handlers.RqHandler,
        "bullmq": bridge_handlers.BullmqHandler,
    }[extra]
    with caplog.at_level(logging.WARNING):
        assert (
            handler.from_deps(HandlerDeps(database, queue_engines=QueueEngineUrls(NOWHERE, NOWHERE, NOWHERE)))
            is None
        )
    [record] = caplog.records
    assert record.__dict__["hint"] == f"pip install 'foliot[{extra}]'"


async def test_celery_is_not_served_without_results(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert (
            bridge_handlers.CeleryHandler.from_deps(
                HandlerDeps(database, queue_engines=QueueEngineUrls(celery_broker_url=NOWHERE))
            )
            is None
        )
    assert "bridge.without_results" in caplog.text
