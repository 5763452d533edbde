"""Generate `foliot.sdk.synchronous` from `foliot.sdk.asynchronous`, word by word: `python -m tools.client_generator`.

Two hand-written clients would drift apart, and one that wraps the other would cost a thread or its types. So the asynchronous client is
the source; apart from WORDS, `async` and `await`, both have the same text.

Why: docs/decisions/800-generated-synchronous-client.md
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
from pathlib import Path

SDK = Path(__file__).resolve().parents[1] / "src" / "foliot" / "sdk"
SOURCE, TARGET = SDK / "asynchronous", SDK / "synchronous"
RUFF = Path(sys.executable).with_name("ruff")
MADE = "# Made from sdk/asynchronous by ./dev format; edit it there.\n"
WORDS = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aread": "read",
    "asynchronous": "synchronous",
    "async_sleep": "sleep",
    "open_async_client": "open_client",
}
PREFIX = "Async"  # the generated class has no prefix: AsyncClient, AsyncIterator


def main() -> None:
    generated = generate()
    for path in TARGET.glob("*.py"):
        if path.name not in generated:
            path.unlink()
    for name, text in generated.items():
        (TARGET / name).write_text(text, encoding="utf-8")


def generate() -> dict[str, str]:
    """Return the generated text by file name."""
    return {
        path.name: generate_file(path.read_text(encoding="utf-8"), path.name)
        for path in sorted(SOURCE.glob("*.py"))
    }


def generate_file(text: str, name: str) -> str:
    at = TARGET / name
    known = 'lint.isort.known-first-party=["foliot"]'  # also files that do not exist yet
    imports = (
        "check",
        "--fix-only",
        "--quiet",
        "--select",
        "I",
        "--config",
        known,
        "--stdin-filename",
        at,
        "-",
    )
    return _ruff(_ruff(MADE + _translated(text), *imports), "format", "--stdin-filename", at, "-")


def _translated(text: str) -> str:
    """Translate names only: strings and comments stay the same."""
    lines = text.splitlines(keepends=True)
    names = (
        each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type == tokenize.NAME
    )
    for token in reversed(list(names)):  # from the end, so that earlier positions stay valid
        row, start = token.start
        line, end = lines[row - 1], token.end[1]
        if token.string in {"async", "await"}:
            lines[row - 1] = line[:start] + line[end:].removeprefix(" ")
        else:
            lines[row - 1] = line[:start] + _translate_word(token.string) + line[end:]
    return "".join(lines)


def _translate_word(word: str) -> str:
    return WORDS.get(word) or (word.removeprefix(PREFIX) if word.startswith(PREFIX) else word)


def _ruff(text: str, *args: str | Path) -> str:
    done = subprocess.run((RUFF, *args), input=text, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
