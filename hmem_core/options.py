"""How a memory is built and read: every number that can be chosen, in records with their defaults."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from hmem_core.errors import InvalidInput

__all__ = [
    "LLM",
    "Budget",
    "EventOptions",
    "FactOptions",
    "GuidedOptions",
    "Prices",
    "ReadingOptions",
    "SegmentOptions",
]

Policy = Literal["none", "top-down", "bottom-up", "auto"]


def _check(condition: bool, name: str, value: object, limit: str) -> None:
    if not condition:
        raise InvalidInput(f"{name}={value!r}: {limit}")


class SegmentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How turns find their place in the segment tree (SegTreeMem, arXiv 2606.04555), and how it is described.

    They may differ from one opening of a memory to the next: what was decided is in the journal.
    """

    tau: Literal["auto"] | float | tuple[float, ...] = "auto"
    """Least cosine of a turn with a segment's centroid for the two to be compatible. One number for all
    heights, or one for each height from 1 on, not increasing, the last for all greater heights. ``"auto"``
    follows the conversation: m + spread · σ - fall · log2(height), with m and σ the running mean and
    deviation of cosines between successive turns and m + spread · σ clipped to [low, high] (ours)."""
    choose: Literal["deepest", "best"] = "deepest"
    """Of several compatible segments: the lowest, or the most similar (ours; the paper does not say)."""
    spread: float = 0.5
    fall: float = 0.1
    low: float = 0.05
    high: float = 0.95
    compatibility: Literal["cosine", "pointwise", "batch"] = "cosine"
    """Who says which segments a turn is compatible with: cosines, or a language model, asked one question for
    each segment or one for all. If the model fails, cosines decide."""
    summarise: bool = True
    """With a language model: let it summarise segments."""
    summarise_when: Literal["add", "settle"] = "add"
    """Whether `add` waits for the summaries that it makes due, or leaves them all to `settle`."""
    summarise_from: int = 4
    """Segments of fewer turns get no summary."""
    summary_words: int = 80

    def __post_init__(self) -> None:
        _check(self.choose in ("deepest", "best"), "choose", self.choose, "'deepest' or 'best'")
        for name in ("spread", "fall", "low", "high"):
            value = getattr(self, name)
            _check(isinstance(value, (int, float)) and abs(value) < 1e6, name, value, "a number")
        modes = ("cosine", "pointwise", "batch")
        _check(self.compatibility in modes, "compatibility", self.compatibility, f"one of {', '.join(modes)}")
        when = self.summarise_when
        _check(when in ("add", "settle"), "summarise_when", when, "'add' or 'settle'")
        for name in ("summarise_from", "summary_words"):
            value = getattr(self, name)
            _check(isinstance(value, int) and value >= 2, name, value, "a whole number from 2")
        _check(self.fall >= 0, "fall", self.fall, "thresholds must not increase with height, so 0 or more")
        _check(self.low <= self.high, "low", self.low, f"not above high={self.high!r}")
        if self.tau == "auto":
            return
        thresholds = self.tau if isinstance(self.tau, tuple) else (self.tau,)
        numbers = all(isinstance(one, (int, float)) and one == one for one in thresholds)
        _check(numbers and len(thresholds) > 0, "tau", self.tau, "'auto', a number, or a tuple of numbers")
        falling = all(a >= b for a, b in itertools.pairwise(thresholds))
        _check(falling, "tau", self.tau, "thresholds must not increase with height")


class EventOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How turns are put together to events, and how these are described (HiGMem, arXiv 2604.18349).

    They may differ from one opening of a memory to the next: what was decided is in the journal.
    """

    affiliation: Literal["cosine", "model"] = "model"
    """Who says which events a turn belongs to. Without a language model, cosines do."""
    tau: Literal["auto"] | float = "auto"
    """Least cosine of a turn's context with an event for the turn to belong to it. ``"auto"`` follows the
    conversation: m + spread · σ, clipped to [low, high], with m and σ the running mean and deviation of
    cosines between successive turns (ours). Cosines with contexts, of several turns each, are greater."""
    spread: float = 1.75
    low: float = 0.3
    high: float = 0.95
    continuity: float = 0.15
    """Added to the cosine with an event of the turn before in the session (ours)."""
    recent: int = 128
    """A turn is compared with so many events, those that got turns last, … (ours)"""
    recalled: int = 16
    """… and with those of so many turns at most, the latest that have its rarest terms."""
    describe: bool = True
    """With a language model: let it analyse turns and describe events."""
    window: int = 5
    """Previous turns that a model is shown as context of a turn (paper: 5)."""
    candidates: int = 10
    """Events that a model is offered for a turn, beside the last updated one (paper: 10)."""
    refresh_below: int = 10
    """An event of fewer turns is described anew with each turn; others gain in their timeline alone
    (paper: 10)."""
    faithful: bool = False
    """Ask as the paper does: about each turn once what it speaks of and once where it belongs, and then once
    for each of its events. Else several turns share a question, and none is asked about where they belong if
    the nearest event of each is unambiguous (ours)."""
    batch: int = 16
    """Turns that share a question, at most. Fewer wait until there are so many, or for `settle`. A slow model
    needs a smaller one, or more time (`LLM.timeout`): its reply takes some 80 tokens a turn."""
    sure: float = 0.7
    """Unambiguous: the cosine of the turn's context with the nearest event reaches this, …"""
    margin: float = 0.2
    """… and is ahead of that with the second by so much; …"""
    far: float = 0.2
    """… or it is below this for all events, and the turn begins a new one."""

    def __post_init__(self) -> None:
        modes = ("cosine", "model")
        _check(self.affiliation in modes, "affiliation", self.affiliation, f"one of {', '.join(modes)}")
        number = isinstance(self.tau, (int, float)) and -1 <= self.tau <= 2
        _check(self.tau == "auto" or number, "tau", self.tau, "'auto' or a cosine")
        for name in ("spread", "low", "high", "continuity"):
            value = getattr(self, name)
            _check(isinstance(value, (int, float)) and abs(value) < 1e6, name, value, "a number")
        _check(self.continuity >= 0, "continuity", self.continuity, "a number from 0")
        for name in ("sure", "margin", "far"):
            value = getattr(self, name)
            _check(isinstance(value, (int, float)) and -1 <= value <= 2, name, value, "from -1 to 2")
        _check(self.batch <= 32, "batch", self.batch, "32 turns at most")
        _check(self.low <= self.high, "low", self.low, f"not above high={self.high!r}")
        limits = {"recent": 1, "recalled": 0, "window": 0, "candidates": 1, "refresh_below": 0, "batch": 1}
        for name, least in limits.items():
            value = getattr(self, name)
            fine = isinstance(value, int) and not isinstance(value, bool) and least <= value <= 4096
            _check(fine, name, value, f"a whole number from {least} to 4096")


class GuidedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a language model guides a search (HiGMem, arXiv 2604.18349).

    Numbers are the paper's where it has them. Where the defaults leave the paper, they ask less (ours);
    `faithful` asks as the paper does.
    """

    query: Literal["question", "keywords", "both"] = "question"
    """What is searched for: the question itself, which costs no call and no wait; keywords of it by the model
    (paper); or both."""
    semantic_turns: int = 10
    """Turns taken as the view ranks them (paper: 10)."""
    semantic_events: int = 10
    """Events looked into (paper: 10)."""
    events: bool = True
    """Look into events at all."""
    prediction: bool = True
    """Let the model say which turns of the events are worth reading; else all of them are."""
    filter: bool = True
    """Let the model say which candidates to keep; else all are kept."""
    chunk: int = 10
    """Candidates that one question judges (paper: 10)."""
    shown: int = 24
    """Turns that are shown of an event at most, the nearest to the query. The paper shows all, so that its
    prompts grow with the memory."""
    together: int = 48
    """Events share a question as long as they show no more turns than this together; 1: never (paper)."""
    ask_known: bool = False
    """Ask also about an event all of whose turns are candidates already (paper). It could add nothing."""
    candidates: int = 60
    """Candidates at most; beyond it, turns that were predicted are left out by their score."""
    predicted: float = 2.0
    """What a turn that the model named in an event gains in the order of hits, in standard deviations of the
    candidates' scores (ours)."""

    def __post_init__(self) -> None:
        queries = ("question", "keywords", "both")
        _check(self.query in queries, "query", self.query, f"one of {', '.join(queries)}")
        limits = {"semantic_turns": 1, "semantic_events": 0, "chunk": 1, "shown": 1, "together": 1}
        for name, least in (limits | {"candidates": 1}).items():
            value = getattr(self, name)
            most = 128 if name in ("shown", "together", "chunk") else 4096
            fine = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
            _check(fine, name, value, f"a whole number from {least} to {most}")
        gain = isinstance(self.predicted, (int, float)) and 0 <= self.predicted < 1e6
        _check(gain, "predicted", self.predicted, "a number from 0")

    @classmethod
    def faithful(cls) -> GuidedOptions:
        """One question for the keywords, one for each event, one for each ten candidates. The paper ranks by
        cosines alone, so use it with ``view="dense"``."""
        return cls(query="keywords", shown=128, together=1, ask_known=True, candidates=4096, predicted=0.0)


class ReadingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How scores come about. Given to `hmem.open` for all searches, or to one search.

    The defaults are round numbers near the best of a coarse grid on half of LoCoMo (docs/quality.md).
    """

    dense: float = 1.0
    """Weight of the embeddings' cosines, standardised over the turns that the filters allow."""
    lexical: float = 1.0
    """Weight of BM25, standardised likewise."""
    late: float = 0.6
    """Share of late interaction in what a turn scores by itself; the others have the rest. It has none in a
    memory without token states (ours; see `retrieval.late`)."""
    candidates: int = 256
    """Turns, at least, that late interaction looks at: the best by the other signals."""
    k1: float = 0.9
    """BM25: how soon repetition stops to count."""
    b: float = 0.4
    """BM25: how much the length of a turn counts."""
    lateral: tuple[float, ...] = (0.25, 0.15)
    """What a turn lends the turns 1, 2, … before and after it in its session (ours)."""
    answer: float = 0.3
    """Of a question's score, what the next turn of its session gets beside that (ours)."""
    session: float = 0.3
    """Of the best score in a session, what each of its turns gets (ours)."""
    speaker: float = 1.0
    """Fused: what the turns of a speaker get whom the query names (ours)."""
    period: float = 4.0
    """Fused: what turns get that lie in a time which the query names; those outside it get less, the further
    away they are, measured by the length of that time (ours)."""
    policy: Policy = "top-down"
    """Which way relevance moves through the segment tree. ``"auto"``: down, if the best turns of a query lie
    together, else not at all (ours; see `segments.policy`)."""
    decay: float = 0.5
    """α: what is left of relevance after each hop."""
    horizon: int = 2
    """Hops at most."""
    by_height: bool = False
    """Count a hop for each height that a link climbs, as in the paper's uncompressed tree."""
    tree: float = 0.2
    """Weight, in the fused view, of what a turn inherits from the segments above it; a segment's score is the
    logarithm of the mean odds of its turns, whose dense and lexical parts together are their log-odds (ours).
    Of policies, only ``"top-down"`` gives turns something."""
    fact: float = 2.0
    """Weight, in the fused view, of what facts that match the query add to the turns that tell them, and of
    what facts that hold no longer take from theirs (ours). Memories without facts are not concerned."""
    past: bool | None = None
    """Whether a search for facts shows those that hold no longer, too; None: where the query asks for what
    was before, or has changed."""
    diversity: float = 0.5
    """Fused: what a turn's likeness (cosine) to one that is shown already costs it when turns are selected.
    They are shown in the order of their scores."""
    fold: bool = True
    """Fused: show a turn once, if its speaker said the same words in several; see `Evidence.repeats`."""
    enough: float = 0.4
    """``k="auto"``: turns are shown whose score rises above the 32nd best by at least this share of what the
    best one's does; 16 at most. A list or a count takes a smaller share, a date a larger one (ours)."""
    event: float = 0.25
    """In fused searches: what a turn gains for each unit of the score of the best of its events (HiGMem's
    events as anchors; the score is ours): the logarithm of the mean odds of the event's turns, and the two
    below."""
    centroid: float = 0.5
    """Of an event's score: the cosine of the query with the event's centroid, or with its description by a
    model if that is greater, standardised over events."""
    coverage: float = 0.5
    """Of an event's score: how much of the query's words, by idf, any of its turns has, standardised."""
    rerank: int = 32
    """With a reranker: turns it reads in a search at most, the best of the view; 0 switches it off."""
    rerank_tokens: int = 8192
    """With a reranker: tokens it reads in a search at most, by estimate, the query counted with each turn.
    Turns that no longer fit are not read, and stay below those that are."""
    reranked: float = 1.0
    """With a reranker: weight of its score, standardised over the turns it reads, beside their scores in the
    view, standardised likewise: 1 has each decide one half, 1000 the reranker alone. It was not tuned, since
    no reranker comes with the library."""

    def __post_init__(self) -> None:
        policies = ("none", "top-down", "bottom-up", "auto")
        _check(self.policy in policies, "policy", self.policy, f"one of {', '.join(policies)}")
        for name in (
            "dense",
            "lexical",
            "answer",
            "session",
            "speaker",
            "period",
            "tree",
            "fact",
            "k1",
            "decay",
            "diversity",
            "event",
            "centroid",
            "coverage",
            "reranked",
        ):
            value = getattr(self, name)
            _check(isinstance(value, (int, float)) and 0 <= value < 1e6, name, value, "a number from 0")
        for name, most in (("rerank", 1024), ("rerank_tokens", 1 << 30)):
            value = getattr(self, name)
            fine = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
            _check(fine, name, value, f"a whole number from 0 to {most}")
        for name in ("b", "late", "enough"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "from 0 to 1")
        _check(self.past in (None, True, False), "past", self.past, "True, False or None")
        _check(isinstance(self.fold, bool), "fold", self.fold, "True or False")
        fine = isinstance(self.candidates, int) and not isinstance(self.candidates, bool)
        _check(fine and self.candidates >= 1, "candidates", self.candidates, "a whole number from 1")
        _check(isinstance(self.horizon, int) and 0 <= self.horizon <= 64, "horizon", self.horizon, "0 to 64")
        fine = isinstance(self.lateral, tuple) and len(self.lateral) <= 64
        _check(fine and all(0 <= w < 1e6 for w in self.lateral), "lateral", self.lateral, "numbers from 0")
        _check(self.dense + self.lexical > 0, "dense", self.dense, "dense and lexical must not both be 0")


class FactOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the fact graph is rewritten, and where a rewrite looks (HiGram, arXiv 2608.05095).

    They may differ from one opening of a memory to the next: what was decided is in the journal.
    """

    strategy: Literal["coordinated", "append-only", "relation-level"] = "coordinated"
    """What a new assertion does to those that are there. The other two are baselines: leave them all as they
    are; or supersede whatever has the same subject and relation, whatever its times and contexts, and look
    at nothing that rests on it."""
    cascade: Literal["full", "path"] = "full"
    """How far the fall of a unit reaches: to all that rests on it, however indirectly (ours); or, as in the
    paper, to its direct dependents within the region that was chosen."""
    localisation: bool = True
    """Look for a path. Without, a region is what has the same subject and relation, and no more, and a
    question is held against every unit."""
    graphs: int = 12
    """K_g: MicroGraphs that are looked into."""
    candidates: int = 24
    """K_p: paths that are compared."""
    depth: int = 3
    """h: edges of a path at most."""
    steps: int = 20_000
    """Paths of more than one unit that are looked at, at most: where nearly all score the same, so that
    nothing can be left out, the best ones so far are taken."""
    considered: int = 256
    """MicroGraphs that are scored at most for their subject, and as many for their category."""
    members: int = 32
    """Active units that are taken of a MicroGraph, those that were told last."""
    links: int = 8
    """Of a unit, so many direct dependents and so many supports are looked at, those that were told last."""
    neighbours: int = 4
    """To so many units a step through a subject, category or context can lead, those that fit best."""
    subject: float = 0.5
    """Of the relevance of a MicroGraph, the weight of its subject's match,"""
    category: float = 0.5
    """and that of its category's."""
    attributes: float = 0.25
    """φ: what it weighs that the units of a path match the slots that were asked for;"""
    dependency: float = 0.25
    """that its steps are dependencies;"""
    validity: float = 0.25
    """that its units are valid at the time in question;"""
    context: float = 0.25
    """and that their contexts fit."""
    cap: float = 0.99
    """Repetition raises the confidence of a fact no further; one telling may be more certain by itself."""
    extract: bool = False
    """With a language model: let it say which facts turns tell. Off unless asked for: it costs one
    question more for every `batch` turns, and what a model says is then held to be true. An `add` waits
    for four of these questions at most, and one about contradictions."""
    roles: tuple[str, ...] = ("user", "assistant")
    """Facts are learned from turns of these roles. Others are not read; add ``"tool"`` for what tools say."""
    batch: int = 12
    """Turns that share a question, at most. Fewer wait until there are so many, or for `settle`. A slow model
    needs a smaller one, or more time (`LLM.timeout`)."""
    window: int = 4
    """Previous turns of the session that are shown with them."""
    known: int = 12
    """Known facts about what the turns name that are shown with them, at most; 0 for none."""
    consult: bool = True
    """Ask the model about contradictions among what it told that no rule decides."""

    def __post_init__(self) -> None:
        strategies = ("coordinated", "append-only", "relation-level")
        _check(self.strategy in strategies, "strategy", self.strategy, f"one of {', '.join(strategies)}")
        _check(self.cascade in ("full", "path"), "cascade", self.cascade, "'full' or 'path'")
        _check(isinstance(self.localisation, bool), "localisation", self.localisation, "True or False")
        for name in ("graphs", "candidates", "depth", "considered", "members", "links", "neighbours"):
            value = getattr(self, name)
            _check(
                isinstance(value, int) and 1 <= value <= 4096, name, value, "a whole number from 1 to 4096"
            )
        steps = isinstance(self.steps, int) and 0 <= self.steps <= 10**9
        _check(steps, "steps", self.steps, "a whole number from 0 to 1,000,000,000")
        for name in ("subject", "category", "attributes", "dependency", "validity", "context"):
            value = getattr(self, name)
            _check(isinstance(value, (int, float)) and 0 <= value < 1e6, name, value, "a number from 0")
        _check(isinstance(self.cap, (int, float)) and 0 <= self.cap <= 1, "cap", self.cap, "from 0 to 1")
        for name in ("extract", "consult"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "True or False")
        roles = isinstance(self.roles, tuple) and all(isinstance(role, str) for role in self.roles)
        unfit = {"system", "developer"}
        _check(roles and not unfit & {*self.roles}, "roles", self.roles, "names of roles, not of prompts")
        for name, least, most in (("batch", 1, 32), ("window", 0, 32), ("known", 0, 24)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            _check(whole and least <= value <= most, name, value, f"a whole number from {least} to {most}")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be spent on a language model; what is None has no limit.

    A question whose reply could exceed a limit is not asked: the program gets `BudgetExceeded` for it.
    """

    calls: int | None = None
    """Replies of the model. One that has to be asked for again, because it was malformed, counts twice."""
    tokens: int | None = None
    """Tokens read and written. Beforehand a question counts with an estimate and its longest reply."""
    money: float | None = None
    """In the currency of the prices."""

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "money"):
            value = getattr(self, name)
            _check(value is None or (isinstance(value, (int, float)) and value >= 0), name, value, "from 0")


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What a million tokens cost."""

    input: float
    output: float
    cached: float | None = None
    """Input that the server had in its cache; None: as other input."""

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            fine = isinstance(value, (int, float)) and 0 <= value < float("inf")
            _check(fine or (name == "cached" and value is None), name, value, "a price from 0")

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """The price of these tokens; `cached_tokens` are a part of `input_tokens`."""
        cached = self.input if self.cached is None else self.cached
        fresh = input_tokens - cached_tokens
        return (fresh * self.input + cached_tokens * cached + output_tokens * self.output) / 1e6


class LLM(msgspec.Struct, frozen=True, kw_only=True):
    """A language model behind an OpenAI-compatible server, and how it is used."""

    model: str
    base_url: str | None = None
    """For example ``http://localhost:8080/v1``; None for OpenAI's own (or ``OPENAI_BASE_URL``)."""
    api_key: str | None = None
    """None: ``OPENAI_API_KEY``, where that is set. Never shown."""
    concurrency: int = 8
    """Requests under way at once; others wait, the most urgent first."""
    timeout: float = 60.0
    """Seconds that one question may take from its first request on, retries and pauses included."""
    retries: int = 4
    """How often a request is sent again that failed for a reason that may pass."""
    temperature: float | None = 0.0
    """None: the server's own."""
    structured: Literal["auto", "json_schema", "json_object", "plain"] = "auto"
    """How replies are made to fit their schema; ``"auto"`` takes the strictest way that the server knows."""
    prices: Prices | None = None
    budget: Budget | None = None
    """For all programs of one memory, as long as it is open."""
    cache: str | os.PathLike[str] | None = None
    """File that keeps valid replies, so that the same question is never paid for twice; None: no file."""
    extra: Mapping[str, Any] = {}
    """Further fields of each request, such as ``{"reasoning_effort": "low"}``."""

    def __post_init__(self) -> None:
        _check(
            isinstance(self.model, str) and bool(self.model.strip()), "model", self.model, "a model's name"
        )
        for name in ("concurrency", "retries"):
            value, least = getattr(self, name), int(name == "concurrency")
            fine = isinstance(value, int) and not isinstance(value, bool) and value >= least
            _check(fine, name, value, f"a whole number from {least}")
        timeout = isinstance(self.timeout, (int, float)) and 0 < self.timeout < float("inf")
        _check(timeout, "timeout", self.timeout, "seconds, more than 0")
        warm = self.temperature is None or (
            isinstance(self.temperature, (int, float)) and 0 <= self.temperature <= 2
        )
        _check(warm, "temperature", self.temperature, "from 0 to 2, or None")
        ways = ("auto", "json_schema", "json_object", "plain")
        _check(self.structured in ways, "structured", self.structured, f"one of {', '.join(ways)}")
        if self.budget is not None and self.budget.money is not None:
            _check(self.prices is not None, "budget", self.budget, "a budget of money needs prices")

    @property
    def key(self) -> str:
        """The API key to send; servers that want none accept any."""
        return self.api_key or os.environ.get("OPENAI_API_KEY") or "none"

    def __repr__(self) -> str:
        where = f" at {self.base_url}" if self.base_url else ""
        return f"<LLM {self.model}{where}>"
