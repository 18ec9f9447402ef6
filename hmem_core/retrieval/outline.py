"""The segment tree as a user walks it: `memory.segments`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_core.errors import InvalidInput, SegmentNotFound
from hmem_core.records import Segment
from hmem_core.retrieval import reading
from hmem_core.segments.annotation import representatives, shortened
from hmem_core.segments.scoring import covered
from hmem_core.segments.walking import Children, above, least_over
from hmem_core.state import NO_TREE, View
from hmem_core.times import datetime_of

__all__ = ["Segments"]

TURNS = 3
"""Turns that a segment's text quotes unless more are asked for."""
LONGEST = 160
"""Characters of a turn in a segment's text."""


class Segments:
    """The segments of a memory, from the root, which holds all turns, down to the single turns.

    Segments whose turns were all forgotten do not show. Each call reads the memory as it is then.
    """

    def __init__(self, read: Callable[[], View]) -> None:
        self._read = read
        self._children = Children(NO_TREE)

    def root(self) -> Segment | None:
        """The segment of all turns; None if there is no turn."""
        snapshot = self._snapshot()
        root = snapshot.root()
        return None if root is None else snapshot.segment(root)

    def get(self, id: int) -> Segment:
        """The segment of that number.

        Raises:
            SegmentNotFound: there is none, or its turns were forgotten.
            InvalidInput: `id` is not a whole number.
        """
        snapshot = self._snapshot()
        return snapshot.segment(snapshot.node(id))

    def children(self, id: int) -> list[Segment]:
        """The segments right below that one, in the order of their turns.

        Raises:
            As `get`.
        """
        snapshot = self._snapshot()
        return [snapshot.segment(child) for child in snapshot.children(snapshot.node(id))]

    def walk(
        self,
        id: int | None = None,
        *,
        depth: int | None = None,
        width: int | None = None,
        min_size: int = 2,
        turns: int = TURNS,
    ) -> Iterator[Segment]:
        """A segment and those below it, each followed by its children, in the order of their turns.

        Made one by one as they are asked for, all from the memory as it was when this was called; only what
        is forgotten meanwhile is gone from the texts.

        Args:
            id: the segment to begin with; the root unless given. It always shows.
            depth: how far down; 0 for that segment alone, None for all.
            width: of each segment's children, only so many: the largest.
            min_size: leave out segments of fewer turns; 1 shows the single turns too.
            turns: how many turns a text quotes at most; 0 leaves the texts empty.

        Raises:
            As `get`.
        """
        _whole("depth", depth, 0)
        _whole("width", width, 0)
        _whole("min_size", min_size, 1)
        _whole("turns", turns, 0)
        snapshot = self._snapshot()
        start = snapshot.root() if id is None else snapshot.node(id)
        return snapshot.walk(start, depth, width, min_size, turns)

    def by_span(self, first: int, last: int) -> Segment:
        """The smallest segment that holds both turns, and so all between them.

        Raises:
            TurnNotFound, TurnForgotten: one was never stored, or is gone.
            InvalidInput: `first` comes after `last`, or one is not a turn id.
        """
        snapshot = self._snapshot()
        ends = [reading.row(snapshot.view, turn) for turn in (first, last)]
        if ends[0] > ends[1]:
            raise InvalidInput(f"first={first!r} comes after last={last!r}; give the lower id first")
        return snapshot.segment(least_over(snapshot.tree, *ends))

    def of_turn(self, id: int) -> list[Segment]:
        """All segments that hold the turn, smallest first: the turn alone, what is around it, …, the root.

        Raises:
            TurnNotFound, TurnForgotten: it was never stored, or is gone.
            InvalidInput: `id` is not a turn id.
        """
        snapshot = self._snapshot()
        leaf = int(snapshot.tree.leaf[reading.row(snapshot.view, id)])
        return [snapshot.segment(node) for node in above(snapshot.tree, leaf)]

    def text(self, id: int, turns: int = TURNS) -> str:
        """`Segment.text` with another number of turns.

        Raises:
            As `get`.
        """
        _whole("turns", turns, 0)
        snapshot = self._snapshot()
        return snapshot.text(snapshot.node(id), turns)

    def _snapshot(self) -> _Snapshot:
        view = self._read()
        children = self._children  # another thread may set it for another tree in this moment
        if children.tree is not view.tree:
            self._children = children = Children(view.tree)
        return _Snapshot(view, children)


