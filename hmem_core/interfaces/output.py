"""What commands print: for eyes on a terminal, tab-separated lines into a pipe, or JSON."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hmem_core.interfaces import outline
from hmem_core.localised import Localisation
from hmem_core.records import (
    Added,
    Context,
    Event,
    Evidence,
    Forgotten,
    Rewrite,
    Segment,
    Turn,
    Unit,
    Version,
    Why,
)
from hmem_core.reports import Stats, Verified

if TYPE_CHECKING:
    from hmem_core.ingest.bulk import Ingested
    from hmem_core.ingest.offline import Imported

__all__ = ["Output", "printable"]

_LONGEST = 600
"""Characters of a text that a list on a terminal shows; `hmem get` shows all."""

# Stored text must not move the cursor, change colours or ring the bell of whoever lists it.
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\ufffd")
_INVISIBLE = {**_CONTROLS, **dict.fromkeys((0x09, 0x0A, 0x0D, 0x85, 0x2028, 0x2029), " ")}


def printable(text: str, longest: int | None = None) -> str:
    """`text` on one line without control characters, cut to `longest` characters."""
    line = text.translate(_INVISIBLE)
    return line if longest is None or len(line) <= longest else line[: longest - 1].rstrip() + "…"


class Output:
    """Where a command's results go."""

    def __init__(self, *, json: bool, tz: dt.tzinfo = dt.UTC) -> None:
        self.json = json
        self.console = Console(highlight=False, markup=False, emoji=False)
        self._tz = tz

    def record(self, record: Any) -> None:
        """One JSON document on a line."""
        typer.echo(msgspec.json.encode(record))

    def line(self, text: str) -> None:
        """A line of plain text."""
        typer.echo(text)

    def time(self, at: dt.datetime | None) -> str:
        """A time: short on a terminal, exact in a pipe."""
        if at is None:
            return ""
        local = at.astimezone(self._tz)
        return f"{local:%Y-%m-%d %H:%M}" if self.console.is_terminal else local.isoformat()

    def _date(self, at: dt.datetime) -> str:
        return f"{at.astimezone(self._tz):%Y-%m-%d}"

    def added(self, added: Added) -> None:
        if self.json:
            return self.record(added)
        new = set(added.new)
        self._table([[str(id), "stored" if id in new else "known already"] for id in added.ids], ("id", ""))
        for skipped in added.skipped:
            typer.echo(f"hmem: not stored: {skipped.reason}", err=True)
        return None

    def imported(self, name: str, format: str, done: Ingested) -> None:
        if self.json:
            return self.record({"file": name, "format": format, **msgspec.structs.asdict(done)})
        return self.line(f"{printable(name)}: {_counts(done)}")

    def imported_offline(self, memory: str, done: Imported) -> None:
        if self.json:
            rest = {"summarised": done.summarised, "waiting": done.waiting, "problem": done.problem}
            return self.record({"memory": memory, **msgspec.structs.asdict(done.ingested), **rest})
        summaries = f"{done.summarised:,} segments summarised, {done.waiting:,} wait"
        return self.line(f"{printable(memory)}: {_counts(done.ingested)}; {summaries}")

    def forgotten(self, forgotten: Forgotten) -> None:
        if self.json:
            return self.record(forgotten)
        rows = [[str(id), "forgotten"] for id in forgotten.ids]
        rows += [[str(id), "forgotten before"] for id in forgotten.already]
        return self._table(rows, ("id", "")) if rows else None

    def context(self, context: Context) -> None:
        if self.json:
            return self.record(context)
        text = context.text
        if self.console.is_terminal:
            text = "\n".join(line.translate(_CONTROLS) for line in text.expandtabs().split("\n"))
        return self.line(text) if text else None

    @contextmanager
    def progress(self, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar on stderr while the block runs, if that is a terminal; call it with how much is done."""
        console = Console(stderr=True)
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar:
            task = bar.add_task(escape(printable(label)), total=total)
            yield lambda done: bar.update(task, completed=done)

    def rewrite(self, rewrite: Rewrite) -> None:
        if self.json:
            return self.record(rewrite)
        before = {change.unit: change.before.status if change.before else "" for change in rewrite.changes}
        rows = [
            [
                str(change.unit),
                before[change.unit],
                change.after.status,
                change.after.why,
                _id(change.after.by),
            ]
            for change in rewrite.changes
        ]
        if rows:
            self._table(rows, ("unit", "was", "is", "why", "by"))
        noted = f"rewrite {rewrite.seq}" if rewrite.new else "nothing new: it was known already"
        return typer.echo(f"hmem: {noted}", err=True)

    def units(self, units: Sequence[Unit]) -> None:
        if self.json:
            return self._records(units)
        rows = [
            [
                str(unit.id),
                unit.status,
                self.time(unit.valid_from),
                self.time(unit.valid_to),
                unit.subject,
                unit.relation,
                unit.object,
                "; ".join(unit.contexts),
                f"{unit.confidence:.2f}",
                " ".join(map(str, unit.sources)),
            ]
            for unit in units
        ]
        columns = (
            "unit",
            "status",
            "from",
            "to",
            "subject",
            "relation",
            "object",
            "context",
            "conf.",
            "turns",
        )
        return self._table(rows, columns) if rows else None

    def localisation(self, found: Localisation) -> None:
        if self.json:
            return self.record(found)
        parts = ("score", "attributes", "dependency", "validity", "context")
        rows = [
            [*(f"{getattr(path, part):.3f}" for part in parts), " ".join(map(str, path.units)), path.text]
            for path in found.paths
        ]
        return self._table(rows, (*parts, "units", "text")) if rows else None

    def versions(self, versions: Sequence[Version]) -> None:
        if self.json:
            return self._records(versions)
        rows = [
            [
                str(one.seq),
                self.time(one.recorded),
                one.status,
                self.time(one.valid_from),
                self.time(one.valid_to),
                f"{one.confidence:.2f}",
                one.why,
                _id(one.by),
            ]
            for one in versions
        ]
        return self._table(rows, ("rewrite", "recorded", "status", "from", "to", "conf.", "why", "by"))

    def why(self, why: Why) -> None:
        if self.json:
            return self.record(why)
        waiting = [(0, "", why)]
        while waiting:
            level, mark, one = waiting.pop()
            indent = "  " * level
            self.line(f"{indent}{mark}[{one.unit.id}] {printable(str(one.unit))} ({one.unit.status})")
            for turn in one.turns:
                who = printable(turn.speaker or turn.role)
                self.line(f"{indent}  turn {turn.id}, {who}: {printable(turn.text, _LONGEST)}")
            below = [
                (level + 1, "because " if first else "and ", support)
                for needed in one.because
                for first, support in zip([True, *[False] * len(needed)], needed, strict=False)
            ]
            waiting += reversed(below)
        return None

    def hits(self, hits: Sequence[Evidence]) -> None:
        if self.json:
            return self._records(hits)
        columns = ["id", "score", "time", "speaker", "text"]
        rows: list[list[str | Text]] = [
            [_span(hit), f"{hit.score:.3f}", self.time(hit.at), _speakers(hit), hit.text] for hit in hits
        ]
        if any(hit.signals is not None for hit in hits):
            if self.console.is_terminal:
                for row, hit in zip(rows, hits, strict=True):
                    row[4] = Text(printable(hit.text, _LONGEST)).append("\n" + _sum(hit), "dim")
            else:
                columns.insert(4, "signals")
                for row, hit in zip(rows, hits, strict=True):
                    parts = [f"{name}={part:.3f}" for name, part in (hit.signals or {}).items()]
                    parts += [] if hit.stages is None else [f"stages={','.join(hit.stages)}"]
                    row.insert(4, " ".join(parts))
        return self._table(rows, columns)

    def turns(self, turns: Sequence[Turn]) -> None:
        if self.json:
            return self._records(turns)
        rows = [
            [str(turn.id), self.time(turn.at), turn.session or "", turn.speaker or turn.role, turn.text]
            for turn in turns
        ]
        return self._table(rows, ("id", "time", "session", "speaker", "text"))

    def tree(self, segments: Sequence[Segment], *, more: bool) -> None:
        """The segments of a walk: drawn on a terminal, an indented line each in a pipe."""
        if self.json:
            return self._records(segments)
        if not segments:
            return None
        if self.console.is_terminal:
            return self.console.print(outline.draw(segments, self._date, printable, more))
        rows = [
            [
                "  " * level + str(segment.id),
                f"{segment.span[0]}-{segment.span[1]}",
                str(segment.size),
                str(segment.height),
                self.time(segment.start),
                self.time(segment.end),
                segment.text,
            ]
            for segment, level in zip(segments, outline.levels(segments), strict=True)
        ]
        return self._table(rows, ())

    def events(self, events: Sequence[Event]) -> None:
        """A line each: number, score if it was searched for, times, turns, speakers, keywords, summary."""
        if self.json:
            return self._records(events)
        scored = any(event.score is not None for event in events)
        rows = [
            [
                str(event.id),
                *([f"{event.score:.3f}"] if event.score is not None else []),
                self._span(event),
                str(len(event.turns)),
                ", ".join(event.speakers),
                ", ".join(event.keywords[:5]),
                printable(event.summary, _LONGEST),
            ]
            for event in events
        ]
        score = ("score",) if scored else ()
        return self._table(rows, ("id", *score, "time", "turns", "speakers", "keywords", "summary"))

    def event(self, event: Event) -> None:
        """Everything of one event: its fields, its summary and its timeline."""
        if self.json:
            return self.record(event)
        self.fields(
            {
                "id": event.id,
                "time": self._span(event),
                "turns": ", ".join(map(str, event.turns)),
                "sessions": ", ".join(event.sessions),
                "speakers": ", ".join(event.speakers),
                "keywords": ", ".join(event.keywords),
                "tags": ", ".join(event.tags) or None,
                "entities": ", ".join(event.entities),
            }
        )
        self.line("\n" + "\n".join(printable(line) for line in event.summary.split("\n")) + "\n")
        rows = []
        for item in event.timeline:
            said = f" ({item.time})" if item.time else ""
            rows.append([self.time(item.at) + said, str(item.turn), item.fact])
        return self._table(rows, ("time", "turn", "fact"))

    def _span(self, event: Event) -> str:
        """The times of its first and last turn; on a terminal the days, one if they are the same."""
        if not self.console.is_terminal:
            return f"{self.time(event.start)} {self.time(event.end)}"
        start, end = self._date(event.start), self._date(event.end)
        return start if start == end else f"{start} to {end}"

    def turn(self, turn: Turn) -> None:
        """Everything of one turn: its fields, a blank line, and its text as it was said."""
        if self.json:
            return self.record(turn)
        self.fields(
            {
                "id": turn.id,
                "time": self.time(turn.at),
                "role": turn.role,
                "speaker": turn.speaker,
                "session": turn.session,
                "key": turn.key,
                "metadata": msgspec.json.encode(turn.metadata).decode() if turn.metadata else None,
            }
        )
        if self.console.is_terminal:
            lines = (line.translate(_CONTROLS) for line in turn.text.expandtabs().split("\n"))
            return self.line("\n" + "\n".join(lines))
        return self.line("\n" + turn.text)

    def stats(self, stats: Stats) -> None:
        if self.json:
            return self.record(stats)
        checkpoint = "none" if stats.checkpoint is None else f"at entry {stats.checkpoint:,}"
        return self.fields(
            {
                "memory": stats.location,
                "turns": f"{stats.turns:,}",
                "forgotten": f"{stats.forgotten:,}",
                "sessions": f"{stats.sessions:,}",
                "speakers": f"{stats.speakers:,}",
                "first": self.time(stats.first),
                "last": self.time(stats.last),
                "entries": f"{stats.seq:,}",
                "checkpoint": checkpoint,
                "on disk": _size(stats.disk_bytes),
                "in memory": _size(stats.memory_bytes),
                "mapped": _size(stats.mapped_bytes),
                "encoder": str(stats.encoder),
                **(
                    {}
                    if stats.llm is None
                    else {"wait for the model": f"{stats.waiting:,} segments, turns and events"}
                ),
            }
        )

    def settled(self, done: int, stats: Stats) -> None:
        """What `settle` did, and what it took by purpose."""
        spent = {} if stats.llm is None else stats.llm.purposes
        if self.json:
            return self.record({"done": done, "waiting": stats.waiting, "llm": stats.llm})
        self.line(f"{done:,} segments, turns and events done, {stats.waiting:,} wait")
        for purpose, usage in spent.items():
            tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
            self.line(f"  {purpose}: {usage.calls:,} calls, {tokens}")
        return None

    def verified(self, verified: Verified) -> None:
        if self.json:
            return self.record({"sound": verified.sound, **msgspec.structs.asdict(verified)})
        verdict = f"damaged, {len(verified.problems)} problems" if verified.problems else "sound"
        self.line(f"journal: {verdict}; {verified.entries:,} entries are as they were written")
        for problem in verified.problems:
            self.line(f"  {printable(problem)}")
        for checkpoint in verified.checkpoints:
            if checkpoint.problem is None:
                self.line(f"checkpoint {checkpoint.name}: sound, at entry {checkpoint.seq:,}")
            else:
                self.line(
                    f"checkpoint {checkpoint.name}: not usable, {printable(checkpoint.problem)}; "
                    "nothing is lost, the next opening replays the journal instead"
                )
        return None

    def _records(self, records: Iterable[Any]) -> None:
        for record in records:
            self.record(record)

    def _table(self, rows: Sequence[Sequence[str | Text]], columns: Sequence[str]) -> None:
        """Rows with aligned columns on a terminal; without a header and tab-separated in a pipe."""
        if not self.console.is_terminal:
            sys.stdout.writelines("\t".join(printable(str(cell)) for cell in row) + "\n" for row in rows)
            return
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in columns:
            numeric = name in ("id", "score")
            table.add_column(
                name,
                justify="right" if numeric else "left",
                no_wrap=name != "text",
                style=_STYLES.get(name, ""),
            )
        for row in rows:
            table.add_row(
                *(Text(printable(cell, _LONGEST)) if isinstance(cell, str) else cell for cell in row)
            )
        self.console.print(table)

    def fields(self, fields: dict[str, Any]) -> None:
        """Names and values, one a line."""
        for name, value in fields.items():
            if value is not None:
                text = printable(str(value))
                self.line(f"{name:<10}  {text}" if self.console.is_terminal else f"{name}\t{text}")


_STYLES = {"id": "cyan", "score": "green", "time": "dim", "speaker": "bold", "session": "dim"}


def _counts(done: Ingested) -> str:
    return f"{done.added:,} added, {done.known:,} known already, {done.skipped:,} skipped"


def _span(hit: Evidence) -> str:
    if hit.kind == "fact":
        return ", ".join(f"f{unit.id}" for unit in hit.facts)
    first, last = hit.span
    return str(first) if first == last else f"{first}-{last}"


def _speakers(hit: Evidence) -> str:
    """Who said it; of a segment, how many turns it has, and who said them if it was one."""
    if hit.kind in ("turn", "fact"):
        return hit.speaker or hit.role
    turns = f"{len(hit.turns)} turns"
    return f"{hit.speaker}, {turns}" if hit.speaker else turns


def _sum(hit: Evidence) -> str:
    """The score as the sum of its signals."""
    signs = {True: "+", False: "-"}
    parts = [f"{signs[part >= 0]} {name} {abs(part):.3f}" for name, part in (hit.signals or {}).items()]
    chosen = "" if hit.stages is None else f"; chosen by {', '.join(hit.stages) or 'none'}"
    return f"{hit.score:.3f} = " + " ".join(parts).removeprefix("+ ") + chosen


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _id(unit: int | None) -> str:
    return "" if unit is None else str(unit)
