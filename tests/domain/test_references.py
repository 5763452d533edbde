"""Secrets by name in a configuration: found wherever they stand, and nothing else taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.secret_references import may_refer, names, references, resolved

CONFIG: dict[str, Any] = {
    "url": {"secret": "hook"},
    "headers": {"authorization": {"secret": "crm-token"}, "x/y~z": {"secret": "hook"}},
    "body": [{"deep": [{"secret": "crm-token"}]}, {"secret": 5}, {"secret": "a", "more": 1}],
    "method": "POST",
}


def test_each_reference_is_found_with_its_place() -> None:
    assert [(each.name, each.pointer) for each in references(CONFIG)] == [
        ("hook", "/url"),
        ("crm-token", "/headers/authorization"),
        ("hook", "/headers/x~1y~0z"),
        ("crm-token", "/body/0/deep/0"),
    ]
    assert names(CONFIG) == {"hook", "crm-token"}


def test_values_stand_where_names_stood_and_all_else_stays() -> None:
    found = resolved(CONFIG, {"hook": "https://x", "crm-token": "t"})
    assert found == {
        "url": "https://x",
        "headers": {"authorization": "t", "x/y~z": "https://x"},
        "body": [{"deep": ["t"]}, {"secret": 5}, {"secret": "a", "more": 1}],
        "method": "POST",
    }
    assert CONFIG["url"] == {"secret": "hook"}


def test_a_whole_configuration_may_be_a_reference() -> None:
    assert names({"secret": "all"}) == {"all"}


@pytest.mark.parametrize("config", [{}, {"call": "shop.jobs:sync"}, {"a": 1, "b": None, "c": True}])
def test_a_plain_configuration_is_known_for_one_at_a_glance(config: dict[str, Any]) -> None:
    assert not may_refer(config)
