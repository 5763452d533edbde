"""The schema as PostgreSQL sees it: every table, present and future, is held to the rules. And the rules can fail."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from foliot.storage.catalogue import RULES, violations

Owner = psycopg.Connection[Any]

GOOD = """
CREATE TABLE foliot.good (workspace_id uuid NOT NULL, id uuid PRIMARY KEY, name text, UNIQUE (workspace_id, id), UNIQUE (workspace_id, name));
ALTER TABLE foliot.good ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON foliot.good TO foliot_app;
CREATE POLICY good_own ON foliot.good TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
"""

# What someone might do to a good table, and the words of the rule that notices.
BREACHES = {
    "ALTER TABLE foliot.good DISABLE ROW LEVEL SECURITY": "not enabled",
    "ALTER TABLE foliot.good NO FORCE ROW LEVEL SECURITY": "not forced",
    "CREATE TABLE foliot.bad (id uuid PRIMARY KEY)": "first column",
    "DROP POLICY good_own ON foliot.good; CREATE POLICY half ON foliot.good FOR SELECT TO foliot_app"
    " USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)": "no policy covers it",
    "DROP POLICY good_own ON foliot.good": "no policy on it at all",
    "CREATE POLICY all_of_it ON foliot.good FOR SELECT TO foliot_app USING (true)": "does not ask for the workspace",
    "CREATE POLICY bare ON foliot.good FOR SELECT TO foliot_app"
    " USING (workspace_id = current_setting('foliot.workspace', true)::uuid)": "without NULLIF",
    "CREATE POLICY anyone ON foliot.good FOR SELECT USING (workspace_id ="
    " NULLIF(current_setting('foliot.workspace', true), '')::uuid)": "speaks to PUBLIC",
    "GRANT TRUNCATE ON foliot.good TO foliot_app": "TRUNCATE",
    "GRANT UPDATE (actor) ON foliot.audit TO foliot_app": "append only",
    "GRANT SELECT ON foliot.api_keys TO foliot_engine": "not for foliot_engine",
    "ALTER TABLE foliot.good OWNER TO foliot_app": "owned by a role of ours",
    "GRANT CREATE ON SCHEMA foliot TO foliot_app": "make things in the schema",
    "GRANT SELECT ON foliot.good TO PUBLIC": "PUBLIC has rights",
    "GRANT SELECT (name) ON foliot.good TO PUBLIC": "PUBLIC has rights",
    "GRANT USAGE ON SCHEMA foliot TO PUBLIC": "PUBLIC has rights",
    "CREATE FUNCTION foliot.f() RETURNS int LANGUAGE sql RETURN 1": "PUBLIC has rights",
    "CREATE VIEW foliot.v AS SELECT * FROM foliot.good": "security_invoker",
    "CREATE MATERIALIZED VIEW foliot.m AS SELECT * FROM foliot.good": "materialised",
    "CREATE FUNCTION foliot.f() RETURNS int LANGUAGE sql SECURITY DEFINER RETURN 1": "SECURITY DEFINER",
    "CREATE TABLE foliot.child (workspace_id uuid NOT NULL, good_id uuid REFERENCES foliot.good (id))": "so it can cross",
    "CREATE TABLE foliot.child (workspace_id uuid, good_id uuid,"
    " FOREIGN KEY (workspace_id, good_id) REFERENCES foliot.good (workspace_id, id))": "may be NULL",
    "CREATE UNIQUE INDEX good_name ON foliot.good (name)": "unique over all workspaces",
}


@pytest.mark.requirement("S4-AC-1")
def test_every_table_keeps_the_rules(owner: Owner) -> None:
    assert violations(owner) == []


def test_a_good_new_table_is_left_alone(owner: Owner) -> None:
    owner.execute(GOOD)
    owner.execute("CREATE VIEW foliot.v WITH (security_invoker = true) AS SELECT * FROM foliot.good")
    assert violations(owner) == []


@pytest.mark.parametrize(("change", "words"), BREACHES.items(), ids=BREACHES.values())
def test_a_breach_is_reported(owner: Owner, change: str, words: str) -> None:
    owner.execute(GOOD)
    owner.execute(change.encode())
    assert [each for each in violations(owner) if words in each]


def test_no_rule_is_without_a_breach_that_shows_it(owner: Owner) -> None:
    assert [
        rule.violation for rule in RULES if not any(words in rule.violation for words in BREACHES.values())
    ] == []


def test_the_roles_have_no_power_of_their_own(owner: Owner) -> None:
    roles = owner.execute(
        "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole FROM pg_roles WHERE rolname IN ('foliot_app', 'foliot_engine')"
    ).fetchall()
    assert roles == [(False, False, False, False)] * 2
