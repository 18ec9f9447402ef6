"""What every journal must pass.

A journal's tests inherit `JournalContract` and say how one is opened; `check_against_a_list` drives the
same journal through random histories beside a plain list.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hmem_core.errors import Closed, Conflict, InvalidInput
from hmem_core.journal.base import Journal, Position, Verification
from hmem_core.journal.entries import Entry, Name, TurnAdded, TurnErased, TurnsForgotten

Open = Callable[[], Journal]


def turn(id: int, text: str = "", vector: bytes = bytes(16)) -> TurnAdded:
    return TurnAdded(
        recorded=1_700_000_000_000_000 + id,
        at=1_600_000_000_000_000,
        id=id,
        role=Name(0, "user"),
        text=text or f"turn {id}",
        vector=vector,
        height=1,
    )


def forgotten(*ids: int) -> TurnsForgotten:
    return TurnsForgotten(recorded=1, ids=ids)


def erased(id: int) -> TurnErased:
    return TurnErased(recorded=1, id=id, height=1)


class JournalContract(ABC):
    @pytest.fixture
    @abstractmethod
    def open(self) -> Open | Iterator[Open]:
        """Opens the same journal each time; everything that was opened is closed at the end."""

    @pytest.fixture
    def journal(self, open: Open) -> Journal:
        return open()

    def test_is_empty_at_first(self, journal: Journal) -> None:
        assert journal.position() == Position(0, 0)
        assert list(journal.read()) == []
        assert journal.fetch([]) == []
        assert journal.verify() == Verification(0, ())

    def test_appends_in_order(self, journal: Journal) -> None:
        assert journal.append(0, [turn(0), turn(1)]) == 2
        assert journal.append(2, [turn(2)]) == 3
        assert list(journal.read()) == [(1, turn(0)), (2, turn(1)), (3, turn(2))]
        assert list(journal.read(after=2)) == [(3, turn(2))]
        assert list(journal.read(after=3)) == list(journal.read(after=99)) == []
        assert journal.position() == Position(3, 0)

    def test_appends_nothing_where_expected(self, journal: Journal) -> None:
        assert journal.append(0, []) == 0
        with pytest.raises(Conflict):
            journal.append(1, [])

    @pytest.mark.parametrize("expected", [0, 1, 3])
    def test_refuses_a_writer_that_did_not_see_the_head(self, journal: Journal, expected: int) -> None:
        journal.append(0, [turn(0), turn(1)])
        with pytest.raises(Conflict) as conflict:
            journal.append(expected, [turn(2)])
        assert (conflict.value.expected, conflict.value.found) == (expected, 2)
        assert list(journal.read()) == [(1, turn(0)), (2, turn(1))]

    def test_fetches_in_the_order_given(self, journal: Journal) -> None:
        journal.append(0, [turn(n) for n in range(5)])
        assert journal.fetch([4, 1, 4]) == [(4, turn(3)), (1, turn(0)), (4, turn(3))]

    @pytest.mark.parametrize("seq", [-1, 0, 3, 1 << 40])
    def test_fetches_only_what_is_there(self, journal: Journal, seq: int) -> None:
        journal.append(0, [turn(0), turn(1)])
        with pytest.raises(InvalidInput, match=str(seq)):
            journal.fetch([1, seq])

    def test_rewrites_together_with_an_append(self, journal: Journal) -> None:
        journal.append(0, [turn(0, "a secret"), turn(1)])
        assert journal.append(2, [forgotten(0)], rewrite={1: erased(0)}) == 3
        assert list(journal.read()) == [(1, erased(0)), (2, turn(1)), (3, forgotten(0))]
        assert journal.position() == Position(3, 3)
        journal.append(3, [turn(2)])
        assert journal.position() == Position(4, 3)

    def test_rewrites_nothing_on_conflict(self, journal: Journal) -> None:
        journal.append(0, [turn(0), turn(1)])
        with pytest.raises(Conflict):
            journal.append(1, [forgotten(0)], rewrite={1: erased(0)})
        assert journal.fetch([1]) == [(1, turn(0))]
        assert journal.position() == Position(2, 0)

    @pytest.mark.parametrize("seq", [-1, 0, 2, 3])
    def test_rewrites_only_earlier_entries(self, journal: Journal, seq: int) -> None:
        journal.append(0, [turn(0)])
        with pytest.raises(InvalidInput, match=f"entry {seq}"):
            journal.append(1, [forgotten(0)], rewrite={seq: erased(0)})
        assert list(journal.read()) == [(1, turn(0))]

    def test_a_rewrite_needs_an_entry(self, journal: Journal) -> None:
        journal.append(0, [turn(0)])
        with pytest.raises(InvalidInput, match="rewrite"):
            journal.append(1, [], rewrite={1: erased(0)})
        assert list(journal.read()) == [(1, turn(0))]

    def test_scrubs_as_often_as_asked(self, journal: Journal) -> None:
        journal.scrub()
        journal.append(0, [turn(0), turn(1)])
        journal.append(2, [forgotten(0)], rewrite={1: erased(0)})
        journal.scrub()
        journal.scrub()
        assert list(journal.read()) == [(1, erased(0)), (2, turn(1)), (3, forgotten(0))]
        assert journal.position() == Position(3, 3)

    def test_holds_nothing_while_a_reader_rests(self, journal: Journal) -> None:
        journal.append(0, [turn(0), turn(1)])
        reader = journal.read()
        assert next(reader) == (1, turn(0))
        journal.append(2, [forgotten(0)], rewrite={1: erased(0)})
        journal.scrub()
        assert list(reader) == [(2, turn(1))]

    def test_keeps_every_text(self, journal: Journal) -> None:
        texts = ["", "\0", "\ufeff", "emoji 👩‍👩‍👧", "日本語", "\u202eright to left", "e\u0301", "\U0010ffff"]
        entries = [turn(n, text) for n, text in enumerate(texts, 1)]
        journal.append(0, entries)
        assert [entry for _, entry in journal.read()] == entries

    def test_keeps_large_entries_and_many(self, journal: Journal) -> None:
        entries = [turn(n, "x" * 2_500_000) for n in range(4)] + [turn(n) for n in range(5000)]
        journal.append(0, entries)
        assert [entry for _, entry in journal.read()] == entries
        assert journal.nbytes() > 10_000_000
        assert journal.verify() == Verification(len(entries), ())

    def test_what_is_read_is_a_copy(self, journal: Journal) -> None:
        original = TurnAdded(
            recorded=1,
            at=1,
            id=0,
            role=Name(0, "user"),
            text="",
            vector=b"",
            height=0,
            metadata={"tags": ["a"]},
        )
        journal.append(0, [original])
        for entry in (original, journal.fetch([1])[0].entry):
            assert isinstance(entry, TurnAdded)
            entry.metadata["tags"].append("b")
        (again,) = journal.read()
        assert isinstance(again.entry, TurnAdded)
        assert again.entry.metadata == {"tags": ["a"]}

    def test_says_that_it_is_closed(self, journal: Journal) -> None:
        journal.append(0, [turn(0), turn(1)])
        reader = journal.read()
        next(reader)
        journal.close()
        journal.close()
        for use in (
            journal.position,
            lambda: next(journal.read()),
            lambda: journal.fetch([1]),
            lambda: journal.append(1, [turn(1)]),
            journal.scrub,
            journal.verify,
            journal.nbytes,
        ):
            with pytest.raises(Closed):
                use()

    def test_many_threads_append(self, journal: Journal) -> None:
        def write(name: int) -> None:
            for number in range(20):
                head = journal.position().head
                while True:
                    try:
                        journal.append(head, [turn(number, f"{name}")])
                        break
                    except Conflict as conflict:
                        head = conflict.found

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = [entry for _, entry in journal.read()]
        for name in range(4):
            assert [entry for entry in entries if entry.text == f"{name}"] == [
                turn(number, f"{name}") for number in range(20)
            ]
        assert journal.position() == Position(80, 0)


class PersistentContract(JournalContract):
    """For journals that outlive the object: what one object does, another sees."""

    def test_stays(self, open: Open) -> None:
        first = open()
        first.append(0, [turn(0), turn(1)])
        first.append(2, [forgotten(0)], rewrite={1: erased(0)})
        before = list(first.read())
        first.close()
        again = open()
        assert list(again.read()) == before
        assert again.position() == Position(3, 3)

    def test_two_objects_see_each_other(self, open: Open) -> None:
        one, other = open(), open()
        one.append(0, [turn(0)])
        assert other.position() == Position(1, 0)
        other.append(1, [turn(1)])
        with pytest.raises(Conflict):
            one.append(1, [turn(2)])
        assert list(one.read()) == list(other.read()) == [(1, turn(0)), (2, turn(1))]
        one.close()
        assert other.append(2, [turn(2)]) == 3


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=3,
)
names = st.builds(Name, st.integers(0, 1000), texts)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        TurnAdded,
        recorded=st.integers(-(1 << 62), 1 << 62),
        at=st.integers(-(1 << 62), 1 << 62),
        id=st.integers(0, 1 << 40),
        height=st.integers(0, 1 << 30),
        role=names,
        text=texts,
        speaker=st.none() | names,
        metadata=st.dictionaries(texts, values, max_size=2),
        vector=st.sampled_from([b"", bytes(range(100)), bytes(5000)]),
    ),
    st.builds(erased, st.integers(0, 1 << 40)),
    st.lists(st.integers(0, 1 << 40)).map(lambda ids: forgotten(*ids)),
)


class JournalMachine(RuleBasedStateMachine):
    """A journal beside a plain list of the same entries."""

    def __init__(self, fresh: Callable[[], Open]) -> None:
        super().__init__()
        self.open = fresh()
        self.list: list[Entry] = []
        self.rewritten = 0

    @initialize()
    def begin(self) -> None:
        self.journal = self.open()

    @rule(new=st.lists(entries, max_size=3))
    def append(self, new: list[Entry]) -> None:
        assert self.journal.append(len(self.list), new) == len(self.list) + len(new)
        self.list += new

    @rule(new=st.lists(entries, max_size=2), off=st.integers(-3, 3).filter(bool))
    def append_where_the_head_is_not(self, new: list[Entry], off: int) -> None:
        with pytest.raises(Conflict):
            self.journal.append(len(self.list) + off, new)

    @precondition(lambda self: self.list)
    @rule(data=st.data(), new=st.lists(entries, min_size=1, max_size=2))
    def rewrite(self, data: st.DataObject, new: list[Entry]) -> None:
        rewrite = data.draw(st.dictionaries(st.integers(1, len(self.list)), entries, max_size=3))
        self.journal.append(len(self.list), new, rewrite=rewrite)
        for seq, entry in rewrite.items():
            self.list[seq - 1] = entry
        self.list += new
        if rewrite:
            self.rewritten = len(self.list)

    @rule(after=st.integers(0, 50))
    def read(self, after: int) -> None:
        assert list(self.journal.read(after)) == list(enumerate(self.list[after:], after + 1))

    @precondition(lambda self: self.list)
    @rule(data=st.data())
    def fetch(self, data: st.DataObject) -> None:
        seqs = data.draw(st.lists(st.integers(1, len(self.list)), max_size=5))
        assert self.journal.fetch(seqs) == [(seq, self.list[seq - 1]) for seq in seqs]

    @rule()
    def scrub(self) -> None:
        self.journal.scrub()

    @rule()
    def verify(self) -> None:
        assert self.journal.verify() == (len(self.list), ())

    @rule()
    def reopen(self) -> None:
        self.journal = self.open()

    @invariant()
    def position_is_that_of_the_list(self) -> None:
        if hasattr(self, "journal"):
            assert self.journal.position() == (len(self.list), self.rewritten)


def check_against_a_list(fresh: Callable[[], Open], profile: settings) -> None:
    """Drive journals beside lists. `fresh` makes a new journal and says how it is opened, any number of
    times; where that closes the one before, closing is tested too."""
    run_state_machine_as_test(lambda: JournalMachine(fresh), settings=profile)
