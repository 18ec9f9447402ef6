"""What a memory is asked: turns by id and by filter, search, context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from hmem_core.effects import Priority, Program
from hmem_core.errors import InvalidInput, LLMMissing, TurnForgotten, TurnNotFound
from hmem_core.methods import program
from hmem_core.options import FactOptions, GuidedOptions, ReadingOptions
from hmem_core.records import Context, Evidence, Guided, Turn
from hmem_core.retrieval import context as packing
from hmem_core.retrieval import filters, guiding, reading
from hmem_core.retrieval.factsearch import FactReader
from hmem_core.retrieval.filters import Where
from hmem_core.retrieval.search import Reader, Request, check, search
from hmem_core.retrieval.tokens import estimate_tokens
from hmem_core.retrieval.views import Ranker
from hmem_core.state import View
from hmem_core.store import Store
from hmem_core.times import TimeLike

__all__ = ["Between", "Reads"]

if TYPE_CHECKING:
    from hmem_core.embedding.base import Reranker
    from hmem_core.llm.threads import ThreadDriver

T = TypeVar("T")

Between = tuple[TimeLike | None, TimeLike | None]


class Reads(ABC):
    """The reading half of `Memory`."""

    _store: Store
    _tz: Any
    _reading_options: ReadingOptions
    _driver: ThreadDriver | None
    _late: bool
    _fact_options: FactOptions
    _reranker: Reranker | None

    @abstractmethod
    def _run(self, program: Program[T], priority: Priority) -> T:
        """Run a program to its end."""

    def get(self, id: int | None = None, *, key: str | None = None) -> Turn:
        """One turn, by its id or by its key.

        Raises:
            TurnNotFound: it was never stored.
            TurnForgotten: it was stored and forgotten.
            InvalidInput: neither or both given, or several turns have the key.
        """
        if (id is None) == (key is None):
            raise InvalidInput("give either an id or a key")
        if id is None:
            return self._by_key(str(key))
        view = self._store.view()
        turn = reading.turn(view, reading.row(view, id))
        if turn is None:  # in this moment
            raise TurnForgotten(f"turn {id} was forgotten")
        return turn

    def _by_key(self, key: str) -> Turn:
        with self._store.reading() as state:
            rows = state.turns.index.rows(key)
        if not rows:
            raise TurnNotFound(f"no turn has the key {key!r}; it was never stored, or was forgotten")
        if len(rows) > 1:
            ids = ", ".join(map(str, rows))
            raise InvalidInput(f"the turns {ids} were added as a list under the key {key!r}; get them by id")
        return self.get(rows[0])

    def turns(
        self,
        *,
        session: str | None = None,
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
    ) -> list[Turn]:
        """All turns that pass the filters (see `search`), in the order of their times, then of their ids."""
        view = self._store.view()
        conditions = {**(where or {}), **({"session": session} if session is not None else {})}
        allowed = filters.mask(view, self._tz, between=between, where=conditions or None, as_of=as_of)
        rows = np.flatnonzero(allowed)
        rows = rows[np.argsort(view.narrow["at"][rows], kind="stable")]
        return [turn for row in rows if (turn := reading.turn(view, int(row))) is not None]

    @program(Priority.SEARCH)
    def search(
        self,
        query: str,
        k: int | Literal["auto"] = 8,
        *,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        now: TimeLike | None = None,
        explain: bool = False,
        reading: ReadingOptions | None = None,
        guided: bool | GuidedOptions = False,
    ) -> Program[list[Evidence]]:
        """The turns most worth reading for `query`, best first; an empty list if none passes the filters.

        Args:
            query: a question or statement, of any length.
            k: how many turns at most; ``"auto"``: those that stand out from the rest, 16 at most
                (`ReadingOptions.enough`).
            view: how turns are ranked: ``"fused"``, all signals together; ``"dense"``, the cosine of
                embeddings alone; ``"lexical"``, BM25 alone; ``"time"``, the segment tree alone, whose
                evidence may be segments of several turns; ``"events"``, embeddings and words, and the events
                of the turns. ``"facts"`` finds facts instead (see `memory.facts`): those that hold, with what
                contradicts them, and the past where the query asks for it; `k` counts facts then, `between`
                is about when they hold, and `where` about the turns that tell them.
            between: only turns whose own time lies in [start, end); None leaves a side open; an end
                given as a bare date includes that day.
            where: only turns with these values in ``session``, ``speaker``, ``role``, ``key`` or a metadata
                field; a list means any of its values, a dict holds operators such as ``{"$gte": 3}``.
            as_of: only what the memory knew at that sequence number (int) or time. Forgotten turns stay gone.
            now: when this is asked, which is what "last week" in the query counts from; default: the clock.
            explain: fill `Evidence.signals`, and in a guided search `Evidence.stages`.
            reading: how scores come about, instead of what the memory was opened with.
            guided: let the language model choose among what is found, and look into events for more; see
                `guided`. It may return fewer than `k`.

        Raises:
            InvalidInput: an empty query, or an argument without meaning.
            EncoderError: the encoder or the reranker failed.
            LLMMissing: `guided`, and the memory has no language model.
        """
        request = Request(
            query=query,
            k=k,
            view=view,
            between=between,
            where=where,
            as_of=as_of,
            now=now,
            explain=explain,
            reading=reading,
        )
        return (yield from self._search(request, guided))

    @program(Priority.SEARCH)
    def guided(
        self,
        query: str,
        k: int | Literal["auto"] = 8,
        *,
        options: GuidedOptions | None = None,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        now: TimeLike | None = None,
        explain: bool = False,
        reading: ReadingOptions | None = None,
    ) -> Program[Guided]:
        """What ``search(query, guided=True)`` returns, with an account of how (HiGMem, arXiv 2604.18349).

        The best turns and the best events are found as in any search. The language model is asked which turns
        of these events are worth reading, all at once, and then which of all these candidates help. What it
        keeps is returned, best first; if it keeps nothing, the best turns.

        Filters apply before everything: the model is shown nothing that they exclude. A question that fails
        is passed over, with a warning to the logger ``hmem.llm``; if the model is down, the result is that of
        a search without it.

        Args:
            options: how much is asked.
            view: how turns are ranked; any but ``"time"`` and ``"facts"``.
            query, k, between, where, as_of, now, explain, reading: as in `search`.

        Raises:
            As `search`.
        """
        request = Request(
            query=query,
            k=k,
            view=view,
            between=between,
            where=where,
            as_of=as_of,
            now=now,
            explain=explain,
            reading=reading,
        )
        return (yield from self._guided(request, options or GuidedOptions()))

    def _search(self, request: Request, guided: bool | GuidedOptions) -> Program[list[Evidence]]:
        if guided is not False:
            options = GuidedOptions() if guided is True else guided
            return list((yield from self._guided(request, options)).evidence)
        check(request)
        self._store.check_open()
        return (yield from search(request, self._reader()))

    def _guided(self, request: Request, options: GuidedOptions) -> Program[Guided]:
        if not isinstance(options, GuidedOptions):
            raise InvalidInput(f"guided={options!r}: give True, False or GuidedOptions")
        guiding.check_guided(request)
        self._store.check_open()
        if self._driver is None:
            raise LLMMissing("guided search asks a language model; open the memory with llm=LLM(...)")
        return guiding.search(request, self._reader(), options)

    def _reader(self) -> Reader:
        facts = FactReader(self._store.reading, self._fact_options, self._store.clock)
        ranks, clock = self._reranker is not None, self._store.clock
        return Reader(self._read, self._tz, self._reading_options, self._late, ranks, clock, facts)

    def _read(self, ranker: Ranker) -> View:
        return self._store.view(tree=ranker.tree, events=ranker.events)

    @program(Priority.SEARCH)
    def context(
        self,
        query: str,
        max_tokens: int = 1000,
        *,
        count: packing.Counter = estimate_tokens,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        now: TimeLike | None = None,
        guided: bool | GuidedOptions = False,
    ) -> Program[Context]:
        """Evidence for `query`, packed for a prompt: chronological, dated, with ids, within a budget.

        Beside it come turns that make others understandable, such as the question that one answers.

        Args:
            max_tokens: ``count(context.text)`` never exceeds it.
            count: counts tokens; the default estimates, leaning high, for any model.
            view, between, where, as_of, now, guided: as in `search`.

        Raises:
            As `search`.
        """
        packing.check_budget(max_tokens)
        # No line takes fewer than a dozen tokens, so more evidence than this cannot fit.
        request = Request(
            query=query,
            k=min(max(8, max_tokens // 12), 512),
            view=view,
            between=between,
            where=where,
            as_of=as_of,
            now=now,
        )
        found = yield from self._search(request, guided)
        seen = self._store.view()
        allowed = filters.mask(seen, self._tz, between=between, where=where, as_of=as_of)
        return packing.pack(found, max_tokens, count, self._tz, reading.lead_ins(seen, found, allowed))
