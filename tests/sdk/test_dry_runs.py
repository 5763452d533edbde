"""The client tries what it could do: the same verbs under `dry_run`, with shapes of their own."""

from __future__ import annotations

import pytest

from foliot.sdk import AsyncClient, NotFound
from tests.sdk.conftest import ApiServer

pytestmark = pytest.mark.anyio
JOB = {
    "name": "a",
    "type": "http",
    "config": {"url": "https://example.test/"},
    "schedule": {"kind": "manual"},
}


async def test_every_noun_has_its_dry_run(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        job = await client.jobs.create(JOB)
        assert (await client.jobs.dry_run.run(job.id)).run.number == 1
        run = await client.jobs.run(job.id)
        assert (await client.runs.dry_run.cancel(run.id)).run.status == "cancelled"
        key = await client.keys.dry_run.create("x")
        assert (key.key.name, hasattr(key.key, "secret")) == ("x", False)
        made = await client.keys.create("y")
        assert (await client.keys.dry_run.revoke(made.id, made_too=True)).made_revoked == 0
        assert (await client.members.dry_run.create("Ada", kind="user", role="viewer")).member.name == "Ada"
        assert (await client.workspaces.dry_run.create("acme")).workspace.slug == "acme"
        assert (await client.freezes.dry_run.turn_on({"reason": "x"})).jobs == 1
        rules = [{"kind": "weekly", "start": "00:00", "end": "01:00", "days": ["mon"]}]
        calendar = {"name": "c", "kind": "blackout", "rules": rules}
        assert (await client.calendars.dry_run.create(calendar)).complete
        assert (await client.limits.dry_run.set(3, key="db")).dry_run
        assert (await client.limits.list()).items == []
        with pytest.raises(NotFound):
            await client.limits.dry_run.remove(key="db")


async def test_a_revocation_tells_what_goes_on(api_server: ApiServer) -> None:
    async with AsyncClient(api_server.url, api_server.key) as client:
        first = await client.keys.create("first")
        async with AsyncClient(api_server.url, first.secret) as other:
            second = await other.keys.create("second")
        assert second.made_by == first.id
        assert (await client.keys.revoke(first.id)).made_valid == 1
        assert (await client.keys.revoke(first.id, made_too=True)).made_revoked == 1
