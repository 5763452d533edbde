"""The lines of runs, in chunks: as many as one run wrote between two deliveries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from foliot.domain.ids import RunId
from foliot.domain.logs import LogHead, LogLine, LogStream, fitting
from foliot.domain.progress import Progress
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Lines as their writer counts them: `first` is the number of the first one among all that it wrote under this fence."""

    run_id: RunId
    attempt: int
    fence: int
    first: int
    lines: Sequence[LogLine]

    def behind(self, fence: int, written: int) -> Sequence[LogLine]:
        """Those that are new to a log that has so many of this fence: a delivery whose answer was lost comes again."""
        return self.lines[max(0, written + 1 - self.first) :] if fence == self.fence else self.lines


@dataclass(frozen=True, slots=True)
class NumberedLine:
    seq: int  # within its run, from 1 on
    attempt: int
    line: LogLine


async def append(tx: Tx, chunks: Sequence[LogChunk]) -> int:
    """Answers with how many lines were kept; the heads say where lines were left out."""
    rows = await tx.fetch(sql.logs.heads, {"run_ids": sorted({chunk.run_id for chunk in chunks})})
    heads = {row["run_id"]: LogHead(row["lines"], row["bytes"], row["truncated"]) for row in rows}
    marks = {row["run_id"]: (row["fence"], row["lines_received"]) for row in rows}
    written: list[tuple[LogChunk, int, list[LogLine]]] = []
    for chunk in chunks:
        if chunk.run_id in heads:
            mark = marks[chunk.run_id]
            kept, head = fitting(heads[chunk.run_id], chunk.behind(*mark))
            marks[chunk.run_id] = max(mark, (chunk.fence, chunk.first - 1 + len(chunk.lines)))
            heads[chunk.run_id] = head
            if kept:
                written.append((chunk, head.lines, kept))
    await tx.execute(
        sql.logs.append,
        {
            "run_ids": list(heads),
            "lines": [head.lines for head in heads.values()],
            "bytes": [head.bytes for head in heads.values()],
            "truncateds": [head.truncated for head in heads.values()],
            "fences": [marks[run_id][0] for run_id in heads],
            "writtens": [marks[run_id][1] for run_id in heads],
            "chunk_run_ids": [chunk.run_id for chunk, _, _ in written],
            "last_seqs": [last for _, last, _ in written],
            "attempts": [chunk.attempt for chunk, _, _ in written],
            "chunks": [Jsonb([_packed(line) for line in kept]) for _, _, kept in written],
        },
    )
    return sum(len(kept) for _, _, kept in written)


async def page(tx: Tx, run_id: RunId, after: int, limit: int) -> list[NumberedLine]:
    params = {"run_id": run_id, "after": after, "limit": limit}
    return [
        NumberedLine(
            row["seq"],
            row["attempt"],
            LogLine(datetime.fromisoformat(row["at"]), LogStream(row["stream"]), row["text"]),
        )
        for row in await tx.fetch(sql.logs.page, params)
    ]


async def head(tx: Tx, run_id: RunId) -> LogHead:
    row = await tx.fetch_one(sql.logs.head, {"run_id": run_id})
    return LogHead() if row is None else LogHead(row["lines"], row["bytes"], row["truncated"])


def _packed(line: LogLine) -> list[str]:
    return [line.at.isoformat(), line.stream.value, line.text]


async def load_progress(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, Progress]:
    rows = await tx.fetch(sql.logs.of_runs, {"run_ids": list(run_ids)})
    return {row["run_id"]: _progress(*row["progress"]) for row in rows}


def _progress(done: float, total: float, note: str, at: str) -> Progress:
    return Progress(done, total, note, datetime.fromisoformat(at))
