"""The app: a name, its jobs, and its way to a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from foliot.sdk.app.errors import Misdefined
from foliot.sdk.app.job import Job
from foliot.sdk.app.job_type import JobType
from foliot.sdk.app.options import JobOptions

if TYPE_CHECKING:
    from foliot.sdk import AsyncClient, Client
    from foliot.sdk.sync.result import Synced
    from foliot.wire.runs import RunOut

P = ParamSpec("P")
R = TypeVar("R")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}", re.ASCII)


class Foliot:
    """Jobs that live in code. A worker that loads the app makes the server's jobs what the code says; `sync` does the same.

    `workspace` is where they belong, "default" where nobody says otherwise. `client` is how `sync` and `run_now` reach the
    server; without one they look for it as `Client()` does.
    """

    def __init__(self, name: str, *, workspace: str | None = None, client: Client | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise Misdefined(
                f"An app cannot be called {name!r}.",
                hint="Small letters, digits and - _ . up to 40, such as billing.",
            )
        self.name = name
        self.workspace = workspace
        self._client = client
        self._jobs: dict[str, Job[..., Any]] = {}
        self._handlers: dict[str, JobType[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<Foliot app {self.name!r} with {len(self._jobs)} jobs>"

    @property
    def jobs(self) -> tuple[Job[..., Any], ...]:
        return tuple(self._jobs.values())

    @property
    def handlers(self) -> tuple[JobType[..., Any], ...]:
        return tuple(self._handlers.values())

    @property
    def client(self) -> Client:
        if self._client is None:
            from foliot.sdk import Client

            self._client = Client(workspace=self.workspace)
        return self._client

    @overload
    def job(self, function: Callable[P, R], /) -> Job[P, R]: ...

    @overload
    def job(self, **options: Unpack[JobOptions]) -> Callable[[Callable[P, R]], Job[P, R]]: ...

    def job(  # type: ignore[misc]  # mypy does not see that **options takes the keywords
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> Any:
        """Make a function a job: `@app.job(cron="0 6 * * *", timezone="Europe/Paris")`, or `@app.job` for one run by hand."""

        def made(function: Callable[..., Any]) -> Job[..., Any]:
            job = Job(self, function, JobOptions(**options))  # type: ignore[typeddict-item]
            if job.name in self._jobs:
                raise Misdefined(
                    f"The app {self.name} has two jobs called {job.name}.", hint="Give one another name=."
                )
            self._jobs[job.name] = job
            return job

        return made if function is None else made(function)

    def handler(
        self, name: str, *, config: Any = None, description: str | None = None
    ) -> Callable[[Callable[P, R]], JobType[P, R]]:
        """Make a function do all jobs of a type of your own: `@app.handler("DATA_SYNC", config=SyncConfig)`.

        It takes any of `config`, `input` and `ctx`. `config` is what a job's config must look like: a pydantic model, a dataclass or
        a TypedDict; jobs that do not fit are refused when they are written, once a worker has loaded the app.
        """

        def made(function: Callable[P, R]) -> JobType[P, R]:
            if name in self._handlers:
                raise Misdefined(f"The app {self.name} has two handlers of {name}.", hint="Keep one.")
            self._handlers[name] = job_type = JobType(self, name, function, config, description)
            return job_type

        return made

    def sync(self, client: Client | None = None) -> Synced:
        """Make the server's jobs what this app says. What is no longer in the code is named, never deleted.

        Raises Invalid where the server refused some of them, after the others are done.
        """
        from foliot.sdk.sync.entries import app_entries
        from foliot.sdk.synchronous.sync import ClientBooks, sync

        return sync(ClientBooks(client or self.client), self.name, app_entries(self)).checked()

    async def sync_async(self, client: AsyncClient) -> Synced:
        """The same, for programs that run a loop."""
        from foliot.sdk.asynchronous.sync import AsyncClientBooks, sync
        from foliot.sdk.sync.entries import app_entries

        return (await sync(AsyncClientBooks(client), self.name, app_entries(self))).checked()

    def run_now(self, job: Job[..., Any], given: Mapping[str, object]) -> RunOut:
        from foliot.sdk.errors import NotFound

        for found in self.client.jobs.each(type="python", name=job.name):
            if found.name == job.name and found.managed_by == self.name:
                return self.client.jobs.run(found.id, input=given)
        raise NotFound(
            f"The server has no job {job.name} of the app {self.name}.",
            code="not_found",
            hint="A worker that loads the app makes it, or app.sync().",
        )
