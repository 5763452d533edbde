"""What jobs may reach when nobody has said so: networks, and queues and tasks of other engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.settings import Settings, SettingsError, load
from foliot.wiring.policies import LOOPBACK, bridge_policy_of, egress_allow_of, egress_policy_of

OWN = {"FOLIOT_DATABASE_URL": "postgresql://me@example.test/foliot"}


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({}, LOOPBACK),
        ({"FOLIOT_HOST": "localhost"}, LOOPBACK),
        ({"FOLIOT_HOST": "0.0.0.0"}, ()),
        (OWN, ()),
        ({"FOLIOT_EGRESS_ALLOW": "none"}, ()),
        ({"FOLIOT_EGRESS_ALLOW": "10.0.0.0/8"}, ("10.0.0.0/8",)),
        ({**OWN, "FOLIOT_EGRESS_ALLOW": "127.0.0.0/8, ::1"}, ("127.0.0.0/8", "::1/128")),
    ],
)
def test_loopback_is_open_only_where_nobody_else_can_reach_the_server(
    environ: dict[str, str], allowed: tuple[str, ...], tmp_path: Path
) -> None:
    settings = load(environ, {}, tmp_path)
    assert egress_allow_of(settings) == allowed
    in_the_worker = Settings.from_json(settings.to_json())
    assert egress_policy_of(in_the_worker).egress_allow == allowed


@pytest.mark.parametrize(
    ("environ", "bridge_policy"),
    [
        ({}, BridgePolicy(EVERYTHING, EVERYTHING)),
        ({"FOLIOT_HOST": "0.0.0.0"}, BridgePolicy(("jobs-{workspace}", "jobs:{workspace}"), ())),
        (OWN, BridgePolicy(("jobs-{workspace}", "jobs:{workspace}"), ())),
        (
            {**OWN, "FOLIOT_BRIDGE_TASKS": "shop.*, mail"},
            BridgePolicy(("jobs-{workspace}", "jobs:{workspace}"), ("shop.*", "mail")),
        ),
        ({"FOLIOT_BRIDGE_QUEUES": "celery", "FOLIOT_BRIDGE_TASKS": "none"}, BridgePolicy(("celery",), ())),
    ],
)
def test_a_server_for_others_hands_over_no_task_that_its_operator_did_not_name(
    environ: dict[str, str], bridge_policy: BridgePolicy, tmp_path: Path
) -> None:
    settings = load(environ, {}, tmp_path)
    assert bridge_policy_of(settings) == bridge_policy
    in_the_worker = Settings.from_json(settings.to_json())
    assert egress_policy_of(in_the_worker).bridge_policy == bridge_policy


def test_a_pattern_with_blanks_is_no_pattern(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        load({"FOLIOT_BRIDGE_QUEUES": "a b"}, {}, tmp_path)
