# Every target sets up what it needs; nothing is done twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup demo test soak check format bench quality data-given clean

setup: $(STAMP)

# The first interpreter that is new enough, so that an old `python3` on the PATH does not stop anyone.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { \
	  for python in $(PYTHON) python3.13 python3.12 python3.11; do \
	    if command -v $$python >/dev/null 2>&1 && \
	       $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      echo "creating $(VENV) with $$($$python --version)"; exec $$python -m venv $(VENV); fi; done; \
	  echo "hmem needs Python 3.11 or newer: make setup PYTHON=/path/to/python" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/hmem demo

test: $(STAMP)
	$(BIN)/pytest -q -n auto

soak: $(STAMP)
	$(BIN)/pytest -q -m soak --timeout 3600

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python -m bench.micro

quality: data-given $(STAMP)
	$(BIN)/python -m bench.quality.report --data "$(DATA)"

data-given:
	@test -d "$(DATA)" || { \
	  echo "make quality measures on public data sets, which are not part of hmem:" >&2; \
	  echo "  make quality DATA=DIRECTORY   with locomo/locomo10.json, realmem/*_dialogues*.json," >&2; \
	  echo "  segmentation/{tiage,dialseg_711}.json, longmemeval/*.json, memconflict/step4_1.jsonl, or some of them" >&2; exit 1; }

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
