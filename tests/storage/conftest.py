"""Three workspaces with a row in every table, written behind the back of row-level security."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.domain.ids import WorkspaceId


@pytest.fixture
def populated(owner: psycopg.Connection[Any]) -> Mapping[str, WorkspaceId]:
    """acme and globex have rows; outsider exists and has none."""
    ids = {slug: WorkspaceId(uuid4()) for slug in ("acme", "globex", "outsider")}
    for slug, workspace in ids.items():
        owner.execute(
            "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, %s, %s, clock_timestamp())",
            [workspace, slug, slug],
        )
    for slug in ("acme", "globex"):
        _people(owner, slug, ids[slug])
    _people(owner, "system", None)
    return ids


def _people(owner: psycopg.Connection[Any], slug: str, workspace: UUID | None) -> None:
    principal = uuid4()
    owner.execute(
        "INSERT INTO foliot.principals (workspace_id, id, kind, name, role, created_at)"
        " VALUES (%s, %s, 'service', %s, 'admin', clock_timestamp())",
        [workspace, principal, slug],
    )
    owner.execute(
        "INSERT INTO foliot.api_keys (workspace_id, id, principal_id, name, prefix, key_hash, created_at)"
        " VALUES (%s, %s, %s, %s, 'abcdefgh', sha256(%s), clock_timestamp())",
        [workspace, uuid4(), principal, slug, slug.encode()],
    )
    owner.execute(
        "INSERT INTO foliot.audit (workspace_id, id, at, actor, action, object_kind, object_id)"
        " VALUES (%s, %s, clock_timestamp(), %s, 'key.created', 'key', 'x')",
        [workspace, uuid4(), slug],
    )
