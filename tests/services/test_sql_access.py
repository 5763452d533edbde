"""Programs that use the database itself: a login reads the reports of one workspace, and creates jobs there with SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.domain.schedule import Cron, Interval
from foliot.handlers.dependencies import DEFAULT_EGRESS_POLICY
from foliot.services.jobs import jobs
from foliot.testing.fixtures import EVE
from foliot.wiring.janitor_tasks import inbox_task
from tests.services.workspace_harness import WorkspaceHarness

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "sql.md"
Login = psycopg.Connection[Any]
JOB = {
    "name": "from sql",
    "type": "http",
    "config": {"url": "https://example.com/report"},
    "schedule": {"words": "every day at 9am", "timezone": "UTC"},
}


@pytest.fixture
def login(harness: WorkspaceHarness, owner_url: str) -> Iterator[Login]:
    """A session of a login that may read one workspace and create jobs in it."""
    name = f"bi_{uuid4().hex[:12]}"
    harness.owner.execute(SQL("CREATE ROLE {} LOGIN").format(Identifier(name)))
    harness.owner.execute(SQL("GRANT foliot_reader TO {}").format(Identifier(name)))
    harness.owner.execute(
        "INSERT INTO foliot.sql_logins (workspace_id, login, creates_jobs) VALUES (%s, %s, true)",
        [harness.workspace, name],
    )
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(SQL("SET SESSION AUTHORIZATION {}").format(Identifier(name)))
        yield connection
    harness.owner.execute("DELETE FROM foliot.sql_logins")
    harness.owner.execute(SQL("DROP OWNED BY {}").format(Identifier(name)))
    harness.owner.execute(SQL("DROP ROLE {}").format(Identifier(name)))


def insert_globex(harness: WorkspaceHarness) -> WorkspaceId:
    workspace = WorkspaceId(uuid4())
    harness.owner.execute(
        "INSERT INTO foliot.workspaces (id, slug, name, created_at) VALUES (%s, 'globex', 'Globex', %s)",
        [workspace, harness.clock.now()],
    )
    return workspace


async def process(harness: WorkspaceHarness, quotas: Quotas = UNLIMITED) -> None:
    await inbox_task(harness.database, DEFAULT_EGRESS_POLICY, quotas)()


def rows(connection: Login, query: str, *params: object) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), params).fetchall()


@pytest.mark.requirement("S2-32")
async def test_a_job_inserted_with_sql_is_created_and_armed(harness: WorkspaceHarness, login: Login) -> None:
    [(entry,)] = rows(login, "SELECT foliot.create_job(%s)", Jsonb(JOB))
    await process(harness)
    [(job_id, error)] = rows(login, "SELECT job_id, error FROM foliot.job_inbox WHERE id = %s", entry)
    assert error is None
    assert harness.timer(job_id, "due_at IS NOT NULL, status") == (True, "active")
    [(actor, action)] = rows(
        harness.owner, "SELECT actor, action FROM foliot.audit WHERE object_kind = 'job'"
    )
    assert (actor.startswith("sql:bi_"), action) == (True, "job.created")
    await process(harness)
    assert rows(harness.owner, "SELECT count(*) FROM foliot.jobs") == [(1,)]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"schedule": {"words": "when pigs fly"}}, "/schedule/words"),
        ({"config": {"url": "nonsense"}}, "/config/url"),
        ({"nme": "typo"}, "/nme"),
        ({"name": ""}, "/name"),
    ],
)
async def test_what_the_api_would_refuse_is_refused_with_its_reason(
    harness: WorkspaceHarness, login: Login, change: dict[str, Any], words: str
) -> None:
    [(entry,)] = rows(login, "SELECT foliot.create_job(%s)", Jsonb({**JOB, **change}))
    await process(harness)
    [(job_id, error)] = rows(login, "SELECT job_id, error FROM foliot.job_inbox WHERE id = %s", entry)
    assert (job_id, words in error) == (None, True), error
    assert rows(harness.owner, "SELECT count(*) FROM foliot.jobs") == [(0,)]


async def test_one_bad_entry_does_not_stop_the_next_and_quotas_hold(
    harness: WorkspaceHarness, login: Login
) -> None:
    for job in ({"name": "nothing"}, JOB, {**JOB, "name": "one too many"}):
        login.execute("SELECT foliot.create_job(%s)", [Jsonb(job)])
    await process(harness, Quotas(jobs=1))
    found = rows(login, "SELECT job_id IS NOT NULL, error ~ 'jobs' FROM foliot.job_inbox ORDER BY created_at")
    assert found == [(False, False), (True, None), (False, True)]


async def test_a_login_creates_nothing_without_the_right_and_nothing_elsewhere(
    harness: WorkspaceHarness, login: Login
) -> None:
    globex = insert_globex(harness)
    with pytest.raises(pg.InsufficientPrivilege):
        login.execute(
            "INSERT INTO foliot.job_inbox (workspace_id, job, created_by) VALUES (%s, '{}', session_user)",
            [globex],
        )
    with pytest.raises(pg.InsufficientPrivilege):
        login.execute("UPDATE foliot.sql_logins SET workspace_id = %s", [globex])
    harness.owner.execute("UPDATE foliot.sql_logins SET creates_jobs = false")
    with pytest.raises(pg.InsufficientPrivilege, match="may not create jobs"):
        login.execute("SELECT foliot.create_job(%s)", [Jsonb(JOB)])


async def test_a_login_reads_the_reports_of_its_workspace_alone(
    harness: WorkspaceHarness, login: Login
) -> None:
    globex = insert_globex(harness)
    mine = await harness.job("mine", Interval(HOUR), tags=("billing",))
    definition = Definition("theirs", Spec(Cron("0 * * * *"), "python"))
    await jobs.create(harness.database, Scope(globex, EVE), definition)
    harness.clock.advance(HOUR)
    await harness.tick()
    await harness.run_once()
    assert rows(login, "SELECT id, name FROM foliot.jobs") == [(mine, "mine")]
    assert rows(login, "SELECT job_id, status FROM foliot.runs") == [(mine, "succeeded")]
    for table in ("timers", "job_tags", "workspaces"):
        assert rows(login, f"SELECT count(*) FROM foliot.{table}") == [(1,)], table
    for setting in ("foliot.workspace", "foliot.system"):
        login.execute("SELECT set_config(%s, %s, false)", [setting, str(globex)])
    assert rows(login, "SELECT count(*) FROM foliot.jobs") == [(1,)]
    for statement in (
        "SELECT * FROM foliot.secrets",
        "SELECT * FROM foliot.api_keys",
        "SELECT * FROM foliot.audit",
        "DELETE FROM foliot.runs",
        "UPDATE foliot.jobs SET name = 'x'",
        "SET ROLE foliot_app",
    ):
        with pytest.raises(pg.InsufficientPrivilege):
            login.execute(statement.encode())
    harness.owner.execute("DELETE FROM foliot.sql_logins")
    assert rows(login, "SELECT count(*) FROM foliot.jobs") == [(0,)]


async def test_the_statements_of_the_how_to_page_run_in_their_order(
    harness: WorkspaceHarness, owner_url: str
) -> None:
    name = f"bi_{uuid4().hex[:12]}"
    [(database, slug)] = rows(harness.owner, "SELECT current_database(), slug FROM foliot.workspaces")
    found: list[tuple[Any, ...]] = []
    with psycopg.connect(owner_url, autocommit=True) as session:
        for statement in page_statements(name, database, slug):
            by_login = statement.startswith("SELECT")
            if by_login:
                session.execute(SQL("SET SESSION AUTHORIZATION {}").format(Identifier(name)))
            done = session.execute(statement.encode())
            if by_login:
                found = done.fetchall()
                session.execute("RESET SESSION AUTHORIZATION")
            await process(harness)
    [(processed_at, job_id, error)] = found
    assert (processed_at is not None, job_id is not None, error) == (True, True, None)
    harness.owner.execute("DELETE FROM foliot.sql_logins")
    harness.owner.execute(SQL("DROP OWNED BY {}").format(Identifier(name)))
    harness.owner.execute(SQL("DROP ROLE {}").format(Identifier(name)))


def page_statements(login: str, database: str, slug: str) -> list[str]:
    """Return the SQL of the page, with another login, database and workspace."""
    blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = (
        "\n".join(blocks).replace("'acme'", f"'{slug}'").replace("DATABASE foliot", f'DATABASE "{database}"')
    )
    text = re.sub(r"\bbi\b", login, text)
    return [each.strip() for each in re.split(r";\s*\n", text) if each.strip()]
