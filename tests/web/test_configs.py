"""What configurations of jobs may say, and what is refused when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.web.configs import check_config


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


def test_a_secret_fits_in_the_place_of_any_value_that_a_worker_told_of() -> None:
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
