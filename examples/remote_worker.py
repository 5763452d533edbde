"""A worker that knows no database: it takes runs of type `greeting` from a queue, over HTTP, with a key of the scope `worker`.

With `./dev serve` running: .venv/bin/python examples/remote_worker.py. It makes its key and two jobs, does the work, and leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foliot import Client
from foliot.wire.worker import WorkOut


def main() -> None:
    with Client() as client, worker_key(client) as key, Client(client.url, key) as mine:
        registered = mine.worker.register("greeter", ["greeting"], 4, queues=["greetings"])
        for name in ("Ada", "Grace"):
            job = client.jobs.create(
                name=f"greet {name}",
                type="greeting",
                schedule={"kind": "manual"},
                queue="greetings",
                payload={"name": name},
            )
            client.jobs.run(job.id)
        done = 0
        while done < 2:
            work = mine.worker.claim(registered.worker_id, ["greeting"], permits=4, wait="5s").items
            reports = [result(each) for each in work]
            for answer in mine.worker.report(registered.worker_id, reports).items:
                print(f"run {answer.run_id}: {'taken' if answer.status == 200 else answer.code}")
            done += len(work)
        mine.worker.leave(registered.worker_id)
        for job in client.jobs.each(queue="greetings"):
            [run] = client.jobs.runs(job.id).items
            print(f"{job.name}: {run.status}, {run.output}")
            client.jobs.delete(job.id)


def result(work: WorkOut) -> dict[str, object]:
    """What came of it, under the fence it was leased with. Work that takes longer needs a heartbeat every third of the lease."""
    greeting = f"Hello, {work.input['name']}!"
    return {"run_id": work.run_id, "fence": work.fence, "outcome": "succeeded", "output": {"said": greeting}}


@contextmanager
def worker_key(client: Client) -> Iterator[str]:
    """A key that can only claim and report, for as long as this lasts."""
    member = client.members.create("greeter", kind="service", role="viewer")
    made = client.keys.create("greeter", principal=member.id, scopes=["worker"])
    try:
        yield made.secret
    finally:
        client.members.delete(member.id)


if __name__ == "__main__":
    main()
