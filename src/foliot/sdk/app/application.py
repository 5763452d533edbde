"""The app: a name, its jobs and handlers, and its client."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from foliot.sdk.app.job import Job, JobType
from foliot.sdk.app.options import AppDefinitionError, JobOptions

if TYPE_CHECKING:
    from foliot.sdk import AsyncClient, Client
    from foliot.sdk.sync.plan import SyncResult
    from foliot.wire.runs import RunOut

P = ParamSpec("P")
R = TypeVar("R")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}", re.ASCII)


class Foliot:
    """Jobs that are defined in code. A worker that loads the app updates the server's jobs to match; so does `sync`.

    `workspace` is the workspace of the jobs, "default" if omitted. `sync` and `run_now` use `client`; without one they
    find the server as `Client()` does.
    """

    def __init__(self, name: str, *, workspace: str | None = None, client: Client | None = None) -> None:
        if not _NAME.fullmatch(name):
            raise AppDefinitionError(
                f"{name!r} is not a valid app name.",
                hint="Use up to 40 lower-case letters, digits and - _ . such as billing.",
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
        """Make a function a job: `@app.job(cron="0 6 * * *", timezone="Europe/Paris")`; plain `@app.job` has no schedule."""

        def made(function: Callable[..., Any]) -> Job[..., Any]:
            job = Job(self, function, JobOptions(**options))  # type: ignore[typeddict-item]
            if job.name in self._jobs:
                raise AppDefinitionError(
                    f"The app {self.name} has two jobs called {job.name}.", hint="Set name= of one of them."
                )
            self._jobs[job.name] = job
            return job

        return made if function is None else made(function)

    def handler(
        self, name: str, *, config: Any = None, description: str | None = None
    ) -> Callable[[Callable[P, R]], JobType[P, R]]:
        """Make a function the handler of your own job type: `@app.handler("DATA_SYNC", config=SyncConfig)`.

        It takes any of `config`, `input` and `ctx`. `config` is the type of a job's config: a pydantic model, a dataclass or
        a TypedDict. Once a worker has loaded the app, the server refuses jobs whose config does not match.
        """

        def made(function: Callable[P, R]) -> JobType[P, R]:
            if name in self._handlers:
                raise AppDefinitionError(
                    f"The app {self.name} has two handlers of {name}.", hint="Remove one of them."
                )
            self._handlers[name] = job_type = JobType(self, name, function, config, description)
            return job_type

        return made

    def sync(self, client: Client | None = None) -> SyncResult:
        """Update the server's jobs to match this app. Jobs that are no longer in the code are listed, never deleted.

        Raise Invalid if the server refused some of them, after the others are written.
        """
        from foliot.sdk.sync.entries import app_entries
        from foliot.sdk.synchronous.sync import ApiJobStore, sync

        return sync(ApiJobStore(client or self.client), self.name, app_entries(self)).checked()

    async def sync_async(self, client: AsyncClient) -> SyncResult:
        """Do the same in asynchronous programs."""
        from foliot.sdk.asynchronous.sync import AsyncApiJobStore, sync
        from foliot.sdk.sync.entries import app_entries

        return (await sync(AsyncApiJobStore(client), self.name, app_entries(self))).checked()

    def run_now(self, job: Job[..., Any], inputs: Sequence[Mapping[str, object]]) -> list[RunOut]:
        """Start a run of the job for each input."""
        from foliot.sdk.errors import NotFound

        for found in self.client.jobs.each(type="python", name=job.name):
            if found.name == job.name and found.managed_by == self.name:
                return [self.client.jobs.run(found.id, input=given) for given in inputs]
        raise NotFound(
            f"Job not found: {job.name} of the app {self.name}.",
            code="not_found",
            hint="Start a worker with the app, or call app.sync().",
        )
