"""Find the function that `package.module:function` names, where jobs may name it.

A module is judged by its file before it is imported: importing executes it. Nothing is imported to judge it, and its parents neither.
No heavy imports: child processes load this.

Why: docs/decisions/305-python-jobs-call-the-operators-code.md
"""

from __future__ import annotations

import ast
import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import foliot
from foliot.sdk.app.job import Job, JobType

FIRST_TRY = "builtins:print"  # many first jobs call it; it starts nothing and reads nothing
INSTALLED = ("site-packages", "dist-packages")  # folders of packages, also those of other interpreters


class InvalidCall(Exception):
    """`call` does not name a function that jobs may call."""


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call whose module may be imported. `is_async` is what its source says; the source is not known of every module."""

    module: str
    path: tuple[str, ...]
    is_async: bool = False


def parse_call(call: object) -> tuple[str, tuple[str, ...]]:
    """Split `package.module:function` into the module and the path inside it. Names with two underscores in front are refused: `__main__`
    is a program, and `__init__` would be executed a second time.
    """
    module, divider, path = call.partition(":") if isinstance(call, str) else ("", "", "")
    parts = (*module.split("."), *path.split("."))
    if not divider or not all(part.isidentifier() and not part.startswith("__") for part in parts):
        raise InvalidCall(f"config.call is {call!r}; it must look like package.module:function")
    return module, tuple(path.split("."))


def judge(call: object, packages: Sequence[str] = (), *, is_loaded: bool = False) -> JudgedCall:
    """Decide whether the module of this call may be imported, without importing anything; else raise InvalidCall.

    `is_loaded` says that the worker has imported the module already, for itself or for its app.
    """
    module, path = parse_call(call)
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == foliot.__name__:
        raise _not_allowed(call)
    spec: ModuleSpec | None = None
    for name, spec in _specs(module):
        if spec is None:
            if is_loaded:  # its package looks for modules in its own way
                return JudgedCall(module, path)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if not (is_loaded or _is_open(name, spec, packages)):
            raise _not_allowed(call)
    assert spec is not None
    return JudgedCall(module, path, _is_async_in_source(call, spec, path[0]) if len(path) == 1 else False)


def find_allowed(
    call: object, packages: Sequence[str] = (), *, is_loaded: bool = False
) -> Callable[..., Any]:
    """Import and return a function that the operator wrote or allowed, or raise InvalidCall.

    The standard library has functions that start any program, and the author of a job often does not own the worker, which serves every
    workspace. So a name leads to a decorated function, to one whose code lies outside the folders of Python and Foliot, or to one in an
    installed package that the operator has named.
    """
    if call == FIRST_TRY:
        return print
    judged = judge(call, packages, is_loaded=is_loaded)
    found = reduce(getattr, judged.path, import_module(judged.module))
    if not callable(found):
        raise InvalidCall(f"{call} is not a function")
    if not isinstance(found, Job | JobType) and not _is_allowed(found, packages):
        raise _not_allowed(call)
    return found


def _specs(module: str) -> Iterator[tuple[str, ModuleSpec | None]]:
    """Yield the module's packages, outermost first, and the module. `importlib.util.find_spec` would import the packages."""
    where: Sequence[str] | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = _spec(name, where)
        yield name, spec
        if spec is None or spec.submodule_search_locations is None:
            where = ()
        else:
            where = list(spec.submodule_search_locations)


def _spec(name: str, where: Sequence[str] | None) -> ModuleSpec | None:
    if where is not None and not where:
        return None
    for finder in sys.meta_path:
        if find := getattr(finder, "find_spec", None):
            try:
                spec: ModuleSpec | None = find(name, where)
            except (
                KeyError
            ):  # a namespace package below a package that is not imported: Python asks for its parent
                spec = _namespace_spec(name, where or ())
            if spec is not None:
                return spec
    return None


def _namespace_spec(name: str, where: Sequence[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    folders = [Path(each, name.rpartition(".")[2]) for each in where]
    spec.submodule_search_locations = [str(each) for each in folders if each.is_dir()]
    return spec


def _is_open(name: str, spec: ModuleSpec, packages: Sequence[str]) -> bool:
    if any(f"{name}.".startswith(f"{each}.") or each.startswith(f"{name}.") for each in packages):
        return True
    if spec.origin is None and spec.submodule_search_locations is not None:
        return True  # a namespace package executes nothing; what lies in it is judged by itself
    return spec.has_location and spec.origin is not None and not _is_closed(Path(spec.origin))


def _is_async_in_source(call: object, spec: ModuleSpec, name: str) -> bool:
    """Return whether the source defines the name by `async def`. Refuse a name that it does not bind: the import would be in vain."""
    try:
        source = spec.loader.get_source(spec.name)  # type: ignore[union-attr]  # most loaders have it
        body = ast.parse(source).body if source is not None else None
    except Exception:  # noqa: BLE001  # the import tells what is wrong
        return False
    if body is None:
        return False
    bound: set[str] = set()
    for node in ast.walk(ast.Module(body, [])):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.Name(ctx=ast.Store()):
                bound.add(node.id)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case _:
                pass
    if not bound & {name, "*", "__getattr__"}:
        raise InvalidCall(f"{call} is not a function: its module defines no {name}")
    defined = [each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(isinstance(each, ast.AsyncFunctionDef) and each.name == name for each in defined)


def _is_allowed(found: Any, packages: Sequence[str]) -> bool:
    """Decide by the file of the code: a module also exposes functions that it imported."""
    while isinstance(found, partial):
        found = found.func
    found = inspect.unwrap(found)
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    try:
        path = Path(inspect.getfile(found))
    except (TypeError, OSError):  # it is written in C
        return False
    if not path.is_absolute():  # frozen, or made by exec
        return False
    if not _is_closed(path):
        return True
    name = str(getattr(found, "__module__", ""))
    return any(name == each or name.startswith(f"{each}.") for each in packages)


def _is_closed(path: Path) -> bool:
    """Return whether a file belongs to Python, to an installed package or to Foliot: as it is named, or where links lead.

    Installers may put links to another folder into site-packages, and a folder of one's own may be a link to site-packages.
    """
    return any(
        each.is_relative_to(folder) or not set(INSTALLED).isdisjoint(each.parts)
        for each in (path, path.resolve())
        for folder in _closed_folders()
    )


@cache
def _closed_folders() -> tuple[Path, ...]:
    """Return the folders of the standard library, of installed packages, and of Foliot, as named and where links lead."""
    named = [sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib")]
    named += [*site.getsitepackages(), site.getusersitepackages(), str(Path(foliot.__file__).parent)]
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    named += [each for each in sys.path if each.endswith(zipped)]
    return tuple({folder for each in named for folder in (Path(each), Path(each).resolve())})


def _not_allowed(call: object) -> InvalidCall:
    return InvalidCall(
        f"{call} is no function that jobs may name. Decorate it and load its app, keep it in a folder of your own, or let its package in by "
        "FOLIOT_PYTHON_PACKAGES, on every worker"
    )
