"""One thing done to many jobs, counted first."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)


async def test_many_jobs_are_paused_by_a_filter_once_somebody_agreed(run_command: RunCommand) -> None:
    for name in ("a", "b", "c"):
        tag = ("--tag", "billing") if name != "c" else ()
        await run_command("jobs", "create", name, "--python", "work:hello", "--every", "30h", *tag)
    tried = await run_command("jobs", "bulk", "pause", "-q", "tag:billing", "--dry-run", "-o", "table")
    assert tried.out == "Would pause 2 jobs.\nNothing was done.\n"
    unasked = await run_command("jobs", "bulk", "pause", "-q", "tag:billing")
    assert unasked.code == 2
    assert "2 jobs match tag:billing. Pause 2?" in unasked.err
    done = (
        await run_command("jobs", "bulk", "pause", "-q", "tag:billing", "--reason", "month end", "--yes")
    ).json
    assert (done["found"], done["done"], done["already"], done["failed"]) == (2, 2, 0, 0)
    assert (await run_command("jobs", "list", "status:active")).json["items"][0]["name"] == "c"
    again = await run_command("jobs", "bulk", "pause", "-q", "tag:billing", "--yes", "-o", "table")
    assert again.out == "2 jobs are already in this state. Nothing was done.\n"


async def test_tags_are_put_on_many_and_must_be_named(run_command: RunCommand) -> None:
    await run_command("jobs", "create", "a", "--python", "work:hello", "--manual")
    assert "--tag is missing." in (await run_command("jobs", "bulk", "tag", "-q", "name:a", "--yes")).err
    assert (await run_command("jobs", "bulk", "tag", "-q", "name:a", "--tag", "new", "--yes")).json[
        "done"
    ] == 1
    assert (await run_command("jobs", "show", "a")).json["tags"] == ["new"]
    assert (
        "No job matches"
        in (await run_command("jobs", "bulk", "run", "-q", "tag:old", "-y", "-o", "table")).out
    )
