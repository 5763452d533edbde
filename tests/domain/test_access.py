"""API keys can be recognised among noise without a database, and roles are ordered."""

from __future__ import annotations

import hashlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.access import (
    KEY_ENTROPY,
    ApiKey,
    KeyHolder,
    MemberRole,
    Permission,
    Principal,
    PrincipalKind,
    parse_key,
)
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId

ENTROPY = bytes(range(KEY_ENTROPY))
entropies = st.binary(min_size=KEY_ENTROPY, max_size=KEY_ENTROPY)


@given(entropies)
def test_a_key_that_was_made_is_read_back(entropy: bytes) -> None:
    key = ApiKey.make(entropy)
    assert parse_key(key.secret) == key
    assert len(key.secret) == len("fol_") + 8 + len("_") + 32 + 6
    assert key.secret.startswith(f"fol_{key.prefix}_")


@given(entropies, entropies)
def test_different_entropy_makes_different_secrets(one: bytes, other: bytes) -> None:
    assert (ApiKey.make(one).secret == ApiKey.make(other).secret) == (
        one[8:] == other[8:] and ApiKey.make(one).prefix == ApiKey.make(other).prefix
    )


@given(entropies, st.data())
def test_one_wrong_character_is_refused_by_the_checksum(entropy: bytes, data: st.DataObject) -> None:
    secret = ApiKey.make(entropy).secret
    place = data.draw(st.integers(4, len(secret) - 1).filter(lambda at: secret[at] != "_"))
    wrong = data.draw(st.sampled_from("0aZ").filter(lambda letter: letter != secret[place]))
    assert parse_key(secret[:place] + wrong + secret[place + 1 :]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fol_",
        ApiKey.make(ENTROPY).secret[:-1],
        ApiKey.make(ENTROPY).secret + "0",
        ApiKey.make(ENTROPY).secret + "\n",
        " " + ApiKey.make(ENTROPY).secret,
        ApiKey.make(ENTROPY).secret.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
        "x" * 1_000_000,
    ],
)
def test_what_is_not_a_whole_key_is_no_key(text: str) -> None:
    assert parse_key(text) is None


@given(st.text())
def test_no_text_makes_parsing_fail(text: str) -> None:
    parse_key(text)


def test_only_the_hash_is_kept_and_the_repr_hides_the_secret() -> None:
    key = ApiKey.make(ENTROPY)
    assert key.hash == hashlib.sha256(key.secret.encode()).digest()
    assert key.secret not in repr(key)
    assert key.prefix in repr(key)


def test_a_key_needs_all_its_entropy() -> None:
    with pytest.raises(ValueError, match="31 bytes"):
        ApiKey.make(b"too little")


def test_roles_rise_from_viewer_to_admin() -> None:
    assert sorted(MemberRole, key=lambda role: role.rank) == ["viewer", "operator", "editor", "admin"]
    assert MemberRole.EDITOR.is_at_least(MemberRole.OPERATOR)
    assert not MemberRole.VIEWER.is_at_least(MemberRole.OPERATOR)


SOME_ID = UUID(int=7)


def holder(role: MemberRole, *scopes: str, system: bool = False) -> KeyHolder:
    workspace = None if system else WorkspaceId(SOME_ID)
    kind = PrincipalKind.SYSTEM if system else PrincipalKind.SERVICE
    principal = Principal(PrincipalId(SOME_ID), workspace, kind, "x", role)
    return KeyHolder(principal, KeyId(SOME_ID), frozenset(scopes), None)


@pytest.mark.parametrize(
    ("who", "may"),
    [
        (holder(MemberRole.VIEWER), "viewer"),
        (holder(MemberRole.EDITOR), "viewer operator editor"),
        (holder(MemberRole.ADMIN), "viewer operator editor admin"),
        (holder(MemberRole.ADMIN, system=True), "viewer operator editor admin system"),
        (holder(MemberRole.ADMIN, "operator"), "viewer operator"),
        (holder(MemberRole.ADMIN, "operator", "viewer", "worker"), "viewer operator worker"),
        (holder(MemberRole.VIEWER, "admin"), "viewer"),
        (holder(MemberRole.ADMIN, "worker"), "worker"),
        (holder(MemberRole.ADMIN, "system"), "viewer operator editor admin"),
        (holder(MemberRole.ADMIN, "viewer", system=True), "viewer"),
        (holder(MemberRole.ADMIN, "viewer", "worker", system=True), "viewer"),
        (holder(MemberRole.ADMIN, "system", system=True), "viewer operator editor admin system"),
    ],
)
def test_a_key_may_what_its_role_allows_and_its_scopes_leave(who: KeyHolder, may: str) -> None:
    assert " ".join(each for each in Permission if who.may(each)) == may
