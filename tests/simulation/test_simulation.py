"""Virtual time: fifty workspaces, two nodes, a week of crashes, edits and pauses; and the same seed twice."""

from __future__ import annotations

import pytest

from foliot.testing.database import Databases
from tests.simulation.conftest import SMALL
from tools.simulation import world
from tools.simulation.run import Run, simulate
from tools.simulation.slices import Progress, simulate_in_slices
from tools.simulation.world import Size

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.requirement("S1-SC-002")
async def test_a_week_of_faults_breaks_no_invariant(server: Databases) -> None:
    with server.fresh() as url:
        figures = await simulate(Size(workspaces=50, jobs=10, days=7), url)
    happened = figures.happenings
    # A world in which nothing went wrong would prove nothing.
    for what in (
        "fault crash",
        "fault blackout",
        "died in a transaction",
        "stale reports",
        "swept lost",
        "drained",
        "claimed by hosts",
        "rolled up",
    ):
        assert happened[what] > 0, what
    for what in (
        "people paused",
        "people resumed",
        "people edited",
        "people cancelled",
        "people closed a workspace",
    ):
        assert happened[what] > 0, what
    for ended in ("succeeded", "failed", "timed_out", "interrupted", "cancelled"):
        assert figures.records[ended] > 0, ended
    for reason in ("overlap", "misfire", "paused", "window", "blackout", "dst_gap", "deadline", "operator"):
        assert figures.records[f"skipped ({reason})"] > 0, reason
    assert figures.occurrences > 20_000


async def test_the_same_seed_gives_the_same_history(server: Databases, finished_run: Run) -> None:
    from tools.simulation.figures import history_of

    with server.fresh() as url:
        again = await simulate(SMALL, url)
    assert again.history == history_of(finished_run.owner)
    assert again.happenings == finished_run.driver.shared.counts


async def test_another_seed_gives_another_history(server: Databases, finished_run: Run) -> None:
    from tools.simulation.figures import history_of

    with server.fresh() as url:
        other = await simulate(Size(workspaces=5, days=1, seed=12), url)
    assert other.history != history_of(finished_run.owner)


async def test_the_history_is_the_same_for_any_number_of_processes(
    server: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "SLICE", 2)
    size = Size(workspaces=4, jobs=5, days=1, seed=5)
    reported: list[Progress] = []
    alone, shared = (simulate_in_slices(size, server, processes, reported.append) for processes in (1, 2))
    assert (alone.history, alone.records, alone.happenings) == (
        shared.history,
        shared.records,
        shared.happenings,
    )
    assert reported[-1].share == 1
