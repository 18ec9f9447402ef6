"""The floors of the house: every import runs downwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hmem_core"

# What a part of the package may import of the others; every part may import itself.
BASE = {
    "records",
    "localised",
    "reports",
    "effects",
    "errors",
    "options",
    "budgets",
    "cpus",
    "journal.entries",
    "llm.prompts",
}
COLUMNS = BASE | {"columns"}
STATE = COLUMNS | {"state"}
VIEWS = STATE | {"segments", "events", "facts"}
RETRIEVAL = VIEWS | {"retrieval", "times", "messages"}
MEMORY = RETRIEVAL | {
    "store",
    "settling",
    "changes",
    "factdrafts",
    "factchanges",
    "factview",
    "methods",
    "reads",
    "memory",
    "aio",
    "journal",
    "embedding",
    "llm",
}
INGEST = MEMORY | {"ingest"}
ALLOWED = {
    "errors": set(),
    "records": {"localised"},
    "localised": set(),
    "reports": {"records"},
    "effects": set(),
    "budgets": {"errors", "records", "reports", "effects", "options"},
    "options": {"errors"},
    "cpus": {"errors"},
    "times": {"errors"},
    "messages": {"errors", "records", "times"},
    "journal": BASE,
    "embedding": BASE,
    "llm": BASE,
    "columns": COLUMNS,
    "state": COLUMNS,
    "segments": STATE,
    "events": STATE | {"segments"},
    "facts": STATE | {"events.asking"},
    "retrieval": RETRIEVAL | {"methods"},
    "settling": RETRIEVAL | {"store", "factchanges", "factdrafts"},
    "store": STATE | {"journal"},
    "factdrafts": RETRIEVAL,
    "factchanges": RETRIEVAL | {"store", "factdrafts"},
    "changes": RETRIEVAL | {"store", "settling", "factchanges"},
    "factview": RETRIEVAL | {"store", "methods", "factdrafts", "factchanges"},
    "methods": {"effects"},
    "reads": RETRIEVAL | {"store", "methods"},
    "memory": MEMORY - {"opening", "aio"},
    "opening": MEMORY - {"aio"},
    "aio": {"opening", "memory", "factview", "methods", "retrieval", "records", "effects", "errors"},
    "ingest": INGEST | {"opening"},
    "interfaces": INGEST | {"interfaces"},
}


def part(module: str) -> str:
    for low in ("journal.entries", "llm.prompts"):  # types and texts, used from every floor
        if module == low or module.startswith(f"{low}."):
            return low
    return module.split(".")[0]


def imports(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports, inside functions too, but not those for type checking."""
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped.update(child for inner in node.body for child in ast.walk(inner))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("hmem_core."):
                yield name.removeprefix("hmem_core.")


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_run_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts
    if own == ("__init__",):
        return  # the public names come from everywhere, lazily
    allowed = ALLOWED[own[0]] | {own[0]}
    if own == ("journal", "entries"):
        allowed = {"errors", "records", "effects"}
    for module in imports(path):
        names = {part(module), module}
        if (PACKAGE / Path(*module.split("."))).with_suffix(".py").exists() or (
            PACKAGE / Path(*module.split("."))
        ).is_dir():
            assert names & allowed or module in allowed, f"{path.name} may not import {module}"


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").rglob("*.py")), ids=lambda path: path.name)
def test_kernels_know_nothing_of_the_rest(path: Path) -> None:
    import sys

    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            top = module.split(".")[0]
            assert top in {"numpy", "numba", "llvmlite", "hmem_kernels"} | sys.stdlib_module_names, module


def test_no_module_is_large() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "kernels").rglob("*.py")]:
        lines = len(path.read_text().splitlines())
        assert lines <= 500, f"{path.relative_to(ROOT)} has {lines} lines: is there a second idea in it?"
