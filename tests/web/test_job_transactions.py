"""A request that writes a job opens one transaction for its work."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.storage.tx import Database, Role
from tests.web.conftest import ApiHarness, job

pytestmark = pytest.mark.anyio
CUSTOM_TYPE = {
    "type": "report",
    "config": {},
}  # no handler in this server knows it, so its schema is looked up
MESSAGE = {"type": "message", "config": {"text": "hello", "room": "no-such-room"}}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The workspaces of the transactions that requests open, one entry for each."""
    seen: list[Any] = []
    original = Database.tx

    def count(database: Database, role: Role, workspace_id: Any = None, **options: Any) -> Any:
        if role is Role.APP and workspace_id is not None:
            seen.append(workspace_id)
        return original(database, role, workspace_id, **options)

    monkeypatch.setattr(Database, "tx", count)
    return seen


@pytest.mark.parametrize("fields", [{}, CUSTOM_TYPE, MESSAGE])
async def test_create_replace_and_patch_open_one_transaction_each(
    api: ApiHarness, opened: list[Any], fields: dict[str, Any]
) -> None:
    await api.request("GET", "/jobs")  # the key is looked up once, and remembered
    opened.clear()
    made = await api.request("POST", "/jobs", json=job(**fields))
    counts = [len(opened)]
    opened.clear()
    path = f"/jobs/{made.json()['id']}"
    await api.request("PUT", path, json={**made.json(), "name": "replaced"})
    counts.append(len(opened))
    opened.clear()
    patched = await api.request("PATCH", path, json={"name": "patched"})
    counts.append(len(opened))
    assert (patched.json()["name"], patched.json()["revision"]) == ("patched", 3)
    assert counts == [1, 1, 1]
