"""Security rules for every table, view and function of the schema, checked in PostgreSQL's own catalogue.

Each rule is a query that returns its violations, so new tables are checked without a change here. An exception is an entry
in one of the lists, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

# Tables whose rows belong to no workspace.
GLOBAL = {
    "installation": "one row about the installation itself",
    "migrations": "the migrations that were applied",
    "outages": "times without a scheduler, of the installation as a whole",
    "scheduler_clock": "one row: the last tick of any scheduler",
    "scans": "progress of the janitor's scans over all workspaces",
    "workspaces": "its id is the workspace, and the policies compare that",
}
NOT_FORCED = {"migrations": "the runner reads and writes it as the owner; it has no data of a workspace"}
APPEND_ONLY = ("audit", "revisions")
ENGINE_MAY_NOT_SEE = ("api_keys", "principals", "secrets", "sessions", "audit", "revisions")
# Unique over all workspaces and without an id: its refusal could tell one workspace about another.
GLOBALLY_UNIQUE = {
    "api_keys_found_by_hash": "a hash of 184 random bits, so two workspaces never have the same",
    "sql_logins_pkey": "logins belong to the server; only administrators of the installation write them",
}
DEFINER_FUNCTIONS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Rule:
    violation: str
    query: str  # returns the names of violating objects


def violations(connection: psycopg.Connection[Any]) -> list[str]:
    """Return one sentence for each violation."""
    lists = {
        "global": list(GLOBAL),
        "not_forced": list(NOT_FORCED),
        "append_only": list(APPEND_ONLY),
        "engine_may_not": list(ENGINE_MAY_NOT_SEE),
        "globally_unique": list(GLOBALLY_UNIQUE),
        "definers": list(DEFINER_FUNCTIONS),
    }
    found = []
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        for rule in RULES:
            rows = cursor.execute((_COMMON + rule.query).encode(), lists).fetchall()
            found += [f"{name}: {rule.violation}" for (name,) in rows]
    return found


_COMMON = """
WITH tables AS (SELECT oid, relname::text AS name, relrowsecurity, relforcerowsecurity FROM pg_class
                 WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'p')),
     tenant_tables AS (SELECT * FROM tables WHERE name <> ALL (%(global)s)),
     ours AS (SELECT oid, rolname::text AS name FROM pg_roles WHERE rolname IN ('foliot_app', 'foliot_engine', 'foliot_reader')),
     workspace_columns AS (SELECT attrelid, attnum FROM pg_attribute WHERE NOT attisdropped
                              AND (attname = 'workspace_id' OR (attname = 'workspace_key' AND attgenerated = 's'))),
     rights AS (SELECT tables.oid, tables.name AS table_name, ours.oid AS role_oid, ours.name AS role_name, command, letter
                  FROM tables CROSS JOIN ours
                 CROSS JOIN (VALUES ('SELECT', 'r'), ('INSERT', 'a'), ('UPDATE', 'w'), ('DELETE', 'd')) AS commands (command, letter)
                 WHERE CASE command WHEN 'DELETE' THEN has_table_privilege(ours.oid, tables.oid, command)
                                    ELSE has_any_column_privilege(ours.oid, tables.oid, command) END),
     policies AS (SELECT polrelid, polname::text AS name, polcmd, polroles, polpermissive,
                         pg_get_expr(polqual, polrelid) AS using_expr, pg_get_expr(polwithcheck, polrelid) AS check_expr
                    FROM pg_policy)
