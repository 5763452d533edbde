"""The documentation for models: pages as MCP resources, and `llms.txt` with a list of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

SECTIONS = {"": "Start", "how-to": "How to", "explanation": "Explanations", "reference": "Reference"}
LEFT_OUT = frozenset(
    {"README", "reference/api"}
)  # a list of links; and 200 kB, which /openapi.json says better


@cache
def pages() -> Mapping[str, str]:
    """Return each page by its path without ending, such as `how-to/schedules`."""
    root = _folder()
    found = {
        str(path.relative_to(root).with_suffix("")): path.read_text("utf-8")
        for section in SECTIONS
        for path in sorted((root / section).glob("*.md"))
    }
    return {name: text for name, text in found.items() if name not in LEFT_OUT}


def title_of(text: str) -> str:
    return text.split("\n", 1)[0].lstrip("# ").strip()


def index() -> str:
    """Return the content of `/llms.txt`."""
    lines = [
        "# Foliot",
        "",
        (
            "> Durable, multi-tenant job scheduling on PostgreSQL: one record for every planned time. Agents use the MCP server at `/mcp`"
            " (or `foliot mcp`), programs the REST API described by `/openapi.json`."
        ),
    ]
    for section, heading in SECTIONS.items():
        names = [name for name in pages() if name.rpartition("/")[0] == section]
        lines += ["", f"## {heading}", ""]
        lines += [f"- [{title_of(pages()[name])}](/llms/{name}.md)" for name in names]
    return "\n".join(lines) + "\n"


def _folder() -> Path:
    """A wheel carries the pages in the package; a clone has them in its own folder."""
    packaged = Path(str(files("foliot"))) / "documentation"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3] / "docs"
