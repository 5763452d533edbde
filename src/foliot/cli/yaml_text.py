"""YAML with the scalar types of JSON: `on` and 22:00 are text, a date is text, and no key occurs twice.

PyYAML reads YAML 1.1, where `on: success` has the key True and `22:00` is the number 1320. Here only null, true, false
and JSON numbers are special; everything else is text. JSON is valid input, since it is YAML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from foliot.domain.errors import Invalid
from foliot.sdk.sync.job_export import JSON_SCALARS


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the one in C is ten times faster
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML stores them on the class

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # PyYAML's signature
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f'"{key.value}" occurs twice', problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in JSON_SCALARS:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern.pattern})$"), list(_first))


@dataclass(frozen=True, slots=True)
class YamlDocument:
    value: Any
    _root: Any = field(repr=False)

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line of the value at this path, or of the nearest value around it."""
        node, line = self._root, 1 if self._root is None else self._root.start_mark.line + 1
        for part in path:
            found = _child(node, str(part))
            if found is None:
                break
            node, line = found
        return line


def read_yaml(text: str, name: str) -> Any:
    """Raise Invalid, with line and column, for text that is not YAML."""
    return read_document(text, name).value


def read_document(text: str, name: str) -> YamlDocument:
    """Raise Invalid, with line and column, for text that is not YAML."""
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            _refuse_aliases(root)
            return YamlDocument(None if root is None else loader.construct_document(root), root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        why = error.problem or error.context or "it is not YAML"
        raise Invalid(f"{name}{at}: {why}.", hint="The file must be YAML or JSON.") from None
    except yaml.YAMLError as error:
        raise Invalid(f"{name} is not YAML: {error}.") from None
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply.") from None
    except ValueError as error:
        raise Invalid(f"{name} has an invalid value: {error}.") from None


def _refuse_aliases(root: Any) -> None:
    """Refuse a node that is in two places: a small file could expand into a huge one."""
    seen: set[int] = set()
    waiting = [] if root is None else [(root, root.start_mark)]
    while waiting:
        node, mark = waiting.pop()
        if id(node) in seen:
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not supported", problem_mark=mark)
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(each, node.start_mark) for each in reversed(node.value)]
        elif isinstance(node, yaml.MappingNode):
            waiting += [
                (each, key.start_mark) for key, value in reversed(node.value) for each in (value, key)
            ]


def _child(node: Any, name: str) -> tuple[Any, int] | None:
    """Return the value with this name or number, and the line it begins on."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return value, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode) and name.isdecimal() and int(name) < len(node.value):
        found = node.value[int(name)]
        return found, found.start_mark.line + 1
    return None
