"""Tables of names: sessions, speakers, roles."""

from __future__ import annotations

from hmem_core.errors import Damaged
from hmem_core.journal.entries import Name

__all__ = ["NamePlan", "Names"]


class Names:
    """Names and their codes, counted by use.

    A code is decided once, by the writer of the entry that first uses the name. When the last turn with
    a name is forgotten the name is blanked, and the other codes do not move. Blanks at the end are cut off:
    the table depends only on the turns that are left, not on those that are gone.
    """

    __slots__ = ("_codes", "_texts", "_uses")

    def __init__(self, texts: list[str | None] | None = None, uses: list[int] | None = None) -> None:
        self._texts: list[str | None] = list(texts or ())
        self._uses: list[int] = list(uses or ())
        self._codes = {text: code for code, text in enumerate(self._texts) if text is not None}

    def __len__(self) -> int:
        """Number of codes, blank ones included."""
        return len(self._texts)

    def in_use(self) -> int:
        """Number of names that some turn has."""
        return len(self._codes)

    def find(self, text: str) -> int | None:
        """Code of a name, or None."""
        return self._codes.get(text)

    def text(self, code: int) -> str | None:
        """Name of a code; None for the code -1 and for blanked names."""
        return self._texts[code] if 0 <= code < len(self._texts) else None

    def use(self, name: Name) -> int:
        """Count one more use of `name`, entering it if it is new; returns its code."""
        while len(self._texts) <= name.code:
            self._texts.append(None)
            self._uses.append(0)
        present = self._texts[name.code]
        if present is None:
            self._texts[name.code] = name.text
            self._codes[name.text] = name.code
        elif present != name.text:
            raise Damaged(f"code {name.code} stands for both {present!r} and {name.text!r}")
        self._uses[name.code] += 1
        return name.code

    def release(self, code: int) -> None:
        """Count one use less; the last one blanks the name."""
        if code < 0:
            return
        self._uses[code] -= 1
        if self._uses[code] == 0:
            text = self._texts[code]
            self._texts[code] = None
            if text is not None:
                del self._codes[text]
            while self._texts and self._texts[-1] is None:
                self._texts.pop()
                self._uses.pop()

    def table(self) -> tuple[list[str | None], list[int]]:
        """Copies of the names and of their use counts, by code."""
        return list(self._texts), list(self._uses)


class NamePlan:
    """Codes for names in entries that are being planned; changes nothing in the table."""

    __slots__ = ("_names", "_new")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._new: dict[str, int] = {}

    def __call__(self, text: str) -> Name:
        code = self._names.find(text)
        if code is None:
            code = self._new.setdefault(text, len(self._names) + len(self._new))
        return Name(code, text)
