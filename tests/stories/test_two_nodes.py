"""Two nodes with different roles and a worker of its own on one PostgreSQL, as docs/how-to/two-nodes.md starts them: each is
killed in its turn, nothing is lost, and work that a worker does not know is left for one that does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot import Client
from tests.stories.installation import FAST, Installation
from tests.stories.server_process import ServerProcess, get_json, wait_until

SHOP = """
from job_functions import gated, note
from foliot import Context, Foliot

app = Foliot("shop")

@app.job(every="1s", queue="slow", overlap="concurrent", payload={"sink": "%(sink)s"})
def pack(ctx: Context, sink: str) -> None:
    note({"sink": sink}, ctx)

@app.job(queue="slow", timeout="1m", payload={"sink": "%(sink)s", "gate": "%(gate)s"})
def send(ctx: Context, sink: str, gate: str) -> None:
    gated({"sink": sink, "gate": gate}, ctx)
"""
Start = Callable[..., ServerProcess]


@pytest.fixture
def start(installation: Installation) -> Iterator[Start]:
    (installation.folder / "shop.py").write_text(SHOP % installation.payload)
    started: list[ServerProcess] = []

    def begin(name: str, *words: str, **environ: str) -> ServerProcess:
        common = {"FOLIOT_DATABASE_URL": installation.url, "FOLIOT_LOG_FORMAT": "json", **FAST}
        started.append(ServerProcess(installation.folder / name, *words, **common | environ))
        return started[-1]

    yield begin
    for each in started:
        each.end()


def node(start: Start, installation: Installation, name: str, roles: str) -> tuple[ServerProcess, str]:
    words = ("serve", "--data-dir", str(installation.folder / name), "--roles", roles)
    serving = start(name, *words, FOLIOT_WORKER_QUEUES="default")
    return serving, serving.wait_for(r'"server.started".*"url": "([^"]+)"')[1]


def third(start: Start) -> ServerProcess:
    words = ("worker", "shop:app", "--queue", "slow", "--queue", "default", "--concurrency", "2")
    serving = start("third", *words, FOLIOT_ALLOW_COMMANDS="yes")
    serving.wait_for(r'"worker.registered"')
    return serving


@pytest.mark.slow
@pytest.mark.requirement("S1-NFR-003", "S1-A1")
def test_nodes_of_any_split_share_the_work_and_outlive_each_other(
    start: Start, installation: Installation
) -> None:
    one, url = node(start, installation, "one", "api,scheduler")
    two, other = node(start, installation, "two", "scheduler,worker")
    two.wait_for(r'"worker.registered"')
    assert get_json(f"{url}/readyz")[1]["roles"] == ["api", "scheduler"]
    assert get_json(f"{other}/readyz")[1]["roles"] == ["scheduler", "worker"]
    assert get_json(f"{other}/api/v1/jobs")[0] == 404
    assert '"worker.started"' not in one.output
    key = (installation.folder / "one" / "admin.key").read_text().strip()
    with Client(url, key) as client:
        for number in range(3):
            client.jobs.create(_every_second(installation, f"beat {number}"))
        installation.wait_for_successes(3)
        _knows_more(start, installation, client)
        two.process.kill()  # its worker, mid-run, and one of two schedulers
        installation.wait_for_successes(installation.statuses()["succeeded"] + 2)  # the third still works
        two, other = node(start, installation, "two", "scheduler,worker")
        two.wait_for(r'"worker.registered"')
        one.process.kill()  # the other scheduler
        installation.wait_for_successes(installation.statuses()["succeeded"] + 6)
        one, url = node(start, installation, "one", "api,scheduler")
    for each in (one, two):
        assert each.stop() < 15
    installation.check_every_second_has_its_record()
    installation.check_every_success_was_witnessed()
    assert set(installation.statuses()) <= {"succeeded", "skipped", None}


def _knows_more(start: Start, installation: Installation, client: Client) -> None:
    """The worker of node two serves this queue, but runs no commands: those wait for the third process, killed on the way."""
    command = {
        "argv": [
            "sh",
            "-c",
            f"echo done $FOLIOT_RUN_ID $FOLIOT_ATTEMPT $FOLIOT_FENCE >> {installation.payload['sink']}",
        ]
    }
    wanted = {"type": "command", "schedule": {"kind": "manual"}, "config": command}
    job = client.jobs.create({"name": "reported", **wanted})
    assert "FOLIOT_ALLOW_COMMANDS=yes" in job.warnings[0]
    run = client.jobs.run(job.id)
    why = client.runs.explain(run.id)
    assert "no worker serves queue default for type command" in why.sentence
    worker = third(start)
    wait_until(
        lambda: client.runs.get(run.id).status == "succeeded", "the command, by the worker that knows it"
    )
    send = next(each for each in client.jobs.each() if each.name == "send")
    assert send.managed_by == "shop"
    slow = client.jobs.run(send.id)
    wait_until(lambda: len(installation.executions("began")) == 1, "the slow one to begin")
    worker.process.send_signal(signal.SIGKILL)
    third(start)
    wait_until(lambda: len(installation.executions("began")) >= 2, "the slow one to begin again")
    installation.open_gate()
    wait_until(lambda: client.runs.get(slow.id).status == "succeeded", "the end of the slow one")
    assert installation.executions("ended")[-1][1] >= 2


def _every_second(installation: Installation, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "python",
        "config": {"call": "job_functions:quickly"},
        "payload": installation.payload,
        "overlap": "concurrent",
        "schedule": {"kind": "interval", "every": "1s"},
    }


def test_a_node_that_shares_nothing_says_that_it_does_not_do_everything(
    start: Start, installation: Installation, tmp_path: Path
) -> None:
    words = ("serve", "--data-dir", str(tmp_path / "own"), "--roles", "api")
    alone = start("own", *words, FOLIOT_DATABASE_URL="")
    url = alone.wait_for(r'"server.started".*"url": "([^"]+)"')[1]
    status, ready = get_json(f"{url}/readyz")
    assert (status, ready["roles"]) == (200, ["api"])
    assert any("no other can share its private PostgreSQL" in each for each in ready["warnings"])
