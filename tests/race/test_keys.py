"""A key that is revoked while it makes another leaves none behind that its revocation did not see."""

from __future__ import annotations

from secrets import token_bytes
from uuid import uuid4

import pytest

from foliot.domain.access import KEY_ENTROPY, ApiKey, MemberRole, Principal, PrincipalKind
from foliot.domain.errors import Denied
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId
from foliot.services.identity import keys as key_verbs
from foliot.services.identity.authentication import Authenticator, Caller
from foliot.services.identity.keys import KeyRequest
from foliot.storage.identity import keys, members
from foliot.storage.tx import Database, Role
from tests.race.race_nodes import RaceNodes

pytestmark = pytest.mark.anyio


async def caller_with_new_key(database: Database, workspace: WorkspaceId) -> Caller:
    holder = Principal(PrincipalId(uuid4()), workspace, PrincipalKind.USER, "ana", MemberRole.ADMIN)
    key = ApiKey.make(token_bytes(KEY_ENTROPY))
    async with database.tx(Role.APP, workspace) as tx:
        await members.insert_principal(tx, holder)
        await keys.insert_key(tx, KeyId(uuid4()), key, holder, name="leaked", scopes=frozenset())
    authenticator = Authenticator(database)
    caller = await authenticator.enter(key.secret, None)
    await authenticator.close()
    assert caller is not None
    return caller


async def test_a_key_that_is_being_revoked_makes_no_other(workspace: WorkspaceId, nodes: RaceNodes) -> None:
    caller = await caller_with_new_key(nodes.left, workspace)
    async with nodes.paused_at_table(
        key_verbs.revoke(nodes.left, caller, caller.holder.key_id), at="audit"
    ) as first:
        second = await nodes.start_blocked(key_verbs.create(nodes.right, caller, KeyRequest("heir")))
    await first
    with pytest.raises(Denied, match="has just ended"):
        await second


async def test_a_revocation_waits_for_the_key_that_is_being_made_and_ends_it_too(
    workspace: WorkspaceId, nodes: RaceNodes
) -> None:
    caller = await caller_with_new_key(nodes.left, workspace)
    async with nodes.paused_at_table(
        key_verbs.create(nodes.left, caller, KeyRequest("heir")), at="audit"
    ) as first:
        second = await nodes.start_blocked(
            key_verbs.revoke(nodes.right, caller, caller.holder.key_id, made_too=True)
        )
    heir = (await first).key.id
    assert [each.id for each in (await second).made_too] == [heir]
