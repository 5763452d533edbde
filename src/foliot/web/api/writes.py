"""Every write of the API goes through `Write`: it is applied or, with `dry_run=true`, applied in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.services import Database
from foliot.services.dry_run import JobVerb, apply_and_roll_back, preview_job, preview_run
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import job_search
from foliot.services.jobs.jobs import WrittenJob
from foliot.services.runs import history
from foliot.web.mapping.dry_run import job_preview_out
from foliot.web.mapping.jobs import etag, job_out, run_out
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import JobOut
from foliot.wire.runs import RunOut
from foliot.wire.shape import Shape

Result = TypeVar("Result")
Answer = TypeVar("Answer")
Preview = TypeVar("Preview", bound=Shape)
Verb = Callable[[Database], Awaitable[Result]]


DRY_RUN = "2XX"


def dry_run_response(shape: type[Shape]) -> dict[int | str, dict[str, Any]]:
    """Describe the answer of a dry run, which is 200, for a route that answers with another status.

    It stands under all other 2xx: some generators of clients take the lowest status for the answer of an operation.
    """
    return {DRY_RUN: {"model": shape, "description": "With dry_run: 200"}}


@dataclass(frozen=True, slots=True)
class Write:
    """One write request."""

    request: Request
    response: Response
    dry_run: bool
    workspace_id: WorkspaceId | None  # of the transaction that a dry run rolls back
    is_system: bool = False

    @property
    def caller(self) -> Caller:
        caller: Caller = self.request.state.caller
        return caller

    @property
    def db(self) -> Database:
        database: Database = self.request.app.state.database
        return database

    @property
    def with_warnings(self) -> bool:
        """Whether the answer tells the warnings of a job. Each write of a batch would count and compare the jobs of the workspace."""
        return not self.dry_run and not getattr(self.request.state, "is_part", False)

    def as_system(self, workspace_id: WorkspaceId | None = None) -> Write:
        """Return this write for verbs that also touch rows of no workspace."""
        return replace(self, workspace_id=workspace_id, is_system=True)

    async def apply_or_preview(
        self,
        verb: Verb[Result],
        answer: Callable[[Result], Answer],
        preview: Callable[[Result], Preview],
        *hints: Hint,
    ) -> Answer | Preview:
        """Apply the verb and map its result to the answer; in a dry run to the preview."""

        async def look(stage: Database) -> Preview:
            return preview(await verb(stage))

        if self.dry_run:
            return await self.roll_back(look)
        result = await verb(self.db)
        self.announce(*hints)
        return answer(result)

    async def apply(self, verb: Verb[Result], answer: Callable[[Result], Preview], *hints: Hint) -> Preview:
        """As `apply_or_preview`, for routes whose dry run has the same answer."""
        return await self.apply_or_preview(verb, answer, answer, *hints)

    async def create(self, nouns: str, verb: Verb[Result], answer: Callable[[Result], Preview]) -> Preview:
        """As `apply`, with the address of the new thing in the header Location."""
        made = await self.apply(verb, answer)
        if not self.dry_run:
            self.set_location(f"{nouns}/{made.id}")  # type: ignore[attr-defined]  # each noun has an id
        return made

    async def delete_or_preview(
        self, verb: Verb[Result], preview: Callable[[Result], Preview], *hints: Hint
    ) -> Response | None:
        """As `apply_or_preview`, for routes that answer with 204."""
        found = await self.apply_or_preview(verb, lambda _: None, preview, *hints)
        return None if found is None else preview_response(found)

    async def roll_back(self, verb: Verb[Result]) -> Result:
        """Apply a verb in a transaction that is rolled back."""
        self.response.status_code = 200
        return await apply_and_roll_back(self.db, self.workspace_id, verb, system=self.is_system)

    def announce(self, *hints: Hint) -> None:
        """Wake the loops that the change concerns, after its commit."""
        for hint in hints:
            if hint is Hint.KEYS:  # other nodes hear of it; this one forgets at once
                self.request.app.state.authenticator.forget()
            self.request.app.state.announce(hint)

    def set_location(self, path: str) -> None:
        self.response.headers["Location"] = f"/api/v1/{path}"

    async def job(self, job_id: JobId | None, verb: JobVerb, *hints: Hint) -> JobOut | DryRunOut:
        """Write one job. `job_id` is None for a new one."""
        if self.dry_run:
            return await self.job_preview(job_id, verb)
        written = await verb(self.db)
        self.announce(*hints)
        if not isinstance(written, WrittenJob):
            assert job_id is not None
            written = await job_search.written(
                self.db, self.caller.scope, job_id, with_warnings=self.with_warnings
            )
        if job_id is None:
            self.set_location(f"jobs/{written.id}")
        self.response.headers["ETag"] = etag(written.job)
        return job_out(written.job, written.warnings)

    async def job_preview(self, job_id: JobId | None, verb: JobVerb) -> DryRunOut:
        workspace_id = self.caller.workspace_id
        return job_preview_out(
            await self.roll_back(lambda stage: preview_job(stage, workspace_id, verb, job_id))
        )

    async def run(self, verb: Verb[RunId], *hints: Hint, creates: bool = False) -> RunOut | RunDryRunOut:
        """Create or end one run."""
        scope = self.caller.scope
        if self.dry_run:
            seen = await self.roll_back(lambda stage: preview_run(stage, scope, verb))
            return RunDryRunOut(run=run_out(seen.run), sentence=seen.sentence)
        run_id = await verb(self.db)
        self.announce(*hints)
        if creates:
            self.set_location(f"runs/{run_id}")
        return run_out(await history.run(self.db, scope, run_id))


def preview_response(preview: Shape) -> JSONResponse:
    """Return a preview from a route whose answer has no body."""
    return JSONResponse(preview.model_dump(mode="json"))


async def _write(
    request: Request,
    response: Response,
    dry_run: Annotated[
        bool, Query(description="Keep nothing; answer with the result and with what would change.")
    ] = False,
) -> Write:
    caller: Caller = request.state.caller  # the guard of the route has set it
    return Write(request, response, dry_run, caller.workspace_id)


Writing = Annotated[Write, Depends(_write)]
