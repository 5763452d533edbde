"""`./dev fuzz`: schemathesis against a server of its own, for as long as you like. Exit code 1 where it found something.

Findings are printed as curl lines. A run is repeated by its seed: `./dev fuzz --seed 7`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.stories.server_process import ServerProcess

HERE = Path(__file__).parent
CONFIG = HERE / "schemathesis.toml"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


def main(argv: Sequence[str] | None = None) -> int:
    asked = read(argv)
    with target(asked.url, asked.key) as (url, key):
        print(f"Fuzzing {url} for {asked.minutes:g} min, seed {asked.seed}.", flush=True)
        options = [f"--max-time={max(1, round(asked.minutes * 60))}", f"--max-examples={asked.examples}"]
        done = fuzz(url, key, [f"--seed={asked.seed}", *options, *asked.more])
    return 1 if done else 0


def read(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="repeats a run; by chance"
    )
    parser.add_argument("--examples", type=int, default=50, help="cases for each operation and round (50)")
    parser.add_argument("--url", help="a server that runs already, and may be filled with nonsense")
    parser.add_argument("--key", default=os.environ.get("FOLIOT_API_KEY"), help="a system key of that server")
    parser.add_argument("more", nargs="*", help="handed on to `schemathesis run`, after --")
    asked = parser.parse_args(argv)
    if asked.url and not asked.key:
        parser.error("--url needs --key, or FOLIOT_API_KEY")
    return asked


def fuzz(url: str, key: str, options: Sequence[str]) -> int:
    """Its exit code; it shows its own progress."""
    asking = Request(f"{url}/openapi.json", headers={"Authorization": f"Bearer {key}"})
    with tempfile.TemporaryDirectory(prefix="foliot-fuzz-") as folder, urlopen(asking, timeout=30) as answer:
        described = Path(folder) / "openapi.json"
        described.write_bytes(answer.read())
        asked: tuple[str | Path, ...] = (
            SCHEMATHESIS,
            "--config-file",
            CONFIG,
            "run",
            described,
            "--url",
            url,
            *options,
        )
        return subprocess.call(asked, cwd=HERE.parent.parent, env=os.environ | {"FOLIOT_FUZZ_KEY": key})


@contextmanager
def target(url: str | None = None, key: str | None = None) -> Iterator[tuple[str, str]]:
    """The server of that address, or a new one that ends with this block."""
    if url is not None:
        yield url.rstrip("/"), str(key)
        return
    with tempfile.TemporaryDirectory(prefix="foliot-fuzz-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL may run as another user
        serving = ServerProcess(Path(folder).resolve() / "data")
        try:
            address = serving.wait_for_url()
            yield address, (Path(folder) / "data" / "admin.key").read_text().strip()
        finally:
            serving.stop()
            serving.end()
        failures = [each for each in serving.events() if each.get("event") == "request.failed"]
        assert not failures, f"requests failed: {failures[:3]}"


if __name__ == "__main__":
    sys.exit(main())
