"""/runs/{id}/artifacts: list and download the files of a run.

Jobs write these files, so the server does not trust them: a browser saves each as a file and runs nothing in it.
`web/middleware.py` forbids all browsers to guess a content type.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Path, Response
from fastapi.responses import StreamingResponse

from foliot.services.runs import artifacts
from foliot.web.api.params import Db, RunIdIn
from foliot.web.auth import Viewer
from foliot.web.mapping.jobs import artifact_out
from foliot.web.routes import NOT_FOUND, api_router
from foliot.wire.runs import ArtifactsOut

routes = api_router("runs")
Name = Annotated[str, Path(min_length=1, max_length=200, description="As the list names it.")]


@routes.get("/runs/{run_id}/artifacts", responses=NOT_FOUND)
async def list_artifacts(run_id: RunIdIn, caller: Viewer, db: Db) -> ArtifactsOut:
    """List the files that the run stored, also while it runs."""
    found = await artifacts.of_run(db, caller.scope, run_id)
    return ArtifactsOut(items=[artifact_out(each) for each in found])


@routes.get(
    "/runs/{run_id}/artifacts/{artifact_name}",
    response_class=Response,
    responses={
        **NOT_FOUND,
        200: {
            "content": {
                media_type: {"schema": {"type": "string", "format": "binary"}}
                for media_type in ("application/octet-stream", "*/*")
            },
            "description": "Its content, under the media type that it was stored with",
        },
        304: {"description": "As it was; no body"},
    },
)
async def download_artifact(
    run_id: RunIdIn,
    artifact_name: Name,
    caller: Viewer,
    db: Db,
    if_none_match: Annotated[str | None, Header(description="An ETag that was answered before.")] = None,
) -> Response:
    """Download one file."""
    stored = await artifacts.find(db, caller.scope, run_id, artifact_name)
    artifact = stored.artifact
    headers = {
        "ETag": f'"{artifact.sha256.hex()}"',
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(artifact.name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if if_none_match is not None and headers["ETag"] in if_none_match:
        return Response(status_code=304, headers=headers)
    headers |= {"Content-Length": str(artifact.size), "Content-Type": artifact.media_type}
    return StreamingResponse(artifacts.content(db, caller.workspace_id, stored), headers=headers)
