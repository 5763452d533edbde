"""Every operation that the server describes has a method of the client, with every parameter it takes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from docs.api_reference import description
from foliot.sdk import keywords
from tools.client_generator import SOURCE

WRITES = ("_write", "_change", "_remove")
METHODS = ("get", "post", "put", "patch", "delete")
NOT_YET: frozenset[str] = (
    frozenset()
)  # operations without a method so far, as "GET /jobs"; this list only shrinks


def test_the_client_has_a_method_for_every_operation() -> None:
    offered = operations()
    asked = together(asks())
    assert asked.keys() - offered.keys() == set(), "the client asks for what is not there"
    assert offered.keys() - asked.keys() == NOT_YET


def test_the_methods_take_every_parameter_of_their_operations() -> None:
    asked = together(asks())
    left_out = {
        operation: missing
        for operation, wanted in operations().items()
        if operation in asked and (missing := wanted - asked[operation])
    }
    assert left_out == {}


def operations() -> dict[str, set[str]]:
    """As "GET /jobs", with the parameters in path and query, as the server describes them."""
    return {
        f"{method.upper()} {path.removeprefix('/api/v1')}": {
            each["name"] for each in operation.get("parameters", ()) if each["in"] in {"path", "query"}
        }
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    }


def asks() -> Iterator[tuple[str, set[str]]]:
    """The same of what the client sends: read from its text, where a path stands as in the description."""
    for path in SOURCE.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
                continue
            names = {
                key for each in ast.walk(function) if isinstance(each, ast.Dict) for key in texts(each.keys)
            }
            names |= spread(function)
            if any(isinstance(each, ast.Attribute) and each.attr in WRITES for each in ast.walk(function)):
                names.add("dry_run")  # AsyncWrites._write adds it for every verb
            for call in ast.walk(function):
                if not isinstance(call, ast.Call):
                    continue
                called, said = ast.unparse(call.func), list(texts(call.args))
                if called == "ApiRequest" and len(said) > 1:
                    yield f"{said[0]} {said[1]}", names
                elif called == "post":
                    yield f"POST {said[0]}", names
                elif called == "self._http.get":
                    yield f"GET {said[0]}", names


def spread(function: ast.AsyncFunctionDef | ast.FunctionDef) -> set[str]:
    """The keys of `**wanted: Unpack[RunFilters]`, where a dictionary takes them in as they are."""
    given = function.args.kwarg
    dicts = [each for each in ast.walk(function) if isinstance(each, ast.Dict)]
    spreads = {
        ast.unparse(value)
        for each in dicts
        for key, value in zip(each.keys, each.values, strict=True)
        if key is None
    }
    if given is None or given.arg not in spreads or not isinstance(given.annotation, ast.Subscript):
        return set()
    return set(getattr(keywords, ast.unparse(given.annotation.slice)).__annotations__)


def together(found: Iterator[tuple[str, set[str]]]) -> dict[str, set[str]]:
    """Some operations have several methods, which take different parameters."""
    asked: defaultdict[str, set[str]] = defaultdict(set)
    for operation, names in found:
        asked[operation] |= names
    return asked


def texts(found: list[ast.expr] | list[ast.expr | None]) -> Iterator[str]:
    for each in found:
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
