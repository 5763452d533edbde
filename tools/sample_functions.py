"""Functions of the sample jobs: they log, store files, fail or last. `tools/sample_workspace.py` copies this file beside the server."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from foliot import Context

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 80]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)


def report(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Log many lines and store a file of each kind that the console previews."""
    for number in range(given.get("lines", 40)):
        ctx.log(f"{number + 1:>5} invoice {10_000 + number} sent to {given.get('to', 'billing@example.com')}")
    for line in given.get("extra", []):
        ctx.log(line)
    ctx.artifact("invoices.csv", "number,total\n10000,12.50\n10001,99.00\n", media_type="text/csv")
    ctx.artifact("chart.png", PIXEL, media_type="image/png")
    ctx.artifact("report.pdf", PDF, media_type="application/pdf")
    for name, body in given.get("files", {}).items():
        ctx.artifact(name, body, media_type="text/html")
    return {"sent": given.get("lines", 40), "note": given.get("note", "all sent")}


def fail(given: dict[str, Any], ctx: Context) -> None:
    """Fail; with `until`, only planned times from then on."""
    ctx.log("connecting to db-2")
    if ctx.planned_for.isoformat() < given.get("until", ""):
        ctx.log("42 customers copied")
        return
    raise ConnectionError(given.get("error", "db-2 refused the connection"))


async def last(given: dict[str, Any], ctx: Context) -> None:
    """Last until the server ends it, with a progress of two thirds."""
    ctx.log("copying tables")
    ctx.progress(2, 3, given.get("note", "table orders"))
    await asyncio.sleep(3_600)
