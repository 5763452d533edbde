"""`./dev bench memory`: measure the memory that a server keeps after thousands of bad requests.

Invalid bodies, fields and parameters go to every operation, over a few connections, and the resident memory of the
serving process is read as they do. It grows while caches fill and buffers of large bodies are kept for the next; then it must not.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from tests.stories.server_process import ServerProcess
from tests.web.test_bad_bodies import LARGE, ODD, RAW

Bad = tuple[str, str, bytes | None, dict[str, str]]
STEPS = 20
LARGEST_SMALL = 10_000  # bytes
A_LARGE_ONE = 0.05  # of the bodies: they take most of the time
TEXTS = [
    "",
    "%00",
    "x" * 6_000,
    "-1",
    "1e999",
    "\u202e",
    "9" * 5_000,
    "((((",
    "since:9999999999d",
    '"',
    "status:x",
]
BAD_HEADERS: list[dict[str, str]] = [
    {},
    {"Content-Type": "text/plain"},
    {"Idempotency-Key": "a b"},
    {"If-Match": "3"},
    {"Authorization": "Bearer fol_" + "x" * 47},
    {"Foliot-Workspace": "nobody"},
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench memory", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foliot-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL may run as another user
        serving = ServerProcess(Path(folder).resolve() / "data")
        try:
            url = serving.wait_for_url()
            key = (Path(folder) / "data" / "admin.key").read_text().strip()
            return measured(url, key, serving.process.pid, options)
        finally:
            serving.stop()
            serving.end()


def measured(url: str, key: str, pid: int, options: argparse.Namespace) -> int:
    place, headers = urlsplit(url), {"Authorization": f"Bearer {key}"}
    described = json.loads(request(place.netloc, "GET", "/openapi.json", None, headers)[1])
    bad = requests(described, random.Random(options.seed))  # the same each time
    statuses: Counter[int] = Counter()
    seen = [resident(pid)]
    with ThreadPoolExecutor(options.clients) as pool:
        for step in range(STEPS):
            some = [next(bad) for _ in range(options.requests // STEPS)]
            statuses.update(pool.map(lambda one: answered(place.netloc, one, headers), some))
            seen.append(resident(pid))
            print(f"{(step + 1) * len(some):>7,} requests: {seen[-1]:.1f} MiB", flush=True)
    print(f"Answers: {dict(sorted(statuses.items()))}; none (the server hung up): {statuses[0]}")
    half, last = seen[STEPS // 2], seen[-1]
    print(
        f"At rest {seen[0]:.1f} MiB, halfway {half:.1f}, at the end {last:.1f}: {last - half:+.1f} in the second half."
    )
    return 1 if any(status >= 500 for status in statuses) else 0


def requests(described: dict[str, Any], chance: random.Random) -> Iterator[Bad]:
    """For ever: a method, a path, a body, headers besides the key."""
    operations = [
        (method.upper(), path, operation)
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if not path.endswith(("/events", "/claim")) and "logs" not in path
    ]
    shapes = described["components"]["schemas"]
    fields = sorted({name for shape in shapes.values() for name in shape.get("properties", ())})

    def odd(values: list[Any]) -> bytes:
        return json.dumps({chance.choice(fields): chance.choice(values) for _ in range(3)}).encode()

    bodies: list[Callable[[], bytes]] = [partial(bytes, each) for each in RAW.values()]
    small = [each for each in bodies if len(each()) < LARGEST_SMALL] + [partial(odd, ODD)] * len(bodies)
    large = [each for each in bodies if len(each()) >= LARGEST_SMALL] + [partial(odd, LARGE)] * 2
    while True:
        method, path, operation = chance.choice(operations)
        query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
        at = path
        for each in operation.get("parameters", ()):
            at = at.replace(f"{{{each['name']}}}", chance.choice([str(uuid4()), "nonsense", "%2e%2e"]))
        if query and chance.random() < 0.5:
            at += f"?{chance.choice([*query, 'no_such'])}={quote(chance.choice(TEXTS))}"
        body = None
        if method != "GET":
            body = chance.choice(large if chance.random() < A_LARGE_ONE else small)()
        yield method, at, body, {"Content-Type": "application/json"} | chance.choice(BAD_HEADERS)


def answered(netloc: str, bad: Bad, headers: dict[str, str]) -> int:
    method, path, body, others = bad
    return request(netloc, method, path, body, headers | others)[0]


def request(
    netloc: str, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    connection = HTTPConnection(netloc, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException):  # it need not read 10 MB before it says no
        return 0, b""
    finally:
        connection.close()


def resident(pid: int) -> float:
    """MiB of the process alone, without PostgreSQL and the worker."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    sys.exit(main())