"""

RULES = (
    Rule("row-level security is not enabled", "SELECT name FROM tables WHERE NOT relrowsecurity"),
    Rule(
        "row-level security is not forced, so its owner would see every workspace",
        "SELECT name FROM tables WHERE NOT relforcerowsecurity AND name <> ALL (%(not_forced)s)",
    ),
    Rule(
        "workspace_id (uuid) is not its first column",
        """SELECT name FROM tenant_tables WHERE NOT EXISTS
             (SELECT FROM pg_attribute WHERE attrelid = tenant_tables.oid AND attname = 'workspace_id'
                 AND attnum = 1 AND atttypid = 'uuid'::regtype)""",
    ),
    Rule(
        "granted, but no policy covers it with the USING and WITH CHECK it needs",
        """SELECT format('%%s on %%s for %%s', command, table_name, role_name) FROM rights WHERE NOT EXISTS
             (SELECT FROM policies WHERE polrelid = rights.oid AND polpermissive AND role_oid = ANY (polroles)
                 AND (polcmd = '*' OR polcmd::text = letter)
                 AND (letter = 'a' OR using_expr IS NOT NULL)
                 AND (letter IN ('r', 'd') OR check_expr IS NOT NULL))""",
    ),
    Rule(
        "foliot_app has no policy on it at all",
        """SELECT name FROM tables WHERE NOT EXISTS
             (SELECT FROM policies, ours WHERE polrelid = tables.oid AND ours.name = 'foliot_app' AND ours.oid = ANY (polroles))""",
    ),
    Rule(
        "a policy of foliot_app does not ask for the workspace, the system setting or the presented key",
        """SELECT tenant_tables.name || '.' || policies.name FROM policies JOIN tenant_tables ON tenant_tables.oid = polrelid
             JOIN ours ON ours.name = 'foliot_app' AND ours.oid = ANY (polroles)
            WHERE using_expr !~ 'foliot\\.(workspace|system|key_hash)' OR check_expr !~ 'foliot\\.(workspace|system|key_hash)'""",
    ),
    Rule(
        "a policy compares foliot.workspace without NULLIF, so an empty setting is an error and not no rows",
        """SELECT polrelid::regclass || '.' || name FROM policies WHERE polrelid IN (SELECT oid FROM tables)
              AND concat(using_expr, check_expr) ~ 'current_setting\\(''foliot.workspace'
              AND concat(using_expr, check_expr) !~* 'NULLIF\\(current_setting\\(''foliot.workspace'""",
    ),
    Rule(
        "a policy speaks to PUBLIC",
        "SELECT polrelid::regclass || '.' || name FROM policies WHERE polrelid IN (SELECT oid FROM tables) AND 0 = ANY (polroles)",
    ),
    Rule(
        "a role of ours may TRUNCATE, REFERENCE or put triggers on it",
        """SELECT tables.name FROM tables, ours WHERE has_table_privilege(ours.oid, tables.oid, 'TRUNCATE')
               OR has_table_privilege(ours.oid, tables.oid, 'REFERENCES') OR has_table_privilege(ours.oid, tables.oid, 'TRIGGER')""",
    ),
    Rule(
        "append only, yet it can be changed or deleted from",
        """SELECT format('%%s by %%s', table_name, role_name) FROM rights
            WHERE table_name = ANY (%(append_only)s) AND command IN ('UPDATE', 'DELETE')""",
    ),
    Rule(
        "not for foliot_engine",
        """SELECT format('%%s on %%s', command, table_name) FROM rights WHERE role_name = 'foliot_engine'
              AND table_name = ANY (%(engine_may_not)s) AND NOT (table_name = ANY (%(append_only)s) AND command = 'INSERT')""",
    ),
    Rule(
        "owned by a role of ours, which could then switch row-level security off",
        """SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relowner IN (SELECT oid FROM ours)
           UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'foliot'::regnamespace AND proowner IN (SELECT oid FROM ours)
           UNION ALL SELECT nspname FROM pg_namespace WHERE nspname = 'foliot' AND nspowner IN (SELECT oid FROM ours)""",
    ),
    Rule(
        "a role of ours could get around row-level security, log in, or make things in the schema",
        """SELECT rolname FROM pg_roles JOIN ours USING (oid)
            WHERE rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole OR rolcreatedb OR rolreplication
               OR has_schema_privilege(oid, 'foliot', 'CREATE')""",
    ),
    Rule(
        "PUBLIC has rights on it",
        """SELECT relname FROM pg_class, aclexplode(relacl) AS acl WHERE relnamespace = 'foliot'::regnamespace AND acl.grantee = 0
           UNION SELECT attrelid::regclass::text FROM pg_attribute, aclexplode(attacl) AS acl
            WHERE attrelid IN (SELECT oid FROM tables) AND acl.grantee = 0
           UNION SELECT nspname FROM pg_namespace, aclexplode(nspacl) AS acl WHERE nspname = 'foliot' AND acl.grantee = 0
           UNION SELECT proname FROM pg_proc, aclexplode(COALESCE(proacl, acldefault('f', proowner))) AS acl
            WHERE pronamespace = 'foliot'::regnamespace AND acl.grantee = 0""",
    ),
    Rule(
        "a view without security_invoker reads with its owner's eyes",
        """SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'v'
              AND NOT COALESCE(reloptions && ARRAY['security_invoker=true', 'security_invoker=on', 'security_invoker=1'], false)""",
    ),
    Rule(
        "a materialised view keeps rows outside row-level security",
        "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'm'",
    ),
    Rule(
        "a SECURITY DEFINER function acts with its owner's rights",
        """SELECT proname FROM pg_proc WHERE pronamespace = 'foliot'::regnamespace AND prosecdef AND proname <> ALL (%(definers)s)""",
    ),
    Rule(
        "a foreign key between tables of workspaces leaves the workspace out, so it can cross",
        """SELECT conname FROM pg_constraint WHERE contype = 'f'
              AND conrelid IN (SELECT oid FROM tenant_tables) AND confrelid IN (SELECT oid FROM tenant_tables)
              AND NOT EXISTS (SELECT FROM unnest(conkey, confkey) AS pair (here, there)
                                JOIN workspace_columns AS mine ON mine.attrelid = conrelid AND mine.attnum = here
                                JOIN workspace_columns AS theirs ON theirs.attrelid = confrelid AND theirs.attnum = there)""",
    ),
    Rule(
        "a foreign key contains a workspace_id that may be NULL, and is not checked then: use workspace_key",
        """SELECT conname FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
            WHERE contype = 'f' AND attname = 'workspace_id' AND NOT attnotnull
              AND conrelid IN (SELECT oid FROM tenant_tables) AND confrelid IN (SELECT oid FROM tenant_tables)""",
    ),
    Rule(
        "unique over all workspaces, so that a refusal tells what another workspace has",
        """SELECT indexrelid::regclass::text FROM pg_index JOIN tenant_tables ON tenant_tables.oid = indrelid
            WHERE indisunique AND indexrelid::regclass::text <> ALL
                  (SELECT unnest(%(globally_unique)s::text[]) UNION SELECT 'foliot.' || unnest(%(globally_unique)s::text[]))
              AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey)
                                 AND atttypid = 'uuid'::regtype)""",
    ),
)
