"""The master key of an installation: the right one is known by its canary, and another takes its place while all goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Unavailable
from foliot.domain.ids import WorkspaceId
from foliot.services.identity import installation, workspaces
from foliot.services.secrets import master_key, secrets
from foliot.services.secrets.resolution import ResolvedConfig, resolve_secrets
from foliot.services.secrets.vault import FixedKeys, MasterKey, SealedValue, Vault
from foliot.storage.content import secrets as rows
from foliot.storage.tx import Database
from foliot.testing.fixtures import TEST, InMemoryKeys, a_vault
from tests.services.builders import Owner

pytestmark = pytest.mark.anyio
OLD, NEW = MasterKey.new(), MasterKey.new()


async def values(database: Database, vault: Vault, workspace: WorkspaceId, names: Sequence[str]) -> list[str]:
    """As a run would get them; the code where it would not."""
    found = await resolve_secrets(database, vault, workspace, [{"it": {"secret": name}} for name in names])
    return [each.config["it"] if isinstance(each, ResolvedConfig) else each.code for each in found]


async def many(database: Database, vault: Vault, workspace: WorkspaceId, count: int) -> list[str]:
    names = [f"s{number:03}" for number in range(count)]
    for name in names:
        await secrets.create(database, vault, Scope(workspace, TEST), name, f"value of {name}")
    return names


async def test_the_first_start_makes_a_key_and_later_ones_know_it(
    database: Database, workspace: WorkspaceId, owner: Owner
) -> None:
    shared = InMemoryKeys()
    first = await master_key.begin(database, Vault(shared), makes=True)
    assert first.opens
    assert first.present == shared.keys[0].id
    assert (await master_key.begin(database, Vault(shared), makes=True)).present == first.present
    assert len(shared.keys) == 1
    assert owner.execute("SELECT canary_key_id FROM foliot.installation").fetchall() == [(first.present,)]
    assert owner.execute("SELECT action FROM foliot.audit WHERE object_kind = 'master_key'").fetchall() == [
        ("master_key.adopted",)
    ]


async def test_where_no_key_is_made_at_the_start_the_first_secret_makes_it(
    database: Database, workspace: WorkspaceId
) -> None:
    vault = Vault(InMemoryKeys())
    assert (await master_key.begin(database, vault, makes=False)).present is None
    await secrets.create(database, vault, Scope(workspace, TEST), "crm", "value")
    assert vault.present is not None
    assert await values(database, vault, workspace, ["crm"]) == ["value"]


async def test_a_second_node_makes_no_key_of_its_own(database: Database, workspace: WorkspaceId) -> None:
    await master_key.begin(database, a_vault(OLD), makes=True)
    elsewhere = InMemoryKeys()
    assert not (await master_key.begin(database, Vault(elsewhere), makes=True)).opens
    assert elsewhere.keys == []
    with pytest.raises(Unavailable):
        await secrets.create(database, Vault(elsewhere), Scope(workspace, TEST), "crm", "value")


async def test_a_wrong_key_is_reported_with_the_names_it_cannot_read_and_seals_nothing(
    database: Database, workspace: WorkspaceId, caplog: pytest.LogCaptureFixture
) -> None:
    await many(database, a_vault(OLD), workspace, 2)
    wrong = a_vault(NEW)
    with caplog.at_level(logging.ERROR):
        found = await master_key.begin(database, wrong, makes=True)
    assert (found.opens, found.secrets, found.unreadable) == (False, 2, 2)
    reported = {record.message: vars(record) for record in caplog.records}
    assert reported["master_key.wrong"]["advice"] == master_key.GIVE_IT
    assert reported["secrets.unreadable"]["names"] == ["default/s000", "default/s001"]
    assert not master_key.opens_canary(wrong, await installation.state(database))
    with pytest.raises(Unavailable, match="do not open"):
        await secrets.create(database, wrong, Scope(workspace, TEST), "crm", "value")
    with pytest.raises(Conflict, match="do not open"):
        await master_key.rotate(database, wrong, TEST)
    assert await values(database, wrong, workspace, ["s000"]) == ["secret_unreadable"]


async def test_a_forged_canary_opens_nothing(
    database: Database, workspace: WorkspaceId, owner: Owner
) -> None:
    vault = a_vault(OLD)
    await master_key.begin(database, vault, makes=True)
    owner.execute("UPDATE foliot.installation SET id = gen_random_uuid()")
    assert not master_key.opens_canary(vault, await installation.state(database))


async def test_rotation_seals_everything_of_every_workspace_anew_and_versions_stay(
    database: Database, workspace: WorkspaceId, owner: Owner
) -> None:
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    names = await many(database, a_vault(OLD), workspace, 3)
    await many(database, a_vault(OLD), other, 2)
    vault = a_vault(NEW, OLD)
    done = await master_key.rotate(database, vault, TEST)
    assert (done.present, done.rotated, done.left, done.unreadable) == (NEW.id, 5, 0, 0)
    assert owner.execute("SELECT DISTINCT key_id, version FROM foliot.secrets").fetchall() == [(NEW.id, 1)]
    alone = a_vault(NEW)
    assert await values(database, alone, workspace, names) == [f"value of {name}" for name in names]
    assert (await master_key.begin(database, alone, makes=True)).opens
    assert (await master_key.rotate(database, vault, TEST)).rotated == 0


async def test_a_rotation_killed_midway_goes_on_where_it_stopped(
    database: Database, workspace: WorkspaceId, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await many(database, a_vault(OLD), workspace, 7)
    vault = a_vault(NEW, OLD)
    monkeypatch.setattr(master_key, "BATCH", 2)
    sealed = rows.reseal_all
    calls = 0

    async def dies(*given: object) -> None:
        nonlocal calls
        calls += 1
        await sealed(*given)  # type: ignore[arg-type]
        if calls == 3:
            raise KeyboardInterrupt  # within the third transaction, whose two are undone

    monkeypatch.setattr(rows, "reseal_all", dies)
    with pytest.raises(KeyboardInterrupt):
        await master_key.rotate(database, vault, TEST)
    assert owner.execute(
        "SELECT key_id = %s, count(*) FROM foliot.secrets GROUP BY 1 ORDER BY 1", [NEW.id]
    ).fetchall() == [
        (False, 3),
        (True, 4),
    ]
    expected = [f"value of {name}" for name in names]
    assert await values(database, vault, workspace, names) == expected
    done = await master_key.rotate(database, vault, TEST)
    assert (done.rotated, done.left) == (3, 0)
    assert await values(database, a_vault(NEW), workspace, names) == expected


async def test_a_long_rotation_comes_in_several_calls(
    database: Database, workspace: WorkspaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(database, a_vault(OLD), workspace, 5)
    monkeypatch.setattr(master_key, "BATCH", 1)
    monkeypatch.setattr(master_key, "MOST_BATCHES", 2)
    vault = a_vault(NEW, OLD)
    reported: list[master_key.KeyRotation] = []
    while not reported or reported[-1].left:
        reported.append(await master_key.rotate(database, vault, TEST))
    assert [(each.rotated, each.left) for each in reported] == [(2, 3), (2, 1), (1, 0)]


async def test_a_new_key_is_made_kept_and_used_by_other_processes_at_once(
    database: Database, workspace: WorkspaceId
) -> None:
    shared = InMemoryKeys(OLD)
    node, worker = Vault(shared), Vault(shared)
    [name] = await many(database, node, workspace, 1)
    done = await master_key.rotate(database, node, TEST, new_key=True)
    assert [key.id for key in shared.keys] == [done.present, OLD.id]
    assert await values(database, worker, workspace, [name]) == ["value of s000"]


async def test_keys_that_were_given_are_not_renewed_here(database: Database, workspace: WorkspaceId) -> None:
    with pytest.raises(Conflict, match="FOLIOT_MASTER_KEY"):
        await master_key.rotate(database, Vault(FixedKeys([OLD])), TEST, new_key=True)


async def test_a_lost_key_is_given_up_only_when_asked_and_secrets_are_set_anew(
    database: Database, workspace: WorkspaceId
) -> None:
    await many(database, a_vault(OLD), workspace, 2)
    vault = a_vault(NEW)
    done = await master_key.rotate(database, vault, TEST, accept_loss=True)
    assert (done.rotated, done.left, done.unreadable) == (0, 0, 2)
    found = (await secrets.page(database, Scope(workspace))).items[0]
    await secrets.replace(database, vault, Scope(workspace, TEST), found.id, "known again")
    assert await values(database, vault, workspace, ["s000", "s001"]) == ["known again", "secret_unreadable"]
    assert (await master_key.standing(database, vault)).unreadable == 1


async def test_what_is_damaged_is_left_as_it_is_and_keeps_nobody_from_the_rest(
    database: Database, workspace: WorkspaceId, owner: Owner
) -> None:
    await many(database, a_vault(OLD), workspace, 3)
    owner.execute("UPDATE foliot.secrets SET version = 9 WHERE name = 's001'")
    done = await master_key.rotate(database, a_vault(NEW, OLD), TEST)
    assert (done.rotated, done.left) == (2, 1)
    again = await master_key.rotate(database, a_vault(NEW, OLD), TEST)
    assert (again.rotated, again.left) == (0, 1)


async def test_what_was_sealed_for_a_secret_is_no_canary(database: Database, workspace: WorkspaceId) -> None:
    vault = a_vault(OLD)
    await master_key.begin(database, vault, makes=True)
    state = await installation.state(database)
    assert state.canary is not None
    sealed = SealedValue(OLD.id, state.canary)
    with pytest.raises(Exception, match=OLD.id):
        vault.open(b"foliot secret\0", sealed)
