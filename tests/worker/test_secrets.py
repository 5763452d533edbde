"""An attempt with secrets: the handler has their values, and nothing that is kept or reported of the attempt does."""

from __future__ import annotations

import base64
import logging
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.masking import MASK
from foliot.domain.policy import Backoff, Retry
from foliot.domain.schedule import Interval
from foliot.handlers.registry import Assignment, HandlerResult, succeeded
from foliot.services.jobs import jobs
from foliot.services.runs import logs
from foliot.services.scheduling.tick import tick
from foliot.services.secrets import secrets
from foliot.services.secrets.vault import Vault
from foliot.storage.tx import Database
from foliot.telemetry import JsonLines, SecretFilter
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST, a_vault
from foliot.worker.link import LocalLink
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.worker import Worker
from tests.polling import wait_until

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
VALUE = "tok-8c1e0f/with+signs"
KEY = "-----BEGIN-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END-----"
log = logging.getLogger("some.library")


class Leaky:
    """Tells all it knows, wherever it can."""

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.had: Any = None

    async def run(self, assignment: Assignment) -> HandlerResult:
        token, key = assignment.config["token"], assignment.config["key"]
        self.had = assignment.config
        log.warning("connecting with %s", token)
        write = assignment.ctx.write
        write("stdout", f"token is {token[:9]}")
        write("stdout", f"{token[9:]} and that was it")
        write("stderr", f"the key:\n{key}\nthe end {token[:12]}")
        reported = f"{token} {base64.b64encode(token.encode()).decode()} {assignment!r}"
        if self.fails:
            raise RuntimeError(f"refused: {reported}")
        return succeeded({"reported": reported, token: [key]})

    async def close(self) -> None:
        pass


@pytest.fixture
def vault() -> Vault:
    return a_vault()


async def worked(database: Database, vault: Vault, clock: ManualClock, handler: Leaky) -> None:
    link = LocalLink(database, "test", vault=vault)
    worker = Worker(link, {"leaky": handler}, 10, logs=LogBuffer(link, clock))
    await worker.step()
    await wait_until(lambda: worker.reporter.unsent == 1)
    await worker.reporter.step()


@pytest.mark.parametrize("fails", [False, True])
async def test_no_value_is_left_in_output_error_lines_or_log(
    database: Database,
    clock: ManualClock,
    workspace: WorkspaceId,
    vault: Vault,
    owner: Any,
    caplog: pytest.LogCaptureFixture,
    fails: bool,
) -> None:
    for name, value in (("token", VALUE), ("key", KEY)):
        await secrets.create(database, vault, Scope(workspace, TEST), name, value)
    spec = Spec(Interval(HOUR), "leaky", retry=Retry(0, Backoff.NONE))
    config = {"token": {"secret": "token"}, "key": {"secret": "key"}}
    await jobs.create(database, Scope(workspace, TEST), Definition("leaks", spec, config=config))
    clock.advance(HOUR)
    await tick(database)
    handler, lines = Leaky(fails=fails), JsonLines(SecretFilter(()))
    caplog.handler.setFormatter(lines)
    with caplog.at_level(logging.DEBUG):
        await worked(database, vault, clock, handler)
    assert handler.had == {"token": VALUE, "key": KEY}
    [(run_id, status, output, error)] = owner.execute(
        "SELECT id, status, output, error FROM foliot.runs"
    ).fetchall()
    assert status == ("failed" if fails else "succeeded")
    reported = f"{MASK} {MASK} Assignment("
    if fails:
        assert error["message"].startswith(f"refused: {reported}")
    else:
        assert output["reported"].startswith(reported)
        assert output[MASK] == [MASK]
    page = await logs.read(database, Scope(workspace), run_id)
    written = [(each.line.stream.value, each.line.text) for each in page.lines]
    assert sorted(written) == [
        ("stderr", MASK),
        ("stderr", MASK),
        ("stderr", MASK),
        ("stderr", MASK),
        ("stderr", f"the end {MASK}"),
        ("stderr", "the key:"),
        ("stdout", f"{MASK} and that was it"),
        ("stdout", f"token is {MASK}"),
    ]
    assert "connecting with ********" in caplog.text
    everything = str(
        [
            owner.execute(f"SELECT * FROM foliot.{name}").fetchall()
            for name in ("runs", "attempts", "jobs", "audit")
        ]
    )
    for piece in (VALUE, VALUE[:9], "MIIEvQIBADAN", base64.b64encode(VALUE.encode()).decode()):
        assert piece not in everything + str(written) + caplog.text


async def test_an_output_too_deep_to_look_through_is_masked_as_a_whole(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault, owner: Any
) -> None:
    class Deep(Leaky):
        async def run(self, assignment: Assignment) -> HandlerResult:
            nested: Any = assignment.config["token"]
            for _ in range(600):
                nested = [nested]
            return succeeded(nested)

    await secrets.create(database, vault, Scope(workspace, TEST), "token", VALUE)
    definition = Definition("deep", Spec(Interval(HOUR), "leaky"), config={"token": {"secret": "token"}})
    await jobs.create(database, Scope(workspace, TEST), definition)
    clock.advance(HOUR)
    await tick(database)
    await worked(database, vault, clock, Deep(fails=False))
    assert VALUE not in str(owner.execute("SELECT output::text FROM foliot.runs").fetchall())
