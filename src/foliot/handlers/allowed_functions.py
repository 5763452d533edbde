"""Which functions jobs may name: those that the operator wrote or chose, and not all that happens to be importable.

The standard library alone has functions that start any program they are given. Who may write jobs is often not who owns the
worker, which serves every workspace; so a name leads to a decorated function, or to one whose code lies outside of Python's own
folders and ours, or in an installed package that the operator has named.
"""

from __future__ import annotations

import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import foliot
from foliot.handlers.python_call import NotCallable, resolve
from foliot.sdk.app.job import Job
from foliot.sdk.app.job_type import JobType

FIRST_TRY = "builtins:print"  # what the first job of many does; it starts nothing and reads nothing


def find(call: object, packages: Sequence[str] = ()) -> Callable[..., Any]:
    """Raises NotCallable. Nothing of Python's own is imported for it: that alone may have effects."""
    if call == FIRST_TRY:
        return print
    top = str(call).partition(":")[0].partition(".")[0]
    if top in sys.stdlib_module_names or top == foliot.__name__:
        raise _closed(call)
    found = resolve(call)
    if not isinstance(found, Job | JobType) and not _is_open(found, packages):
        raise _closed(call)
    return found


def _is_open(found: Any, packages: Sequence[str]) -> bool:
    """By where its code lies: a module also hands out what it has imported."""
    while isinstance(found, partial):
        found = found.func
    found = inspect.unwrap(found)
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    try:
        place = Path(inspect.getfile(found))
    except TypeError:  # it is written in C
        return False
    if not place.is_absolute():  # frozen, or made by exec
        return False
    resolved = place.resolve()
    if not any(resolved.is_relative_to(folder) for folder in _closed_folders()):
        return True
    name = str(getattr(found, "__module__", ""))
    return any(name == each or name.startswith(f"{each}.") for each in packages)


@cache
def _closed_folders() -> tuple[Path, ...]:
    """Of the standard library, of what is installed, and our own."""
    named = [sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib")]
    named += [*site.getsitepackages(), site.getusersitepackages()]
    return (*(Path(each).resolve() for each in named), Path(foliot.__file__).resolve().parent)


def _closed(call: object) -> NotCallable:
    return NotCallable(
        f"{call} is no function that jobs may name. Decorate it, keep it in a folder of your own, or let its package in by "
        "FOLIOT_PYTHON_PACKAGES, on every worker"
    )
