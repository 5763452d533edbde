"""An import-linter contract: modules named `*_steps` in `foliot.services` are imported only by `foliot.services`.

A step takes a `Tx` that its caller opened; only a service may decide which steps share a transaction. The contract finds
the modules by name, so a new one needs no entry in `.importlinter`.
"""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, output

SERVICES = "foliot.services"


class StepsContract(Contract):
    def check(self, graph: Any, verbose: bool) -> ContractCheck:  # the signature of import-linter
        violations = find_violations(graph)
        return ContractCheck(kept=not violations, metadata={"violations": violations})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, steps in check.metadata["violations"]:
            output.print_error(f"{importer} imports {steps}: call a verb of the service instead.")


def find_violations(graph: Any) -> list[tuple[str, str]]:
    return sorted(
        (importer, module)
        for module in graph.modules
        if module.startswith(f"{SERVICES}.") and module.endswith("_steps")
        for importer in graph.find_modules_that_directly_import(module)
        if not importer.startswith(f"{SERVICES}.")
    )
