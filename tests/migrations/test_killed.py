"""kill -9 in the middle of a migration, in a real process; then run again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import psycopg
import pytest

from foliot.storage.migrate import Migration, migrate, packaged
from foliot.storage.server import RetryPeriod
from foliot.testing.database import LOGIN

NEXT = packaged()[-1].number + 1
SLOW = {
    "in a transaction": "CREATE TABLE slow (id int); SELECT pg_sleep({seconds});",
    "outside a transaction": "-- foliot: no-transaction\n"
    "CREATE TABLE IF NOT EXISTS slow (id int);\nSELECT pg_sleep({seconds});\n",
}
CHILD = textwrap.dedent("""
    import sys
    from foliot.storage.migrate import Migration, migrate, packaged
    from foliot.testing.database import LOGIN
    url, text = sys.argv[1:]
    migrate(url, login=LOGIN, migrations=[*packaged(), Migration(packaged()[-1].number + 1, "slow", text)])
""")


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_a_runner_killed_halfway_leaves_no_lock_and_the_next_one_finishes(empty_url: str, text: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as watch:
        child = subprocess.Popen([sys.executable, "-c", CHILD, empty_url, text.format(seconds=600)])
        try:
            await_sleeper(watch, child)
        finally:
            child.kill()
            child.wait()
        # The same migration as it would be on a day without trouble; the checksum is not recorded before it is done.
        again = [*packaged(), Migration(NEXT, "slow", text.format(seconds=0))]
        assert migrate(empty_url, login=LOGIN, migrations=again, patience=30).applied == (f"{NEXT:04}_slow",)
        assert watch.execute("SELECT to_regclass('foliot.slow') IS NOT NULL").fetchone() == (True,)
        held = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE locktype = 'advisory' AND datname = %s"
        assert watch.execute(held, [watch.info.dbname]).fetchone() == (0,)


def await_sleeper(watch: psycopg.Connection[Any], child: subprocess.Popen[bytes]) -> None:
    waiting = RetryPeriod(30)
    question = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep')"
    while watch.execute(question).fetchone() != (True,):
        assert child.poll() is None, "the child ended before it was killed"
        assert waiting.again()
