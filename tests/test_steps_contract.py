"""The rule about steps finds a planted violation."""

from __future__ import annotations

from grimp import ImportGraph

from tools.steps_contract import find_violations


def planted(importer: str) -> ImportGraph:
    graph = ImportGraph()
    for module in (importer, "foliot.services.jobs.lock_steps"):
        graph.add_module(module)
    graph.add_import(importer=importer, imported="foliot.services.jobs.lock_steps")
    return graph


def test_a_route_may_not_import_a_step() -> None:
    assert find_violations(planted("foliot.web.api.jobs")) == [
        ("foliot.web.api.jobs", "foliot.services.jobs.lock_steps")
    ]


def test_a_service_may_import_a_step() -> None:
    assert find_violations(planted("foliot.services.runs.backfill")) == []
