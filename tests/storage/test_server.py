"""Which servers are refused, and what is said of those that weaken a promise."""

from __future__ import annotations

import traceback
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.server import inspect, judge
from foliot.testing.database import LOGIN

SOUND: dict[str, Any] = {
    "version": 180_006, "in_recovery": False, "read_only": False, "fsync": True, "full_page_writes": True,
    "synchronous_commit": True, "login": "pool", "is_superuser": False, "bypasses_rls": False, "is_owner": False, "inherits": False,
}  # fmt: skip


def test_a_sound_server_gets_no_warning() -> None:
    facts = judge(SOUND)
    assert (facts.version, facts.login, facts.one_login, facts.warnings) == ("18.6", "pool", False, ())


@pytest.mark.parametrize("version", [90_624, 140_019])
def test_an_old_server_is_refused_by_version(version: int) -> None:
    with pytest.raises(DatabaseUnavailable, match=rf"PostgreSQL {version // 10_000}\.\d+; Foliot needs 15"):
        judge(SOUND | {"version": version})


@pytest.mark.parametrize(("fact", "words"), [("in_recovery", "replica"), ("read_only", "read-only")])
def test_a_server_that_takes_no_writes_is_refused(fact: str, words: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=words):
        judge(SOUND | {fact: True})


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_durability_setting_that_is_off_is_said_loudly(setting: str) -> None:
    (warning,) = judge(SOUND | {setting: False}).warnings
    assert warning.startswith(f"{setting} is off")


@pytest.mark.parametrize(
    ("version", "is_warned"),
    [
        (150_013, True),
        (150_014, False),
        (160_009, True),
        (160_010, False),
        (170_005, True),
        (170_006, False),
        (180_000, False),
    ],
)
def test_a_minor_with_the_known_hole_in_row_security_is_named(version: int, is_warned: bool) -> None:
    assert (
        any(
            "hole in row-level security" in warning
            for warning in judge(SOUND | {"version": version}).warnings
        )
        is is_warned
    )


@pytest.mark.parametrize(
    ("fact", "words"),
    [("is_superuser", "superuser"), ("bypasses_rls", "BYPASSRLS"), ("inherits", "NOINHERIT")],
)
def test_a_login_that_is_too_strong_is_named(fact: str, words: str) -> None:
    assert any(words in warning for warning in judge(SOUND | {fact: True}).warnings)


def test_a_login_that_also_owns_the_schema_weakens_the_separation() -> None:
    facts = judge(SOUND | {"is_owner": True})
    assert facts.one_login
    assert any("once, not twice" in warning for warning in facts.warnings)


def test_the_pools_login_on_this_server_is_as_designed(login_url: str) -> None:
    facts = inspect(login_url)
    assert facts.login == LOGIN.name
    assert not facts.one_login
    assert not [warning for warning in facts.warnings if LOGIN.name in warning]


def test_the_owner_as_the_only_login_is_noticed_on_this_server(owner_url: str) -> None:
    assert inspect(owner_url).one_login


def test_the_durability_settings_of_this_server_are_read(
    login_url: str, owner: psycopg.Connection[Any]
) -> None:
    off = {
        name
        for (name,) in owner.execute(
            "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
        )
    }
    said = {warning.split()[0] for warning in inspect(login_url).warnings if " is off" in warning}
    assert said == off
    relaxed = inspect(make_conninfo(login_url, options="-c synchronous_commit=off"))
    assert any(warning.startswith("synchronous_commit is off") for warning in relaxed.warnings)


def test_a_read_only_database_is_refused(login_url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="read-only"):
        inspect(make_conninfo(login_url, options="-c default_transaction_read_only=on"))


def test_a_refusal_is_reported_with_what_to_check(owner_url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not exist") as refused:
        inspect(make_conninfo(owner_url, dbname="no_such_database"))
    assert "check the name of the database" in str(refused.value.hint)


def test_a_wrong_password_is_reported_without_the_password(login_url: str) -> None:
    wrong = make_conninfo(login_url, password="hunter2")
    with pytest.raises(DatabaseUnavailable, match="authentication failed") as refused:
        inspect(wrong)
    assert "does not take this user and password" in str(refused.value.hint)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    "url", ["postgresql://u:hun%ter2@h/f", "postgresql://h/f?hunter2=1", "host=h hunter2"]
)
def test_an_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be read") as refused:
        inspect(url)
    assert "hun" not in "".join(traceback.format_exception(refused.value))


def test_no_server_at_all_is_one_clear_error() -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be used right now"):
        inspect("host=/nonexistent dbname=x")
