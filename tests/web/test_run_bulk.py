"""One action on many runs over the API: counted first, each run on its own, nothing twice."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.ids import WorkerId
from tests.web.conftest import ApiHarness
from tests.web.test_console_runs import NO_RETRY, fail_run


async def bulk(api: ApiHarness, who: str = "acme", role: str = "operator", **body: Any) -> Any:
    headers = body.pop("headers", {})
    return await api.request("POST", "/runs/bulk", who=who, role=role, json=body, headers=headers)


@pytest.fixture
async def failed(api: ApiHarness) -> list[str]:
    worker = await api.register_worker(WorkerId(uuid4()))
    job = await api.create_job(name="nightly", retry=NO_RETRY)
    return [str((await fail_run(api, worker, job["id"], f"port {n}")).run_id) for n in range(3)]


async def retries(api: ApiHarness) -> int:
    return len((await api.request("GET", "/runs?q=trigger:retry")).json()["items"])


async def test_a_filter_needs_the_number_of_runs_it_finds(api: ApiHarness, failed: list[str]) -> None:
    dry = (await bulk(api, action="retry", q="status:failed", dry_run=True)).json()
    assert (dry["found"], dry["done"], dry["more"]) == (3, 3, False)
    assert (await bulk(api, action="retry", q="status:failed")).status_code == 422
    assert (await bulk(api, action="retry", q="status:failed", expected_count=2)).status_code == 409
    assert (await bulk(api, action="retry", q="a", ids=failed)).status_code == 422
    assert await retries(api) == 0
    done = (await bulk(api, action="retry", q="status:failed", expected_count=3)).json()
    assert (done["done"], done["failed"], await retries(api)) == (3, 0, 3)


async def test_a_run_that_cannot_stops_no_other(api: ApiHarness, failed: list[str]) -> None:
    open_run = (await api.request("POST", f"/runs/{failed[0]}/retry")).json()["id"]
    unknown = str(uuid4())
    done = (await bulk(api, action="cancel", ids=[*failed, open_run, unknown], reason="wrong month")).json()
    assert (done["found"], done["done"], done["failed"]) == (4, 1, 4)
    assert {each["id"] for each in done["results"]} == {*failed, unknown}
    ended = (await api.request("GET", f"/runs/{open_run}")).json()
    assert ended["status"] == "cancelled"


async def test_a_repeat_with_the_same_key_does_nothing_twice(api: ApiHarness, failed: list[str]) -> None:
    asked: dict[str, Any] = {"action": "retry", "ids": failed, "headers": {"Idempotency-Key": "retry-all-1"}}
    first = await bulk(api, **asked)
    again = await bulk(api, **asked)
    assert first.json() == again.json()
    assert await retries(api) == 3


async def test_runs_of_another_workspace_are_not_found(api: ApiHarness, failed: list[str]) -> None:
    done = (await bulk(api, "globex", action="cancel", ids=failed)).json()
    assert (done["found"], {each["outcome"] for each in done["results"]}) == (0, {"not_found"})
    assert (await bulk(api, role="viewer", action="retry", ids=failed)).status_code == 403
