"""No key makes, or becomes, a stronger one: every pair of holders and scopes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from uuid import uuid4

import pytest

from foliot.domain.access import (
    WORKER,
    KeyHolder,
    MemberRole,
    Permission,
    Principal,
    PrincipalKind,
    check_expiry,
    check_narrower,
    check_scopes,
    check_sooner,
    is_within,
    refuse_stronger,
)
from foliot.domain.errors import Conflict, Denied, FoliotError, Invalid
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WORDS = [*(role.value for role in MemberRole), "system", WORKER]
SCOPES = [frozenset(words) for size in range(3) for words in combinations(WORDS, size)]
PRINCIPALS = [
    *(
        Principal(PrincipalId(uuid4()), WorkspaceId(uuid4()), kind, kind.value, role)
        for kind in (PrincipalKind.USER, PrincipalKind.AGENT)
        for role in MemberRole
    ),
    Principal(PrincipalId(uuid4()), None, PrincipalKind.SYSTEM, "root", MemberRole.ADMIN),
]
HOLDERS = [
    KeyHolder(principal, KeyId(uuid4()), scopes, None) for principal, scopes in product(PRINCIPALS, SCOPES)
]


def can(holder: KeyHolder) -> set[str]:
    return {each.value for each in Permission if holder.may(each)} | (holder.scopes & {WORKER})


def test_what_a_key_may_make_is_never_more_than_it_may_itself() -> None:
    power = {holder.key_id: can(holder) for holder in HOLDERS}
    for maker, made in product(HOLDERS, HOLDERS):
        more = power[made.key_id] - power[maker.key_id] - {WORKER}
        if is_within(maker, made):
            assert not more
            assert WORKER not in made.scopes or maker.may(Permission.ADMIN)
        else:
            assert more or WORKER in made.scopes


def test_a_narrowed_key_has_lost_rights_and_gained_none() -> None:
    for principal, before, after in product(PRINCIPALS, SCOPES, SCOPES):
        one = KeyHolder(principal, KeyId(uuid4()), before, None)
        other = KeyHolder(principal, KeyId(uuid4()), after, None)
        try:
            check_narrower(one, other)
        except Conflict:
            assert before != after
        else:
            assert can(other) <= can(one)


@pytest.mark.parametrize("role", list(MemberRole))
def test_an_agent_is_at_most_an_editor_whatever_its_role_says(role: MemberRole) -> None:
    agent = Principal(PrincipalId(uuid4()), WorkspaceId(uuid4()), PrincipalKind.AGENT, "bot", role)
    for scopes in SCOPES:
        holder = KeyHolder(agent, KeyId(uuid4()), scopes, None)
        assert not holder.may(Permission.ADMIN)
        assert not holder.may(Permission.SYSTEM)


def test_a_refusal_says_what_the_key_has() -> None:
    viewer, admin = (KeyHolder(PRINCIPALS[n], KeyId(uuid4()), frozenset(), None) for n in (0, 3))
    refuse_stronger(admin, viewer)
    with pytest.raises(Denied, match="has viewer"):
        refuse_stronger(viewer, admin)


def test_the_scope_system_is_for_the_installation_s_own() -> None:
    assert check_scopes(PRINCIPALS[-1], ["system"]) == {"system"}
    with pytest.raises(Invalid):
        check_scopes(PRINCIPALS[0], ["system"])


@pytest.mark.parametrize(
    ("ends", "wanted", "error"),
    [
        (None, None, None),
        (None, NOW + HOUR, None),
        (None, NOW, Invalid),
        (NOW + HOUR, NOW + HOUR, None),
        (NOW + HOUR, None, Denied),
        (NOW + HOUR, NOW + 2 * HOUR, Denied),
        (NOW + HOUR, NOW - HOUR, Invalid),
    ],
)
def test_a_key_makes_none_that_outlives_it(
    ends: datetime | None, wanted: datetime | None, error: type[FoliotError] | None
) -> None:
    maker = KeyHolder(PRINCIPALS[3], KeyId(uuid4()), frozenset(), ends)
    if error is None:
        check_expiry(maker, wanted, NOW)
    else:
        with pytest.raises(error):
            check_expiry(maker, wanted, NOW)


def test_an_end_only_comes_nearer() -> None:
    check_sooner(None, NOW + HOUR, NOW)
    check_sooner(NOW + 2 * HOUR, NOW + HOUR, NOW)
    for before, after in ((NOW + HOUR, None), (NOW + HOUR, NOW + 2 * HOUR)):
        with pytest.raises(Conflict):
            check_sooner(before, after, NOW)
    with pytest.raises(Invalid):
        check_sooner(None, NOW, NOW)
