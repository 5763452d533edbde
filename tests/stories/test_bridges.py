"""One server, one Redis, and the workers of three engines: the examples of the bridges run as they stand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.bridges.engines import free_port, valkey

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORKERS = {
    "celery": ("celery", "-A", "bridge_celery", "worker", "--queues", "jobs-default", "--concurrency", "1"),
    "rq": ("rq.cli", "worker", "--url", "{url}", "jobs-default"),
    "bullmq": ("bridge_bullmq", "worker"),
}


@contextmanager
def running(folder: Path, command: tuple[str, ...], environ: dict[str, str]) -> Iterator[None]:
    with (folder / f"{command[0]}.log").open("wb") as said:
        process = subprocess.Popen(
            (sys.executable, "-m", *command), cwd=folder, env=environ, stdout=said, stderr=said
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def test_the_examples_of_the_bridges_run_against_real_workers(serve: Any, data_dir: Path) -> None:
    folder = data_dir.parent
    for kind in WORKERS:
        shutil.copy(EXAMPLES / f"bridge_{kind}.py", folder)
    with ExitStack() as stack:
        url = stack.enter_context(valkey(folder / "valkey", free_port())).connection_url
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        environ = kept | {"REDIS_URL": url, "PYTHONPATH": str(folder)}
        for command in WORKERS.values():
            said = tuple(part.format(url=url) for part in command)
            stack.enter_context(running(folder, said, environ))
        serving = serve(
            FOLIOT_BRIDGE_REDIS_URL=url, FOLIOT_CELERY_BROKER_URL=url, FOLIOT_CELERY_RESULT_URL=url
        )
        environ |= {"FOLIOT_API_URL": serving.wait_for_url(), "FOLIOT_DATA_DIR": str(data_dir)}
        for kind in WORKERS:
            done = subprocess.run(
                (sys.executable, f"bridge_{kind}.py"),
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, done.stderr
            assert "attempt 1, foliot-" in done.stdout
            assert "succeeded {" in done.stdout
            assert "'charged': 4" in done.stdout
        serving.stop()
        assert url not in serving.said
