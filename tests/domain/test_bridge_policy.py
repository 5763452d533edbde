"""Patterns of what may be handed over to another engine."""

from __future__ import annotations

import pytest

from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("shop.tasks.sync", ["shop.tasks.sync"], ["shop.tasks.syncs", "shopXtasks.sync", "shop.tasks"]),
        (
            "shop.tasks.*",
            ["shop.tasks.sync", "shop.tasks."],
            ["shop.tasks.os.system", "shop.tasks", "a.shop.tasks.b"],
        ),
        ("shop.**", ["shop.tasks.sync", "shop.x"], ["shopping.x", "shop"]),
        ("export_*", ["export_", "export_csv"], ["export.csv", "reexport_csv"]),
        ("**", ["anything", "a.b.c", "new\nline"], []),
        ("{workspace}.sync", ["{workspace}.sync"], ["acme.sync"]),  # a task belongs to no workspace
        ("a+(b)", ["a+(b)"], ["aab"]),
    ],
)
def test_a_star_crosses_no_dot_and_two_cross_all(
    pattern: str, allowed: list[str], refused: list[str]
) -> None:
    bridge_policy = BridgePolicy(EVERYTHING, (pattern,))
    assert [
        each for each in allowed + refused if bridge_policy.refusal({"task": each}, "acme") is None
    ] == allowed


@pytest.mark.parametrize(
    ("pattern", "queue", "is_allowed"),
    [
        ("jobs-{workspace}", "jobs-{workspace}", True),
        ("jobs-{workspace}", "jobs-acme", True),
        ("jobs-{workspace}", "jobs-acme-corp", False),
        ("jobs-{workspace}", "jobs-globex", False),
        ("jobs-{workspace}.*", "jobs-acme.high", True),
        ("jobs-{workspace}.*", "jobs-acme-corp.high", False),
        ("jobs-{workspace}.*", "jobs-{workspace}.low", True),
        ("**", "celery", True),
    ],
)
def test_queues_are_those_of_the_workspace(pattern: str, queue: str, is_allowed: bool) -> None:
    found = BridgePolicy((pattern,), EVERYTHING).refusal({"task": "t", "queue": queue}, "acme")
    assert (found is None) is is_allowed


def test_a_refusal_says_what_is_allowed_and_who_can_allow_more() -> None:
    found = BridgePolicy().refusal({"function": "os.system"}, "acme")
    assert found is not None
    assert (found.field, "os.system" in found.message, "FOLIOT_BRIDGE_TASKS" in found.hint) == (
        "function",
        True,
        True,
    )
    found = BridgePolicy(tasks=EVERYTHING).refusal({"name": "x", "queue": "other"}, "acme")
    assert found is not None
    assert "jobs-acme" in found.hint
