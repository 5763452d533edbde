"""/runs/{id}/artifacts and the progress of a run: kept by who holds it, seen by who may, gone with it."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.errors import Invalid, LeaseLost, QuotaExceeded
from foliot.domain.ids import RunId, WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.domain.run import Progress
from foliot.services.runs import artifacts, logs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.retention import prune
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.content.artifacts import PART
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
WORKER = WorkerId(uuid4())


async def running(api: ApiHarness, clock: ManualClock, **fields: Any) -> Claimed:
    await api.create_job(**fields)
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    [claimed] = await claim(api.database, await api.register_worker(WORKER), "default", ["http"], 1, Turns())
    return claimed


def given(
    run: Claimed, name: str = "report.csv", data: bytes = b"a,b\n1,2\n", kind: str = "text/csv"
) -> NewArtifact:
    return NewArtifact(run.run_id, run.fence, WORKER, run.attempt, name, kind, data)


async def end(api: ApiHarness, run: Claimed) -> None:
    await report(api.database, [Report(run.run_id, run.job_id, run.fence, WORKER, Succeeded())])


async def test_what_a_run_keeps_is_listed_and_handed_out_as_it_was(
    api: ApiHarness, clock: ManualClock
) -> None:
    run = await running(api, clock)
    path = f"/runs/{run.run_id}/artifacts"
    assert (await api.request("GET", path, role="viewer")).json() == {"items": []}
    large = bytes(range(256)) * (PART // 256) * 2 + b"the rest"
    await artifacts.keep(api.database, given(run))
    clock.advance(timedelta(seconds=1))
    await artifacts.keep(api.database, given(run, "dump é.bin", large, "application/octet-stream"))
    [first, second] = (await api.request("GET", path)).json()["items"]
    assert (first["name"], first["size"], first["attempt"]) == ("report.csv", 8, 1)
    assert second["sha256"] == hashlib.sha256(large).hexdigest()
    answer = await api.request("GET", f"{path}/dump é.bin")
    assert answer.content == large
    assert answer.headers["content-length"] == str(len(large))
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''dump%20%C3%A9.bin"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["etag"] == f'"{second["sha256"]}"'
    again = await api.request("GET", f"{path}/dump é.bin", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await api.request("GET", f"{path}/report.csv")).headers["content-type"] == "text/csv"
    assert (await api.request("GET", f"{path}/nothing")).status_code == 404


async def test_one_of_the_same_name_takes_the_place_of_the_last(
    api: ApiHarness, clock: ManualClock, owner: Any
) -> None:
    run = await running(api, clock)
    await artifacts.keep(api.database, given(run, data=b"x" * PART * 2))
    await artifacts.keep(api.database, given(run, data=b"second"))
    assert (await api.request("GET", f"/runs/{run.run_id}/artifacts/report.csv")).content == b"second"
    assert owner.execute("SELECT count(*) FROM foliot.artifact_chunks").fetchone() == (1,)


async def test_an_empty_one_is_kept_too(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    await artifacts.keep(api.database, given(run, data=b""))
    answer = await api.request("GET", f"/runs/{run.run_id}/artifacts/report.csv")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_only_who_holds_the_run_may_add_to_it(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    for wrong in (run._replace(fence=run.fence - 1), run._replace(run_id=RunId(uuid4()))):
        with pytest.raises(LeaseLost):
            await artifacts.keep(api.database, given(wrong))
    await artifacts.keep(api.database, given(run))


@pytest.mark.parametrize(
    ("name", "kind", "size"),
    [
        ("", "text/csv", 1),
        ("..", "text/csv", 1),
        ("a/b", "text/csv", 1),
        ("a\\b", "text/csv", 1),
        ("a\nb", "text/csv", 1),
        ("x" * 201, "text/csv", 1),
        ("a", "text", 1),
        ("a", "text/html\r\nX-Evil: 1", 1),
        ("a", "text/csv", 101),
    ],
)
async def test_names_types_and_sizes_are_bounded(
    api: ApiHarness, clock: ManualClock, name: str, kind: str, size: int
) -> None:
    run = await running(api, clock)
    with pytest.raises(Invalid):
        await artifacts.keep(api.database, given(run, name, b"x" * size, kind), most_bytes=100)


async def test_a_workspace_may_store_so_much(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    await artifacts.keep(api.database, given(run, "a", b"x" * 60), default_quota=100)
    with pytest.raises(QuotaExceeded):
        await artifacts.keep(api.database, given(run, "b", b"x" * 60), default_quota=100)
    await artifacts.keep(api.database, given(run, "a", b"x" * 90), default_quota=100)  # in its own place
    answer = await api.request(
        "PATCH", "/workspaces/acme", who="system", json={"quotas": {"artifact_bytes": 1000}}
    )
    assert answer.status_code == 200, answer.text
    await artifacts.keep(api.database, given(run, "b", b"x" * 60), default_quota=100)


async def test_artifacts_are_for_those_who_may_see_the_run(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    await artifacts.keep(api.database, given(run))
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    for rest in ("", "/report.csv"):
        for who, role in (("globex", "admin"), ("acme", "agent")):
            there = await api.request("GET", f"/runs/{run.run_id}/artifacts{rest}", who=who, role=role)
            nowhere = await api.request("GET", f"/runs/{uuid4()}/artifacts{rest}", who=who, role=role)
            assert there.status_code == 404
            assert there.json() | {"request_id": 0} == nowhere.json() | {"request_id": 0}


async def test_artifacts_go_with_their_run(api: ApiHarness, clock: ManualClock, owner: Any) -> None:
    run = await running(api, clock, retention={"keep": "1s", "keep_last": 1, "mode": "any"})
    await artifacts.keep(api.database, given(run))
    await end(api, run)
    owner.execute(
        "UPDATE foliot.scans SET position = 'ffffffff-ffff-ffff-ffff-ffffffffffff' WHERE name = 'roll_up'"
    )
    clock.advance(timedelta(days=2))
    assert (await prune(api.database)).runs == 1
    for table in ("artifacts", "artifact_chunks"):
        assert owner.execute(f"SELECT count(*) FROM foliot.{table}").fetchone() == (0,)


async def test_how_far_a_run_is_shows_while_it_runs(api: ApiHarness, clock: ManualClock) -> None:
    run = await running(api, clock)
    path = f"/runs/{run.run_id}"
    assert (await api.request("GET", path)).json()["progress"] is None
    said = Progress(3, 12, "invoices", clock.now())
    await logs.store_progress(
        api.database, {(run.run_id, run.fence): said, (run.run_id, run.fence + 1): said}
    )
    shown = (await api.request("GET", path)).json()["progress"]
    assert (shown["done"], shown["total"], shown["share"], shown["note"]) == (3, 12, 0.25, "invoices")
    [listed] = (await api.request("GET", "/runs")).json()["items"]
    assert listed["progress"] == shown
    await end(api, run)
    assert (await api.request("GET", path)).json()["progress"] is None
