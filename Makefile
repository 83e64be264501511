# make run      the dashboard, on http://localhost:8501
# make test     the tests, the browser's included, without those marked nightly
# make nightly  every test, and the numerical ones once more as the plainest processor computes
# make gpu      the tests that need a GPU; skipped where there is none
# make coverage every test, and coverage.json: which lines of which file were run
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Some systems forbid it; each of the processes that the tests start would then compile all sources by itself.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test nightly gpu coverage lint check checkpoints screenshots licences clean

run: $(VENV)/.run
	$(BIN)/streamlit run dashboard/app.py

test: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) -m "not nightly"

# Each library takes its plainest way, without the vector instructions of any newer processor: other last bits.
PLAINEST := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Prescott

nightly: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --durations 40
	$(PLAINEST) $(BIN)/pytest -n $(WORKERS) -m numerical

# What needs a real GPU; in nightly the same tests meet a stand-in.
gpu: $(VENV)/.dev
	$(BIN)/pytest -n 0 -m gpu

coverage: $(VENV)/.dev
	$(BIN)/coverage run -m pytest -n $(WORKERS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

# The shipped runs and measurements, made anew: same seeds, same settings, on the CPU.
checkpoints: $(VENV)/.run
	$(BIN)/python checkpoints/train.py
	$(BIN)/python -m transformer lengths --seeds 0-63 --out checkpoints/lengths.json.xz
	$(BIN)/python -m transformer corners --out checkpoints/corners.json --d-model 4 --attention dot
	$(BIN)/python -m transformer corners --out checkpoints/corners-none.json --d-model 4 --attention none
	$(BIN)/python -m transformer corners --out checkpoints/corners-narrow.json --d-model 2 --attention none --most 3
	$(BIN)/python -m transformer scaling --out checkpoints/scaling.json

# The README's picture, made anew from the running dashboard.
screenshots: $(VENV)/.dev
	$(BIN)/python docs/screenshots.py

# docs/licences.md, from what is installed and pinned; deploy/update.sh pins anew.
licences: $(VENV)/.dev
	$(BIN)/python deploy/licences.py

$(VENV)/.run: requirements.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
