"""`Facts`: the fact view of a memory, as a user holds it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from hmem_core import factchanges, times
from hmem_core.effects import Priority, Program
from hmem_core.errors import InvalidInput
from hmem_core.factdrafts import name, read_fact, read_facts
from hmem_core.facts import questions
from hmem_core.localised import Localisation
from hmem_core.messages import clean
from hmem_core.methods import program
from hmem_core.options import FactOptions
from hmem_core.records import FactDraft, FactSlots, Forgotten, Rewrite, Unit, Version, Why
from hmem_core.retrieval import units as reading
from hmem_core.retrieval.locating import Wanted, locate
from hmem_core.store import Store
from hmem_core.times import TimeLike

__all__ = ["Facts"]

T = TypeVar("T")

UnitLike = int | Unit
Include = Literal["active", "history", "all"]


class Facts:
    """What a memory holds to be true, what that rests on, and how it came to be. As `Memory.facts`.

    A fact is told as a subject, a relation and an object, and becomes a `Unit`. A relation has one value at a
    time, for one subject and the same contexts, unless `policy` says otherwise:

    - a value with a later ``valid_from`` supersedes the one before it, whose ``valid_to`` becomes that time;
    - one with an earlier ``valid_from`` is entered as history;
    - one that nothing makes newer is pending, and the rewrite reports a contradiction;
    - the same value is told again: its confidence rises, and nothing is stored twice.

    What rests on a unit that is active no longer is outdated, unless something else supports it.
    """

    def __init__(
        self,
        store: Store,
        tz: dt.tzinfo,
        options: FactOptions,
        run: Callable[[Program[Any], Priority], Any],
        forgot: Callable[[], None],
    ) -> None:
        self._store = store
        self._tz = tz
        self._options = options
        self._runner = run
        self._forgot = forgot

    def _run(self, program: Program[T], priority: Priority) -> T:
        result: T = self._runner(program, priority)
        return result

    # -- telling -------------------------------------------------------------------------------------

    @program(Priority.WRITE)
    def add(
        self,
        subject: str,
        relation: str,
        object: str,
        *,
        category: str | None = None,
        context: str | Iterable[str] | None = None,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        confidence: float = 1.0,
        because: Any = (),
        source: Any = (),
        key: str | None = None,
        explain: bool = False,
    ) -> Program[Rewrite]:
        """Tell a fact, and change what it changes.

        Args:
            subject, relation, object: as in ``"Ann", "lives in", "Porto"``. Names are the same if they differ
                only in case, width or spaces, or by an `alias`.
            category: the kind of fact, such as ``"residence"``.
            context: the condition under which it holds, or several. Facts with different contexts do not
                contradict one another.
            valid_from: when it began to be true. Only this makes a fact newer than another: with None it is
                not known, and before any time that is.
            valid_to: when it was true no longer, itself not included.
            confidence: from 0 to 1. Independent tellings of one fact add up to 1 - Π(1 - confidence).
            because: the units on all of which this telling rests. It counts only as long as all of them are
                active, whatever its sources; told again without, or because of others, the fact has
                independent support.
            source: the turns that say so.
            key: makes a retry harmless: what was added under it is not added again.
            explain: fill `Rewrite.explain` with where the rewrite looked.

        Raises:
            InvalidInput: an argument has no meaning.
            UnitNotFound, UnitForgotten: of `because`.
            TurnNotFound, TurnForgotten: of `source`.
            StorageError: the disk refused.
            In each case nothing was stored.
        """
        fact = read_fact(
            subject,
            relation,
            object,
            tz=self._tz,
            category=category,
            context=context,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            because=because,
            source=source,
        )
        done = yield from factchanges.add_facts(
            self._store, [(None, fact)], self._options, _key(key), explain
        )
        return done[0]

    @program(Priority.WRITE)
    def add_many(
        self, facts: Iterable[FactDraft | Mapping[str, Any]], *, key: str | None = None
    ) -> Program[list[Rewrite]]:
        """Tell several facts, one after the other, all or none.

        What is told of one subject, relation and contexts with the same valid times but different objects is
        all meant to be true: the relation has many values from then on, unless `policy` has said otherwise.

        Args:
            facts: dicts with the arguments of `add`, or `FactDraft`s, of which one may be `because` of
                others before it.
            key: as in `add`.

        Raises:
            As `add`.
        """
        read = read_facts(facts, self._tz)
        return (yield from factchanges.add_facts(self._store, read, self._options, _key(key)))

    @program(Priority.WRITE)
    def retract(self, unit: UnitLike, reason: str | None = None) -> Program[Rewrite]:
        """Withdraw all that told a unit, as if it had been an error. It stays in the history.

        Units that it superseded hold again; what rests on it falls.

        Raises:
            UnitNotFound, UnitForgotten: there is no such unit.
            InvalidInput: it is retracted already.
        """
        if reason is not None and not isinstance(reason, str):
            raise InvalidInput(f"reason={reason!r}: give a text, or None")
        return (yield from factchanges.retract(self._store, unit, reason, self._options))

    @program(Priority.WRITE)
    def undo(self, rewrite: int | Rewrite) -> Program[Rewrite]:
        """Take a rewrite back, whatever came after it. An undo is a rewrite too, and can be undone.

        Raises:
            RewriteNotFound: there is no such rewrite, or what it did is forgotten.
            InvalidInput: it is taken back already, or set a policy or an alias.
        """
        return (yield from factchanges.undo(self._store, rewrite, self._options))

    @program(Priority.WRITE)
    def policy(self, relation: str, values: Literal["one", "many"]) -> Program[Rewrite]:
        """Say whether a relation has one value at a time or several; what is there is judged anew.

        Raises:
            InvalidInput: an argument has no meaning.
        """
        return (
            yield from factchanges.set_policy(self._store, name(relation, "relation"), values, self._options)
        )

    @program(Priority.WRITE)
    def alias(self, alias: str, of: str) -> Program[Rewrite]:
        """From here on the first name means what the second one means, in what is there as well.

        Raises:
            InvalidInput: an argument has no meaning.
        """
        given = name(alias, "alias"), name(of, "of")
        return (yield from factchanges.name_alias(self._store, *given, self._options))

    def forget(self, units: UnitLike | Iterable[UnitLike]) -> Forgotten:
        """Forget units for good: what they say leaves every file of the memory, but not the turns that say
        it. `Memory.forget` forgets turns, and the facts that nothing else told.

        Returns:
            The numbers of the units, as ids.

        Raises:
            UnitNotFound, UnitForgotten: one of them is not there; nothing was forgotten.
            StorageError: as `Memory.forget`.
        """
        forgotten, seq = factchanges.forget_facts(self._store, units, self._options)
        self._forgot()
        return Forgotten(ids=forgotten, seq=seq)

    # -- asking --------------------------------------------------------------------------------------

    def find(
        self,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
        *,
        category: str | None = None,
        context: str | None = None,
        as_of: int | TimeLike | None = None,
        valid_at: TimeLike | None = None,
        include: Include = "active",
        limit: int | None = None,
    ) -> list[Unit]:
        """The units with these slots, in the order of their valid times.

        Args:
            subject, relation, object, category, context: None for any.
            as_of: as the memory knew them at that sequence number (int) or time of writing.
            valid_at: only those that are true at that time; superseded ones may be.
            include: ``"active"``; ``"history"``, superseded ones too; ``"all"``, also those that are
                pending, outdated or retracted.
            limit: so many at most, the latest ones.

        Raises:
            InvalidInput: an argument has no meaning.
        """
        slots = reading.Slots(subject, relation, object, category, context)
        past = reading.moment(as_of, self._tz)
        at = None if valid_at is None else times.micros(valid_at, self._tz, "valid_at")
        with self._store.reading() as state:
            return reading.find(state.facts, slots, past, at, include, limit)

    @program(Priority.SEARCH)
    def locate(
        self,
        subject: str | None = None,
        relation: str | None = None,
        object: str | None = None,
        *,
        category: str | None = None,
        context: str | Iterable[str] | None = None,
        at: TimeLike | None = None,
    ) -> Program[Localisation]:
        """The chains of active units that fit these slots best, with the parts of their scores.

        Unlike `find`, names need not be the same: those that are alike score less, by the cosine of their
        vectors. Only the MicroGraphs of the subject and the category are looked into, though, so one of these
        must be a name, or an alias, that the memory knows.

        Args:
            subject, relation, object, category, context: None for what is not known.
            at: the time in question; now unless given.

        Raises:
            InvalidInput: an argument has no meaning, or all are None.
        """
        slots = {"subject": subject, "relation": relation, "object": object, "category": category}
        given = {slot: None if text is None else name(text, slot) for slot, text in slots.items()}
        several = (context,) if isinstance(context, str) else context or ()
        contexts = tuple(dict.fromkeys(name(one, "context") for one in several))
        if not contexts and not any(given.values()):
            raise InvalidInput("nothing is given to look for; give a subject, or another slot")
        now = self._store.clock() if at is None else times.micros(at, self._tz, "at")
        wanted = Wanted(**given, contexts=contexts)
        return (yield from locate(self._store.reading, wanted, now, self._options))

    @program(Priority.SEARCH)
    def parse(self, question: str) -> Program[list[FactSlots]]:
        """Let the language model say which facts a question asks for: the slots that it names, for `find`.

        Raises:
            InvalidInput: the question is empty.
            LLMError: there is no model, or it gave no reply that can be used.
        """
        if not isinstance(question, str) or not question.strip():
            raise InvalidInput(f"question={question!r}: give a text that is not empty")
        return (yield from questions.parse(clean(question), times.datetime_of(self._store.clock())))

    def about(self, subject: str, *, include: Include = "active") -> list[Unit]:
        """The units of a subject: `find` with that alone."""
        return self.find(name(subject, "subject"), include=include)

    def get(self, unit: UnitLike) -> Unit:
        """A unit as it is now, whatever its status.

        Raises:
            UnitNotFound, UnitForgotten: there is no such unit.
        """
        with self._store.reading() as state:
            return reading.unit(state.facts, reading.number(state.facts, unit))

    def history(self, unit: UnitLike) -> list[Version]:
        """What a unit was from its first day on, and why it changed.

        Raises:
            UnitNotFound, UnitForgotten: there is no such unit.
        """
        with self._store.reading() as state:
            return reading.history(state.facts, reading.number(state.facts, unit))

    def why(self, unit: UnitLike, *, depth: int = 16) -> Why:
        """What told a unit, and what that rests on, down to the turns.

        Args:
            depth: how far down supports are followed.

        Raises:
            UnitNotFound, UnitForgotten: there is no such unit.
            InvalidInput: `depth` is not from 0 to 100.
        """
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= 100:
            raise InvalidInput(f"depth={depth!r}: give a whole number from 0 to 100")
        view = self._store.view()
        with self._store.reading() as state:
            return reading.why(state, view, reading.number(state.facts, unit), depth)

    def rewrite(self, seq: int) -> Rewrite:
        """What an earlier rewrite did.

        Raises:
            RewriteNotFound: there is none of that number, or it changed nothing that is not forgotten.
        """
        with self._store.reading() as state:
            return reading.earlier(state.facts, seq)


def _key(key: Any) -> str | None:
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidInput(f"key={key!r}: give a text that is not empty, or None")
    return key
