"""Hosts: whether they are there, and the reason that a waiting run shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from foliot.domain.definition import Rules, Spec
from foliot.domain.explain.hosts import HostWait, explain_bound
from foliot.domain.explain.records import Recorded
from foliot.domain.hosts import HostCapacity, HostContact, HostStatus
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import Target, TargetKind, target_of
from foliot.domain.schedule import Manual

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)
LEASE, SECOND = timedelta(seconds=30), timedelta(seconds=1)
SEEN = HostContact(NOW, NOW + LEASE)
PVP = Target(TargetKind.SERVER, "pvp")


@pytest.mark.parametrize(
    ("later", "status"),
    [
        (timedelta(0), HostStatus.ONLINE),
        (LEASE, HostStatus.ONLINE),
        (LEASE + SECOND, HostStatus.STALE),
        (LEASE + timedelta(minutes=2), HostStatus.STALE),
        (LEASE + timedelta(minutes=2, seconds=1), HostStatus.OFFLINE),
    ],
)
def test_a_silent_host_is_online_for_its_lease_then_stale_then_offline(
    later: timedelta, status: HostStatus
) -> None:
    assert SEEN.status(NOW + later) is status


def test_a_host_that_left_in_good_order_is_offline_at_once() -> None:
    assert HostContact(NOW, NOW).status(NOW) is HostStatus.OFFLINE


@pytest.mark.parametrize("target", [PVP, Target(TargetKind.HOST, "h1"), Target(TargetKind.SERVER, "a/b c")])
def test_a_target_reads_back_from_its_text(target: Target) -> None:
    assert target_of(target.text) == target


def test_room_is_there_while_anything_fits() -> None:
    assert [bool(HostCapacity(*each)) for each in ((0, 0), (1, 0), (0, 1))] == [False, True, True]


@pytest.mark.parametrize(
    ("bound", "reported"),
    [
        (HostWait(PVP), 'Run 1 waits for server "pvp", and there is none of that name.'),
        (
            HostWait(
                PVP, "h1", HostContact(NOW - timedelta(hours=1), NOW - timedelta(hours=1)), "http", 0, 1
            ),
            'Run 1 waits for server "pvp": host h1 has been offline since 2027-01-15 11:00:00 UTC.',
        ),
        (
            HostWait(PVP, "h1", SEEN, None, 0, 1),
            'Run 1 waits for server "pvp": host h1 is online, but runs no jobs of type http.',
        ),
        (
            HostWait(PVP, "h1", SEEN, "http", 1, 1),
            'Run 1 waits for server "pvp": host h1 has 1 of 1 under way.',
        ),
        (
            HostWait(PVP, "h1", SEEN, "http", 0, 1),
            'Run 1 waits for server "pvp" and is about to be fetched by host h1.',
        ),
    ],
    ids=["nobody has it", "offline", "does not do it", "busy", "any moment"],
)
def test_a_run_that_waits_for_a_host_says_why(bound: HostWait, reported: str) -> None:
    job = Rules(Spec(Manual("UTC"), "http")).job(JobId(uuid4()), WorkspaceId(uuid4()), 1)
    record = Recorded(RunId(uuid4()), 1, RunStatus.READY)
    assert explain_bound(job, record, bound, "http", NOW).sentence == reported


@pytest.mark.parametrize(("kind", "flag"), [("command", "--allow-command"), ("message", None)])
def test_only_flags_that_there_are_are_advised(kind: str, flag: str | None) -> None:
    job = Rules(Spec(Manual("UTC"), kind)).job(JobId(uuid4()), WorkspaceId(uuid4()), 1)
    record = Recorded(RunId(uuid4()), 1, RunStatus.READY)
    advice = explain_bound(job, record, HostWait(PVP, "h1", SEEN), kind, NOW).next_step
    assert advice is not None
    assert (flag in advice) if flag else ("--allow" not in advice)
