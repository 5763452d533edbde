"""`./dev prove openapi`: linters read /openapi.json, and clients that generators make from it create, list, run and read.

The generators come from PyPI and npm in fixed versions, into `.cache/clients`; what lacks node or java is skipped with a hint.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

from tests.fuzz.run import target

HERE = Path(__file__).parent
WORK = HERE.parent.parent / ".cache" / "clients"
PYTHON = ("openapi-python-client==0.29.1", "openapi-generator-cli==7.26.0", "python-dateutil==2.9.0.post0")
NODE = (
    "@redocly/cli@2.73.0",
    "@stoplight/spectral-cli@6.16.3",
    "@types/node@20",
    "openapi-fetch@0.17.0",
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
)
DESCRIPTION, TOOLS, MODULES = WORK / "openapi.json", WORK / "python", WORK / "node_modules"


def main() -> int:
    WORK.mkdir(parents=True, exist_ok=True)
    with target() as (url, key):
        asked = Request(f"{url}/openapi.json", headers={"Authorization": f"Bearer {key}"})
        with urlopen(asked, timeout=30) as answer:
            DESCRIPTION.write_text(json.dumps(json.load(answer), indent=1))
        install_python()
        parts: list[tuple[str, Callable[[str, str], None]]] = [("openapi-python-client", python_client)]
        if shutil.which("java"):
            parts.append(("openapi-generator python", generator_python))
        else:
            print("Skipped: openapi-generator; it needs java.")
        if shutil.which("npm") and shutil.which("node"):
            install_node()
            parts += [("spectral", spectral), ("redocly", redocly), ("openapi-typescript", typescript)]
            if shutil.which("java"):
                parts.append(("openapi-generator typescript-fetch", generator_typescript))
        else:
            print("Skipped: spectral, redocly and clients in TypeScript; they need node and npm.")
        failed = [name for name, check in parts if not passes(name, check, url, key)]
    return 1 if failed else 0


def passes(name: str, check: Callable[[str, str], None], url: str, key: str) -> bool:
    try:
        check(url, key)
    except subprocess.CalledProcessError as error:
        print(f"{name}: failed\n{error.stdout}")
        return False
    print(f"{name}: ok", flush=True)
    return True


def spectral(url: str, key: str) -> None:
    rules = WORK / "spectral.yaml"
    rules.write_text('extends: ["spectral:oas"]\n')
    call(MODULES / ".bin" / "spectral", "lint", DESCRIPTION, "-r", rules, "--fail-severity", "warn")


def redocly(url: str, key: str) -> None:
    call(MODULES / ".bin" / "redocly", "lint", DESCRIPTION)


def python_client(url: str, key: str) -> None:
    said = call(
        sys.executable, "-m", "openapi_python_client", "generate", "--path", DESCRIPTION,
        "--output-path", WORK / "generated" / "python_client", "--overwrite", "--meta", "none",
    )  # fmt: skip
    if "arning" in said:
        raise subprocess.CalledProcessError(1, "openapi-python-client", said)
    call(sys.executable, HERE / "use_python_client.py", url, key)


def generator_python(url: str, key: str) -> None:
    generate("python", "generator_python", "--package-name", "generator_client")
    call(sys.executable, HERE / "use_generator_python.py", url, key)


def typescript(url: str, key: str) -> None:
    # Fields with a default may be left out of a request; answers have them all, and say so.
    options = ("--default-non-nullable=false", "-o", WORK / "api.ts")
    call(MODULES / ".bin" / "openapi-typescript", DESCRIPTION, *options)
    use_typescript(WORK, "use_typescript.ts", url, key)


def generator_typescript(url: str, key: str) -> None:
    use_typescript(
        generate("typescript-fetch", "generator_typescript"), "use_generator_typescript.ts", url, key
    )


def generate(generator: str, folder: str, *options: str) -> Path:
    made = WORK / "generated" / folder
    shutil.rmtree(made, ignore_errors=True)
    call(
        TOOLS / "bin" / "openapi-generator-cli",
        "generate",
        "-i",
        DESCRIPTION,
        "-g",
        generator,
        "-o",
        made,
        *options,
    )
    return made


def use_typescript(folder: Path, program: str, url: str, key: str) -> None:
    """Type-check the program beside its client, compile and run it."""
    shutil.copy(HERE / program, folder / program)
    call(
        MODULES / ".bin" / "tsc", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "commonjs",
        "--moduleResolution", "node10", "--skipLibCheck", "--esModuleInterop", "--typeRoots", MODULES / "@types",
        "--types", "node", "--outDir", folder / "out", folder / program,
    )  # fmt: skip
    call("node", folder / "out" / Path(program).with_suffix(".js").name, url, key)


def install_python() -> None:
    stamp = TOOLS / "stamp"
    if not (stamp.exists() and stamp.read_text() == repr(PYTHON)):
        shutil.rmtree(TOOLS, ignore_errors=True)
        call(sys.executable, "-m", "pip", "install", "--quiet", "--target", TOOLS, *PYTHON)
        stamp.write_text(repr(PYTHON))


def install_node() -> None:
    stamp = WORK / "node.stamp"
    if not (stamp.exists() and stamp.read_text() == repr(NODE)):
        (WORK / "package.json").write_text('{"private": true}')
        call("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE)
        stamp.write_text(repr(NODE))


def call(program: str | Path, *args: str | Path) -> str:
    path = os.pathsep.join((str(TOOLS / "bin"), os.environ["PATH"]))
    clients = os.pathsep.join(
        str(each) for each in (TOOLS, WORK / "generated", WORK / "generated" / "generator_python")
    )
    done = subprocess.run(
        (str(program), *map(str, args)),
        cwd=WORK,
        env=os.environ | {"PATH": path, "PYTHONPATH": clients},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=600,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