class _Snapshot:
    """The tree of one view, and what is true of its turns."""

    def __init__(self, view: View, children: Children) -> None:
        self.view = view
        self.tree = view.tree
        self._children = children
        # Copied, since forgetting blanks them; times first, as a row is dead before its time is gone.
        self._at = view.narrow["at"].copy()
        self._live = view.narrow["live"].copy()
        self._size = covered(view.tree, self._live)

    def root(self) -> int | None:
        """The root's node, if it shows."""
        return self._children.root if self._live.any() else None

    def node(self, id: Any) -> int:
        """`id`, if it is the number of a node that shows.

        Raises:
            SegmentNotFound, InvalidInput
        """
        _whole("id", id, None)
        if not 0 <= id < self._size.size:
            last = self._size.size - 1
            given = f"their numbers are 0 to {last}" if last >= 0 else "there are no segments yet"
            raise SegmentNotFound(f"there is no segment {id}; {given}")
        if not self._size[id]:
            raise SegmentNotFound(f"all turns of segment {id} were forgotten")
        return int(id)

    def children(self, node: int) -> list[int]:
        """The children that show."""
        children = self._children.of(node)
        shown: list[int] = children[self._size[children] > 0].tolist()
        return shown

    def segment(self, node: int, turns: int = TURNS) -> Segment:
        tree = self.tree
        at = self._at[self._rows(node)]
        parent = int(tree.parent[node])
        return Segment(
            id=node,
            span=(int(tree.start[node]), int(tree.end[node])),
            height=int(tree.height[node]),
            size=at.size,
            start=datetime_of(at.min()),
            end=datetime_of(at.max()),
            parent=None if parent < 0 else parent,
            children=tuple(self.children(node)),
            text=self.text(node, turns),
        )

    def text(self, node: int, turns: int) -> str:
        rows = representatives(self.view.vectors, self.view.narrow["length"], self._rows(node), turns)
        rows = rows[np.argsort(self._at[rows], kind="stable")]
        quoted = [found for row in rows.tolist() if (found := reading.turn(self.view, row)) is not None]
        return "\n".join(f"{turn.speaker or turn.role}: {shortened(turn.text, LONGEST)}" for turn in quoted)

    def walk(
        self, start: int | None, depth: int | None, width: int | None, min_size: int, turns: int
    ) -> Iterator[Segment]:
        waiting = [] if start is None else [(start, 0)]
        while waiting:
            node, level = waiting.pop()
            yield self.segment(node, turns)
            if level != depth:
                below = self._largest(self.children(node), width, min_size)
                waiting += [(child, level + 1) for child in reversed(below)]

    def _largest(self, nodes: list[int], count: int | None, min_size: int) -> list[int]:
        """In their order, the largest `count` of those that have `min_size` turns; of equals the earlier."""
        nodes = [node for node in nodes if self._size[node] >= min_size]
        if count is None or len(nodes) <= count:
            return nodes
        places = np.argsort(-self._size[nodes], kind="stable")[:count]
        return [nodes[place] for place in sorted(places.tolist())]

    def _rows(self, node: int) -> npt.NDArray[np.int64]:
        """Turns of the node that are not forgotten."""
        first, last = int(self.tree.start[node]), int(self.tree.end[node])
        return first + np.flatnonzero(self._live[first : last + 1])


def _whole(name: str, value: Any, least: int | None) -> None:
    """Refuse what is not a whole number, or less than `least`; None is fine where a limit may be absent.

    Raises:
        InvalidInput
    """
    if value is None and name in ("depth", "width"):
        return
    number = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not number or (least is not None and value < least):
        limit = "" if least is None else f" from {least}"
        raise InvalidInput(f"{name}={value!r} must be a whole number{limit}")
