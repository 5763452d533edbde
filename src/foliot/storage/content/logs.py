"""Logs of runs, in chunks of one delivery each, and the progress of running attempts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from psycopg.types.json import Jsonb

from foliot.domain.ids import RunId
from foliot.domain.logs import DEFAULT_LIMITS, LogHead, LogLimits, LogLine, fitting
from foliot.domain.run import Progress
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Lines of one delivery. `first` is the number of its first line among all that the worker sent under this fence."""

    run_id: RunId
    attempt: int
    fence: int
    first: int
    lines: Sequence[LogLine]

    def new_lines(self, fence: int, received: int) -> Sequence[LogLine]:
        """Return the lines that a log with `received` lines of this fence lacks: a worker repeats a delivery without a response."""
        return self.lines[max(0, received + 1 - self.first) :] if fence == self.fence else self.lines


@dataclass(frozen=True, slots=True)
class NumberedLine:
    seq: int  # within its run, from 1 on
    attempt: int
    line: LogLine


class _LockedHead(NamedTuple):
    run_id: RunId
    head: LogHead
    fence: int
    lines_received: int


async def append(tx: Tx, chunks: Sequence[LogChunk], limits: LogLimits = DEFAULT_LIMITS) -> int:
    """Append lines and return how many were stored; `truncated` of a head marks a log that lost some."""
    params = {"run_ids": sorted({chunk.run_id for chunk in chunks})}
    rows = await tx.fetch_as(_LockedHead, sql.logs.lock_heads, params)
    heads = {row.run_id: row.head for row in rows}
    received = {row.run_id: (row.fence, row.lines_received) for row in rows}
    stored: list[tuple[LogChunk, int, list[LogLine]]] = []
    for chunk in chunks:
        if chunk.run_id in heads:
            before = received[chunk.run_id]
            kept, head = fitting(heads[chunk.run_id], chunk.new_lines(*before), limits)
            received[chunk.run_id] = max(before, (chunk.fence, chunk.first - 1 + len(chunk.lines)))
            heads[chunk.run_id] = head
            if kept:
                stored.append((chunk, head.lines, kept))
    await tx.execute(
        sql.logs.append,
        {
            "run_ids": list(heads),
            "lines": [head.lines for head in heads.values()],
            "bytes": [head.bytes for head in heads.values()],
            "truncateds": [head.truncated for head in heads.values()],
            "fences": [received[run_id][0] for run_id in heads],
            "lines_received": [received[run_id][1] for run_id in heads],
            "chunk_run_ids": [chunk.run_id for chunk, _, _ in stored],
            "last_seqs": [last for _, last, _ in stored],
            "attempts": [chunk.attempt for chunk, _, _ in stored],
            "chunks": [Jsonb([_packed(line) for line in kept]) for _, _, kept in stored],
        },
    )
    return sum(len(kept) for _, _, kept in stored)


async def page(tx: Tx, run_id: RunId, after: int, limit: int) -> list[NumberedLine]:
    return await tx.fetch_as(NumberedLine, sql.logs.page, {"run_id": run_id, "after": after, "limit": limit})


async def load_head(tx: Tx, run_id: RunId) -> LogHead:
    return await tx.fetch_one_as(LogHead, sql.logs.load_head, {"run_id": run_id}) or LogHead()


def _packed(line: LogLine) -> list[str]:
    return [line.at.isoformat(), line.stream.value, line.text]


async def load_progress(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, Progress]:
    rows = await tx.fetch(sql.logs.load_progress, {"run_ids": list(run_ids)})
    return {row["run_id"]: _progress(*row["progress"]) for row in rows}


def _progress(done: float, total: float, note: str, at: str) -> Progress:
    return Progress(done, total, note, datetime.fromisoformat(at))
