"""Every module imports, also those that only one command or entry point reaches."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, pkgutil, foliot
for module in pkgutil.walk_packages(foliot.__path__, "foliot."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_every_module_imports() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 500


IMPORT_TYPES = """
import sys
from foliot import Client, Context, Foliot
from foliot.wire.jobs import JobIn
print({"psycopg", "fastapi", "uvicorn", "foliot.storage", "foliot.services", "foliot.engine"} & set(sys.modules))
"""


@pytest.mark.requirement("S2-13")
def test_code_of_jobs_imports_context_and_types_without_the_server() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_TYPES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "set()"), done.stderr


@pytest.mark.parametrize("module", ["worker_main", "host"])
def test_workers_and_hosts_do_not_import_the_web(module: str) -> None:
    """It would cost each of their processes a quarter of its start and 9 MB."""
    code = f"import sys, foliot.wiring.{module}; print({{'fastapi', 'foliot.web'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "set()"), done.stderr
