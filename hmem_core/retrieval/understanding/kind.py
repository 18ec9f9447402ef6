"""What kind of answer a question wants. Light rules: closed classes of question words, no model."""

from __future__ import annotations

import re
from typing import Literal

from hmem_core.retrieval.understanding.words import LIMIT, UNSPACED, Word, split

__all__ = ["Kind", "kind"]

Kind = Literal["time", "count", "yes_no", "list", "person", "place", "reason", "other"]

_TIME_NOUN = r"(?:exact |specific )?(?:time|date|day|year|month|week|weekday|season|hour|decade)s?"
_PLACE_NOUN = r"(?:city|country|place|town|state|location|village|street|restaurant|hotel|region|continent)"
_WHO_NOUN = r"(?:person|people|friend|relative|colleague|team member|man|woman)"
_WHAT = r"(?:what|which)"
_RULES: tuple[tuple[Kind, str], ...] = (
    (
        "time",
        r"how long ago|when|since when|until when|(?:at|on|in|during) (?:what|which) {time}|{what} {time}",
    ),
    (
        "count",
        r"how (?:many|much|often|long|old|far|big|tall|frequently)",
    ),
    (
        "count",
        r"the (?:total )?number of|count (?:the|all|how)|{what} (?:number|amount|percentage|price|age)",
    ),
    ("place", r"where|{what} {place}"),
    ("person", r"who|whom|whose|{what} {who}"),
    ("reason", r"why|how come|for what reason"),
    ("list", r"(?:list|enumerate|name|give me|show me) (?:all|every|the|some|me|his|her|their|my|your)"),
    (
        "list",
        r"what are|what were|{what} (?:kinds?|types?|sorts?) of|{what} (?:\w+ ){{0,2}}?\w{{2,}}[^\Wsui]s"
        r" (?:does|do|did|has|have|had|is|are|was|were|will|would|can|could|should)|{what} all",
    ),
)
_PATTERNS = [
    (
        kind,
        re.compile(rf"\b(?:{rule.format(time=_TIME_NOUN, place=_PLACE_NOUN, who=_WHO_NOUN, what=_WHAT)})\b"),
    )
    for kind, rule in _RULES
]
_AUXILIARY = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must)"
    r"(?: ?n t| not)?\b"
)
_EMBEDDED = re.compile(
    r"\b(?:know|remember|recall|tell me|tell us|say|remind me|see|find out|sure|idea)\b.{0,20}?"
    r"\b(?=when|where|who|whom|whose|why|how|what|which)"
)
_QUESTION = re.compile(r"\b(?:when|where|who|whom|whose|why|how|what|which)\b")
_ADVERBIAL = re.compile(
    r"(?<!since )(?<!until )\bwhen (?!(?:did|do|does|is|are|was|were|will|would|has|have|had|can)\b)"
)

_OTHERS: tuple[tuple[Kind, str], ...] = (
    ("time", "wann, seit wann, um wie viel uhr, quand, depuis quand, à quelle date, cuándo, quando"),
    ("time", "desde cuándo, da quando, wanneer, когда, kiedy, ne zaman, när, milloin, hvornår, متى, कब"),
    ("time", "khi nào, kapan, เมื่อไหร่, 언제, 며칠, いつ, 何時, 何月, 何年"),
    ("time", "什么时候, 什麼時候, 何时, 哪天, 哪一天, 哪年, 几月, 几号, 几点"),
    ("count", "wie viele, wie viel, wieviele, wieviel, wie oft, wie lange, combien, cuántos, cuántas"),
    ("count", "cuánto, cuánta, quanti, quante, quanto, quantos, quantas, hoeveel, сколько, ile, kaç"),
    ("count", "hur många, kuinka monta, hvor mange, كم, कितने, bao nhiêu, berapa"),
    ("count", "多少, 几个, 幾個, 几次, 多久, 几天, いくつ, 何回, 何人, 何個, どのくらい, 몇, 얼마나, กี่"),
    ("place", "wo, wohin, woher, où, dónde, adónde, dove, onde, waar, где, куда, откуда, gdzie"),
    ("place", "nerede, nereye, missä, hvor, أين, कहाँ, ở đâu, di mana, ที่ไหน"),
    ("place", "哪里, 哪裡, 哪儿, 在哪, どこ, 어디"),
    ("person", "wer, wen, wem, wessen, qui est, qui a, avec qui, à qui, quién, quiénes, chi, quem, wie is"),
    ("person", "кто, кого, кому, kto, kim, vem, kuka, hvem, من هو, कौन, siapa, ใคร"),
    ("person", "谁, 誰, だれ, 누구, 누가"),
    ("reason", "warum, wieso, weshalb, pourquoi, por qué, perché, por que, waarom, почему, зачем"),
    ("reason", "dlaczego, neden, varför, miksi, لماذا, क्यों, tại sao, mengapa, ทำไม"),
    ("reason", "为什么, 為什麼, なぜ, どうして, 왜"),
    ("list", "welche, quels, quelles, cuáles, qué cosas, quali, quais, welke, какие, jakie"),
    ("list", "哪些, 列出, どんな, 어떤"),
    ("yes_no", "est ce que, est ce qu, ли, czy, هل, क्या"),
    ("yes_no", "吗, 嗎, 是不是, 有没有, ですか, ますか, ましたか, 나요, 니까"),
)
"""Question words of other languages: closed classes, the commonest of each language."""
_PHRASES: dict[str, list[tuple[tuple[str, ...], Kind]]] = {}
for _kind, _text in _OTHERS:
    for _phrase in _text.split(", "):
        _key = tuple(word.text for word in split(_phrase))
        _PHRASES.setdefault(_key[0], []).append((_key, _kind))


def kind(text: str) -> Kind:
    """The kind of answer that `text` asks for, judged by its beginning.

    A date or time (``time``), a number (``count``), ``yes_no``, several things (``list``), someone
    (``person``), somewhere (``place``), a ``reason``; ``other`` where nothing says.
    """
    words = split(text[:LIMIT])
    english = " ".join(word.text for word in words)
    return _english(english) or _other(words) or "other"


def _english(text: str) -> Kind | None:
    if (auxiliary := _AUXILIARY.match(text)) and auxiliary.end() < len(text):
        embedded = _EMBEDDED.search(text)
        if embedded is None:
            return "yes_no"
        text = text[embedded.end() :]
    question = next(
        (one for one in _QUESTION.finditer(text) if not _ADVERBIAL.match(text, one.start())), None
    )
    best: tuple[int, int, Kind] | None = None
    for order, (found, pattern) in enumerate(_PATTERNS):
        for match in pattern.finditer(text):
            adverbial = match.group() == "when" and _ADVERBIAL.match(text, match.start())
            if adverbial and (match.start() > 0 or len(_QUESTION.findall(text)) > 1):
                continue  # "When she came, what did she say?"
            # A question word further on belongs to a clause, as in "What did she say where he lives".
            if question is None or match.start() <= question.start() + 8:
                candidate = (match.start(), order, found)
                best = candidate if best is None or candidate < best else best
            break
    return None if best is None else best[2]


def _other(words: list[Word]) -> Kind | None:
    """By question words of other languages; the first in the text, but for a particle of yes or no."""
    found: Kind | None = None
    for at, word in enumerate(words):
        for key, some in _PHRASES.get(word.text, ()):
            if tuple(one.text for one in words[at : at + len(key)]) == key:
                if some != "yes_no":
                    return some
                if UNSPACED.search(word.text) or at < 2:
                    found = found or some
    return found
