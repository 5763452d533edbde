"""Rates and quotas: what is refused, with which words and numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.domain.quotas import Quotas
from foliot.services.identity.authentication import Authenticator
from foliot.storage.tx import Database
from foliot.web.rate_limits import RateLimits
from tests.web.conftest import ApiHarness, job, open_api, problems

pytestmark = pytest.mark.anyio


@pytest.fixture
async def strict_town(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiHarness]:
    """Every key may send two requests at once, a workspace six, an address three wrong keys. No time passes between them."""
    monkeypatch.setattr("foliot.web.rate_limits.monotonic", lambda: 1_000.0)
    quotas = Quotas(jobs=2, key_requests_per_second=1, requests_per_second=3)
    async with open_api(database, authenticator=Authenticator(database, quotas), rates=RateLimits(3)) as made:
        yield made


async def statuses(api: ApiHarness, times: int, **who: Any) -> list[int]:
    return [(await api.request("GET", "/jobs", **who)).status_code for _ in range(times)]


async def test_a_key_that_asks_too_often_reads_when_to_come_back(strict_town: ApiHarness) -> None:
    first = await strict_town.request("GET", "/jobs")
    assert (first.headers["ratelimit-limit"], first.headers["ratelimit-remaining"]) == ("2", "1")
    assert await statuses(strict_town, 2) == [200, 429]
    refused = await strict_town.request("GET", "/jobs")
    assert (refused.json()["code"], refused.headers["retry-after"]) == ("rate_limited", "1")
    assert refused.headers["ratelimit-remaining"] == "0"
    assert await statuses(strict_town, 1, role="viewer") == [200]  # another key is not slowed


async def test_the_keys_of_a_workspace_share_what_it_may(strict_town: ApiHarness) -> None:
    got = [
        status
        for role in ("viewer", "operator", "editor", "admin")
        for status in await statuses(strict_town, 2, role=role)
    ]
    assert got == [200] * 6 + [429] * 2
    assert await statuses(strict_town, 1, who="globex") == [200]


async def test_whoever_runs_the_installation_gets_through_to_a_loud_workspace(
    strict_town: ApiHarness,
) -> None:
    for role in ("viewer", "operator", "editor"):
        await statuses(strict_town, 2, role=role)
    chosen = {"Foliot-Workspace": "acme"}
    assert (await strict_town.request("GET", "/jobs", who="system", headers=chosen)).status_code == 200


async def test_an_address_with_too_many_wrong_keys_is_turned_away_but_not_the_known_keys_behind_it(
    strict_town: ApiHarness,
) -> None:
    assert await statuses(strict_town, 1) == [200]
    strict_town.keys["acme", "wrong"] = "fol_nonsense"
    assert await statuses(strict_town, 4, role="wrong") == [401, 401, 401, 429]
    refused = await strict_town.request("GET", "/jobs", role="wrong")
    assert (refused.json()["code"], int(refused.headers["retry-after"]) >= 1) == ("rate_limited", True)
    assert await statuses(strict_town, 1) == [200]


async def test_a_workspace_has_no_more_jobs_than_its_quota(strict_town: ApiHarness) -> None:
    made = [
        await strict_town.request("POST", "/jobs", role=role, json=job())
        for role in ("editor", "admin", "admin")
    ]
    assert [answer.status_code for answer in made] == [201, 201, 422]
    refused = made[-1].json()
    assert (refused["code"], refused["quota"]) == ("quota_exceeded", {"name": "jobs", "limit": 2, "used": 2})
    assert (await strict_town.request("GET", "/me", role="viewer")).json()["jobs"] == 2
    assert (await strict_town.request("POST", "/jobs", who="globex", json=job())).status_code == 201


@pytest.mark.requirement("C-14", "S2-2")
@pytest.mark.parametrize(
    ("schedule", "pointer", "used"),
    [
        ({"kind": "interval", "every": "30s"}, "/schedule/every", 30),
        ({"kind": "interval", "every": "5m", "mode": "fixed_delay"}, "/schedule/every", 300),
        ({"kind": "cron", "expr": "*/5 * * * *"}, "/schedule/expr", 300),
        ({"kind": "cron", "expr": "0,1 3 * * *"}, "/schedule/expr", 60),
        ({"kind": "cron", "expr": "0 0 3 * * *", "seconds": True}, None, None),
        ({"kind": "cron", "expr": "0,59 0 3 * * *", "seconds": True}, "/schedule/expr", 59),
        ({"kind": "interval", "every": "10m"}, None, None),
        ({"kind": "cron", "expr": "*/10 * * * *"}, None, None),
        ({"kind": "manual"}, None, None),
    ],
)
async def test_a_job_fires_no_more_often_than_its_workspace_allows(
    api: ApiHarness, schedule: dict[str, Any], pointer: str | None, used: int | None
) -> None:
    quota = {"quotas": {"min_interval": 600}}
    assert (await api.request("PATCH", "/workspaces/acme", who="system", json=quota)).status_code == 200
    answer = await api.request("POST", "/jobs", json=job(schedule=schedule))
    if pointer is None:
        assert answer.status_code == 201
    else:
        assert (answer.status_code, list(problems(answer))) == (422, [pointer])
        assert answer.json()["quota"] == {"name": "min_interval", "limit": 600, "used": used}
    assert (await api.request("POST", "/jobs", who="globex", json=job(schedule=schedule))).status_code == 201


async def test_a_member_gets_a_quota_of_fires_and_loses_it_again(api: ApiHarness) -> None:
    made = await api.request(
        "POST", "/members", role="admin", json={"kind": "agent", "name": "frank", "role": "editor"}
    )
    path = f"/members/{made.json()['id']}"
    for fires in (5, 0, None):
        changed = await api.request("PATCH", path, role="admin", json={"fires_per_day": fires})
        assert (changed.status_code, changed.json()["fires_per_day"]) == (200, fires)
        assert (await api.request("GET", path, role="admin")).json()["fires_per_day"] == fires
    assert (await api.request("PATCH", path, role="admin", json={"fires_per_day": -1})).status_code == 422


async def test_payloads_are_as_large_as_the_workspace_allows(api: ApiHarness) -> None:
    made = await api.create_job(payload={"x": "y" * 100})
    quota = {"quotas": {"payload_bytes": 50}}
    assert (await api.request("PATCH", "/workspaces/acme", who="system", json=quota)).status_code == 200
    large = {"config": {"url": "https://example.test/" + "y" * 100}, "payload": {"x": "y" * 100}}
    for name, value in large.items():
        answer = await api.request("POST", "/jobs", json=job(**{name: value}))
        assert (answer.status_code, list(problems(answer))) == (422, [f"/{name}"])
        assert answer.json()["quota"]["used"] > 100
    ran = await api.request("POST", f"/jobs/{made['id']}/run", json={"input": {"x": "y" * 100}})
    assert (ran.status_code, list(problems(ran))) == (422, ["/input"])
    assert (await api.request("POST", f"/jobs/{made['id']}/run", json={"input": {}})).status_code == 201
