"""Secrets of a workspace: kept sealed, named by jobs, put into their runs, and refused where they are not theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import Actor, MemberRole, Principal, PrincipalKind, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import Conflict, FoliotError, Invalid, NotFound, QuotaExceeded, StaleRevision
from foliot.domain.ids import JobId, PrincipalId, SecretId, WorkspaceId
from foliot.domain.quotas import Quotas
from foliot.domain.run import Target, TargetKind
from foliot.domain.schedule import Interval
from foliot.services.identity import workspaces
from foliot.services.jobs import job_edits, jobs
from foliot.services.secrets import secrets
from foliot.services.secrets.vault import Vault
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, Work, claim_work
from foliot.storage.identity import members
from foliot.storage.tx import Database, Role
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST, a_vault
from tests.services.builders import WORKER, Owner, advance_and_tick

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
VALUE = "plain-8c1e0f-value"


def naming(*names: str, **fields: Any) -> Definition:
    """A job whose headers are these secrets."""
    headers = {f"x-{name}": {"secret": name} for name in names}
    config = {"url": "https://example.test", "headers": headers}
    return replace(Definition("sync", Spec(Interval(HOUR), "http"), config=config), **fields)


@pytest.fixture
def vault() -> Vault:
    return a_vault()


async def kept(
    database: Database, vault: Vault, workspace: WorkspaceId, name: str, value: str = VALUE
) -> SecretId:
    return await secrets.create(database, vault, Scope(workspace, TEST), name, value)


async def claimed(database: Database, vault: Vault | None, types: tuple[str, ...] = ("http",)) -> list[Work]:
    return (
        await claim_work(database, Claimer(WORKER, "default", types, ClaimSize(100), Turns()), vault)
    ).work


async def test_a_secret_is_shown_without_its_value_and_kept_without_it(
    database: Database, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    secret_id = await kept(database, vault, workspace, "crm")
    found = await secrets.get(database, Scope(workspace), secret_id)
    assert (found.name, found.version, found.users, found.key_id) == ("crm", 1, 0, vault.present)
    assert VALUE not in repr(found)
    assert not rows_with(owner, VALUE)


async def test_a_new_value_is_a_new_version_and_the_old_one_is_gone(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault
) -> None:
    secret_id = await kept(database, vault, workspace, "crm", "the-old-one")
    await jobs.create(database, Scope(workspace, TEST), naming("crm"))
    await secrets.replace(
        database, vault, Scope(workspace, TEST, expected_revision=1), secret_id, "the-new-one"
    )
    assert (await secrets.get(database, Scope(workspace), secret_id)).version == 2
    with pytest.raises(StaleRevision):
        await secrets.replace(
            database, vault, Scope(workspace, TEST, expected_revision=1), secret_id, "another"
        )
    await advance_and_tick(database, clock, HOUR)
    [work] = await claimed(database, vault)
    assert work.config["headers"] == {"x-crm": "the-new-one"}


async def test_a_name_is_taken_once_in_a_workspace(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    await kept(database, vault, workspace, "crm")
    with pytest.raises(Conflict, match='named "crm" already'):
        await kept(database, vault, workspace, "crm")
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    await kept(database, vault, other, "crm")


@pytest.mark.parametrize("value", ["a\0b", "lone \ud800"])
async def test_what_is_no_text_is_refused_and_not_quoted(
    database: Database, workspace: WorkspaceId, vault: Vault, value: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await kept(database, vault, workspace, "crm", value)
    assert refused.value.pointer == "/value"
    assert refused.value.__cause__ is None


async def test_a_run_gets_the_values_and_what_to_mask_and_the_ledger_neither(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    await kept(database, vault, workspace, "crm")
    await kept(database, vault, workspace, "hook", "https://hooks.example.test/x")
    body = {"deep": [{"secret": "hook"}], "plain": 1}
    config = {"url": {"secret": "hook"}, "headers": {"a": {"secret": "crm"}}, "body": body}
    job = (
        await jobs.create(database, Scope(workspace, TEST), naming(config=config, payload={"full": True}))
    ).id
    await advance_and_tick(database, clock, HOUR)
    [work] = await claimed(database, vault)
    assert work.config == {
        "url": "https://hooks.example.test/x",
        "headers": {"a": VALUE},
        "body": {"deep": ["https://hooks.example.test/x"], "plain": 1},
    }
    assert set(work.masks) == {VALUE, "https://hooks.example.test/x"}
    assert work.input == {"full": True}
    assert VALUE not in repr(work)
    assert (await jobs.get(database, workspace, job)).definition.config == config
    assert not rows_with(owner, VALUE)


async def test_work_without_secrets_has_nothing_to_mask_and_asks_for_no_vault(
    database: Database, clock: ManualClock, workspace: WorkspaceId
) -> None:
    await jobs.create(database, Scope(workspace, TEST), naming())
    await advance_and_tick(database, clock, HOUR)
    [work] = await claimed(database, None)
    assert (work.masks, work.config) == ((), {"url": "https://example.test", "headers": {}})


async def test_a_secret_that_is_missing_or_unreadable_fails_its_own_run_and_nobody_elses(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    gone = await kept(database, vault, workspace, "gone")
    await kept(database, vault, workspace, "good")
    await kept(database, vault, workspace, "foreign")
    await kept(database, vault, workspace, "damaged")
    for name in ("good", "gone", "foreign", "damaged"):
        await jobs.create(database, Scope(workspace, TEST), naming(name, name=name))
    await secrets.delete(database, Scope(workspace, TEST), gone, force=True)
    owner.execute("UPDATE foliot.secrets SET key_id = 'ffffffffffff' WHERE name = 'foreign'")
    owner.execute(
        "UPDATE foliot.secrets SET sealed_value = set_byte(sealed_value, 14, get_byte(sealed_value, 14) # 1) WHERE name = 'damaged'"
    )
    await advance_and_tick(database, clock, HOUR)
    assert [work.job for work in await claimed(database, vault)] == ["good"]
    ended = owner.execute(
        "SELECT jobs.name, runs.status, attempts.error ->> 'code', attempts.error ->> 'message'"
        " FROM foliot.attempts JOIN foliot.runs ON runs.id = attempts.run_id JOIN foliot.jobs ON jobs.id = runs.job_id ORDER BY 1"
    ).fetchall()
    assert [(name, code) for name, _, code, _ in ended] == [
        ("damaged", "secret_unreadable"),
        ("foreign", "secret_unreadable"),
        ("gone", "secret_missing"),
    ]
    assert "not what was sealed" in ended[0][3]
    assert "ffffffffffff" in ended[1][3]


async def test_a_worker_without_a_vault_fails_what_needs_one(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    await kept(database, vault, workspace, "crm")
    await jobs.create(database, Scope(workspace, TEST), naming("crm"))
    await advance_and_tick(database, clock, HOUR)
    assert await claimed(database, None) == []
    assert owner.execute("SELECT error ->> 'code' FROM foliot.attempts").fetchall() == [
        ("secret_unreadable",)
    ]


async def test_runs_of_several_workspaces_get_each_its_own(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault
) -> None:
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    for place, value in ((workspace, "value-of-one"), (other, "value-of-two")):
        await kept(database, vault, place, "crm", value)
        await jobs.create(database, Scope(place, TEST), naming("crm"))
    await advance_and_tick(database, clock, HOUR)
    found = {work.claimed.workspace_id: work.masks for work in await claimed(database, vault)}
    assert found == {workspace: ("value-of-one",), other: ("value-of-two",)}


@pytest.mark.parametrize("move", ["workspace", "id", "version"])
async def test_a_sealed_value_moved_elsewhere_in_the_database_does_not_open(
    database: Database, clock: ManualClock, workspace: WorkspaceId, vault: Vault, owner: Owner, move: str
) -> None:
    """By a person who may write to the tables: to make another workspace use it, or an old one come back."""
    secret_id = await kept(database, vault, workspace, "crm", "the-old-one")
    sealed = owner.execute("SELECT key_id, sealed_value FROM foliot.secrets").fetchone()
    assert sealed is not None
    place = workspace
    if move == "workspace":
        place = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
        owner.execute("UPDATE foliot.secrets SET workspace_id = %s", [place])
    elif move == "id":
        other = await kept(database, vault, workspace, "mine")
        owner.execute("UPDATE foliot.secrets SET sealed_value = %s WHERE id = %s", [sealed[1], other])
    else:
        await secrets.replace(database, vault, Scope(workspace, TEST), secret_id, "the-new-one")
        owner.execute("UPDATE foliot.secrets SET sealed_value = %s", [sealed[1]])
    await jobs.create(database, Scope(place, TEST), naming("mine" if move == "id" else "crm"))
    await advance_and_tick(database, clock, HOUR)
    assert await claimed(database, vault) == []
    assert owner.execute("SELECT error ->> 'code' FROM foliot.attempts").fetchall() == [
        ("secret_unreadable",)
    ]


async def test_a_job_that_names_what_is_not_there_is_refused_with_its_place_and_a_guess(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    await kept(database, vault, workspace, "crm-token")
    with pytest.raises(Invalid) as refused:
        await jobs.create(database, Scope(workspace, TEST), naming("crm-tokn"))
    assert refused.value.pointer == "/config/headers/x-crm-tokn"
    assert refused.value.hint == 'Did you mean "crm-token"?'
    with pytest.raises(Invalid) as refused:
        await jobs.create(database, Scope(workspace, TEST), naming("crm-token", "one", "two"))
    assert [part.pointer for part in refused.value.parts] == [
        "/config/headers/x-one",
        "/config/headers/x-two",
    ]
    made = (await jobs.create(database, Scope(workspace, TEST), naming("crm-token"))).id
    with pytest.raises(Invalid):
        await job_edits.edit(database, Scope(workspace, TEST), made, naming("one"))


async def test_another_workspaces_secret_is_not_there(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    theirs = await kept(database, vault, other, "crm")
    with pytest.raises(Invalid, match='no secret "crm"'):
        await jobs.create(database, Scope(workspace, TEST), naming("crm"))
    with pytest.raises(NotFound):
        await secrets.get(database, Scope(workspace), theirs)
    with pytest.raises(NotFound):
        await secrets.replace(database, vault, Scope(workspace, TEST), theirs, "mine")
    with pytest.raises(NotFound):
        await secrets.delete(database, Scope(workspace, TEST), theirs, force=True)


async def test_a_secret_in_use_is_deleted_only_by_force_and_its_users_are_named(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    secret_id = await kept(database, vault, workspace, "crm")
    made = (await jobs.create(database, Scope(workspace, TEST), naming("crm", name="nightly"))).id
    assert (await secrets.get(database, Scope(workspace), secret_id)).users == 1
    users = await secrets.users(database, Scope(workspace), secret_id)
    assert users.items == ((made, "nightly"),)
    with pytest.raises(Conflict, match='used by "nightly"'):
        await secrets.delete(database, Scope(workspace, TEST), secret_id)
    await secrets.delete(database, Scope(workspace, TEST), secret_id, force=True)
    again = await kept(database, vault, workspace, "crm")
    assert (await secrets.get(database, Scope(workspace), again)).users == 1
    await job_edits.edit(database, Scope(workspace, TEST), made, naming())
    assert (await secrets.get(database, Scope(workspace), again)).users == 0
    await secrets.delete(database, Scope(workspace, TEST), again)


async def test_a_job_keeps_its_name_for_a_secret_that_is_gone_while_other_things_are_edited(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    secret_id = await kept(database, vault, workspace, "crm")
    made = (await jobs.create(database, Scope(workspace, TEST), naming("crm"))).id
    await secrets.delete(database, Scope(workspace, TEST), secret_id, force=True)
    await job_edits.edit(database, Scope(workspace, TEST), made, naming("crm", name="renamed"))
    with pytest.raises(Invalid):
        await job_edits.edit(database, Scope(workspace, TEST), made, naming("crm", "crm", "other"))


async def an_agent(database: Database, workspace: WorkspaceId, name: str) -> PrincipalId:
    holder = Principal(PrincipalId(uuid4()), workspace, PrincipalKind.AGENT, name, MemberRole.EDITOR)
    async with database.tx(Role.APP, workspace) as tx:
        await members.insert_principal(tx, holder)
    return holder.id


async def test_an_agent_uses_what_it_was_given_and_finds_nothing_else(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    agent, stranger = [await an_agent(database, workspace, name) for name in ("mine", "other")]
    secret_id = await secrets.create(database, vault, Scope(workspace, TEST), "crm", VALUE, [agent])
    await kept(database, vault, workspace, "prod-db")
    me, them = (Scope(workspace, Actor(str(each)), visible_owner=each) for each in (agent, stranger))
    made = (await jobs.create(database, me, naming("crm", owner_id=agent))).id
    for by, name in ((me, "prod-db"), (them, "crm")):
        with pytest.raises(Invalid) as refused:
            await jobs.create(database, by, naming(name))
        assert refused.value.hint is not None
        assert "prod-db" not in refused.value.hint
    assert [
        each.name for each in (await secrets.page(database, Scope(workspace, visible_owner=agent))).items
    ] == ["crm"]
    with pytest.raises(NotFound):
        await secrets.get(database, Scope(workspace, visible_owner=stranger), secret_id)
    await secrets.give(database, Scope(workspace, TEST), secret_id, [stranger])
    await job_edits.edit(
        database,
        me,
        made,
        naming("crm", name="renamed", owner_id=agent),
    )
    elsewhere = naming("crm", owner_id=agent)
    elsewhere = replace(elsewhere, config={**elsewhere.config, "url": "https://elsewhere.test"})
    with pytest.raises(Invalid):
        await job_edits.edit(database, me, made, elsewhere)


@pytest.mark.parametrize(
    "moved", [{"type": "DATA_SYNC"}, {"queue": "elsewhere"}, {"target": Target(TargetKind.HOST, "h1")}]
)
async def test_a_job_that_goes_elsewhere_with_its_secrets_is_asked_about_them_again(
    database: Database, workspace: WorkspaceId, vault: Vault, moved: dict[str, Any], owner: Owner
) -> None:
    agent = await an_agent(database, workspace, "mine")
    owner.execute(
        "INSERT INTO foliot.hosts (workspace_id, id, name, labels, principal_id, version, created_at, updated_at, last_seen_at, alive_until)"
        " VALUES (%s, gen_random_uuid(), 'h1', '{}', %s, '1', now(), now(), now(), now())",
        [workspace, agent],
    )
    me = Scope(workspace, Actor(str(agent)), visible_owner=agent)
    secret_id = await kept(database, vault, workspace, "prod-db")
    named = naming("prod-db", owner_id=agent)
    with pytest.raises(Invalid, match="was not given the secret"):
        await jobs.create(database, Scope(workspace, TEST), named)
    await secrets.give(database, Scope(workspace, TEST), secret_id, [agent])
    made = (await jobs.create(database, Scope(workspace, TEST), named)).id
    await secrets.give(database, Scope(workspace, TEST), secret_id, [])
    elsewhere = replace(named, spec=replace(named.spec, **moved))
    with pytest.raises(Invalid, match="There is no secret"):
        await job_edits.edit(database, me, made, elsewhere)
    await job_edits.edit(database, me, made, replace(named, name="renamed"))
    await job_edits.edit(database, Scope(workspace, TEST), made, elsewhere)


async def test_a_workspace_has_as_many_secrets_as_its_quota_allows(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    by = Scope(workspace, replace(TEST, quotas=Quotas(secrets=1)))
    secret_id = await secrets.create(database, vault, by, "one", VALUE)
    with pytest.raises(QuotaExceeded) as refused:
        await secrets.create(database, vault, by, "two", VALUE)
    assert (refused.value.quota, refused.value.limit, refused.value.used) == ("secrets", 1, 1)
    await secrets.replace(database, vault, by, secret_id, "new")
    await secrets.delete(database, by, secret_id)
    await secrets.create(database, vault, by, "two", VALUE)


async def test_a_secret_is_given_to_agents_of_its_own_workspace_alone(
    database: Database, workspace: WorkspaceId, vault: Vault
) -> None:
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    foreign = await an_agent(database, other, "theirs")
    with pytest.raises(Invalid) as refused:
        await secrets.create(database, vault, Scope(workspace, TEST), "crm", VALUE, [foreign])
    assert refused.value.pointer == "/agents/0"


async def test_a_workspace_that_is_put_away_loses_its_secrets(
    database: Database, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    other = (await workspaces.create(database, TEST, "other", "Other", "UTC", {})).id
    await kept(database, vault, workspace, "stays")
    await kept(database, vault, other, "goes")
    await workspaces.archive(database, TEST, other)
    assert owner.execute("SELECT name FROM foliot.secrets").fetchall() == [("stays",)]
    with pytest.raises(FoliotError):
        await kept(database, vault, other, "late")


async def test_the_audit_tells_who_did_what_to_which_version(
    database: Database, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    secret_id = await kept(database, vault, workspace, "crm")
    await secrets.replace(database, vault, Scope(workspace, TEST), secret_id, VALUE + "2")
    await secrets.delete(database, Scope(workspace, TEST), secret_id)
    reported = owner.execute(
        "SELECT action, before, after FROM foliot.audit WHERE object_kind = 'secret' ORDER BY action"
    ).fetchall()
    assert reported == [
        ("secret.created", None, {"name": "crm", "version": 1, "agents": []}),
        ("secret.deleted", {"name": "crm", "version": 2}, None),
        ("secret.replaced", {"name": "crm", "version": 1}, {"name": "crm", "version": 2}),
    ]


async def test_a_purged_job_no_longer_counts(
    database: Database, workspace: WorkspaceId, vault: Vault, owner: Owner
) -> None:
    secret_id = await kept(database, vault, workspace, "crm")
    made: JobId = (await jobs.create(database, Scope(workspace, TEST), naming("crm"))).id
    owner.execute("UPDATE foliot.jobs SET status = 'archived' WHERE id = %s", [UUID(str(made))])
    assert (await secrets.get(database, Scope(workspace), secret_id)).users == 0
    await secrets.delete(database, Scope(workspace, TEST), secret_id)


def rows_with(owner: Owner, text: str) -> list[str]:
    """The tables that have a row with this text anywhere in it, also as bytes."""
    tables = owner.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r'"
    ).fetchall()
    found = []
    for (name,) in tables:
        asked = f"SELECT FROM foliot.{name} AS it WHERE it::text LIKE %s OR it::text LIKE %s LIMIT 1"
        if owner.execute(asked, [f"%{text}%", f"%{text.encode().hex()}%"]).fetchone() is not None:
            found.append(name)
    return found
