"""What configurations of jobs may say, and what is refused when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.bridge_policy import BridgePolicy
from foliot.handlers import registry
from foliot.handlers.dependencies import EgressPolicy
from foliot.web.mapping.handler_config import check_config


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({}, "/config/argv"),
        ({"argv": []}, "/config/argv"),
        ({"argv": "rm -rf /"}, "/config/argv"),
        ({"argv": ["a\0b"]}, "/config/argv/0"),
        ({"argv": ["a", 1]}, "/config/argv/1"),
        ({"argv": ["a"], "env": {"LD_PRELOAD": "x"}}, "/config/env/LD_PRELOAD"),
        ({"argv": ["a"], "env": {"PATH": "/tmp"}}, "/config/env/PATH"),
        ({"argv": ["a"], "env": {"FOLIOT_RUN_ID": "x"}}, "/config/env/FOLIOT_RUN_ID"),
        ({"argv": ["a"], "env": {"A": 1}}, "/config/env/A"),
        ({"argv": ["a"], "cwd": "relative"}, "/config/cwd"),
        ({"argv": ["a"], "uid": 0}, "/config/uid"),
        ({"argv": ["a"], "gid": 0}, "/config/gid"),
        ({"argv": ["a"], "shell": True}, "/config/shell"),
    ],
)
def test_a_command_that_asks_for_what_it_may_not_have_is_refused(
    config: dict[str, Any], pointer: str
) -> None:
    assert [each.pointer for each in check_config("command", config)] == [pointer]


def test_a_command_takes_words_variables_and_secrets_for_these() -> None:
    config = {
        "argv": ["/usr/bin/backup", "--full"],
        "env": {"MODE": "full", "TOKEN": {"secret": "backup-token"}},
        "cwd": "/var/backups",
        "stdin": "none",
        "success": [0, 3],
    }
    assert check_config("command", config) == []


def test_a_secret_fits_in_the_place_of_any_value_that_a_worker_reported_of() -> None:
    schema = {
        "type": "object",
        "properties": {"token": {"type": "string", "minLength": 20}, "n": {"type": "integer"}},
    }
    assert check_config("DATA_SYNC", {"token": {"secret": "crm"}}, schema) == []
    assert {each.pointer for each in check_config("DATA_SYNC", {"token": "x", "n": {}}, schema)} == {
        "/config/n",
        "/config/token",
    }
    assert check_config("DATA_SYNC", {"a": 1}, {"$ref": "https://example.test/schema"}) == []


def refused(kind: str, config: dict[str, Any], bridge_policy: BridgePolicy) -> list[str | None]:
    return [
        each.pointer
        for each in check_config(kind, config, None, EgressPolicy(bridge_policy=bridge_policy), "acme")
    ]


@pytest.mark.parametrize(("kind", "field"), [("celery", "task"), ("rq", "function"), ("bullmq", "name")])
def test_a_job_names_the_tasks_and_queues_that_the_operator_allows(kind: str, field: str) -> None:
    registry.refuse_type("celery", None)
    bridge_policy, named = BridgePolicy(tasks=("shop.tasks.*",)), {field: "shop.tasks.sync"}
    assert refused(kind, named, bridge_policy) == []
    assert refused(kind, {**named, "queue": "jobs-acme"}, bridge_policy) == []
    assert refused(kind, {**named, "queue": "jobs-{workspace}"}, bridge_policy) == []
    for queue in ("jobs-globex", "celery", "jobs-acme-corp"):
        assert refused(kind, {**named, "queue": queue}, bridge_policy) == ["/config/queue"]
    for task in ("subprocess.getoutput", "shop.tasks.subprocess.getoutput", "shop.tasks"):
        assert refused(kind, {field: task}, bridge_policy) == [f"/config/{field}"]
    assert refused(kind, named, BridgePolicy()) == [f"/config/{field}"]
    assert refused(kind, named, BridgePolicy(queues=("high",), tasks=("**",))) == ["/config/queue"]


def test_a_prefix_of_bullmq_is_a_part_of_the_queue() -> None:
    config, tasks = {"name": "sync", "prefix": "foliot"}, ("sync",)
    assert refused("bullmq", config, BridgePolicy(tasks=tasks)) == ["/config/queue"]
    assert refused("bullmq", config, BridgePolicy(("foliot:jobs-{workspace}",), tasks)) == []


HEAVY = {"additionalProperties": {"allOf": [{"enum": [[each]]} for each in range(450)]}}  # reported by a host


@pytest.mark.parametrize(("names", "reported"), [(2, 20), (500, 1), (15_000, 0)])
def test_a_schema_from_afar_cannot_make_more_misfits_than_are_reported(names: int, reported: int) -> None:
    """450 for each name: gathering those of 15,000 names took minutes, and all the memory of the server."""
    config = {f"k{each}": ["x"] for each in range(names)}
    assert len(check_config("DATA_SYNC", config, HEAVY)) == reported


def test_a_name_in_digits_is_a_name() -> None:
    schema = {"additionalProperties": {"type": "array", "items": {"type": "string"}}}
    [found] = check_config("DATA_SYNC", {"0": ["a", 1]}, schema)
    assert found.pointer == "/config/0/1"
