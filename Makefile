# Everything a newcomer needs: `make demo`, `make test`, `make lint`, `make bench`.
# Each target sets itself up: a virtual environment, the Rust build, the install. VENV=path reuses an environment.

VENV ?= .venv
PYTHON ?= python3
DEMO_OUT ?= demo_out
FUZZ_SECONDS ?= 300
SEED := $(if $(SEED),$(SEED),$(shell $(PYTHON) -c 'import secrets; print(secrets.randbits(32))'))
BIN := $(VENV)/bin
STAMP := $(VENV)/.emu2-$(shell printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)

RUST_SOURCES := $(shell find emu2 pycompiler/annealing pycompiler/choosing pycompiler/packing pycompiler/placing pycompiler/switches isa_specs -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

# Tests and benches may stop where they are; the libraries may not, and say so themselves (`lib.rs`).
ALLOWED_IN_TESTS := -A clippy::unwrap_used -A clippy::expect_used -A clippy::panic -A clippy::type_complexity

.PHONY: demo browser test rust test-rust test-python test-long test-host test-matrix test-lowest corpus fuzz lint lint-rust lint-python manual pictures extension docs bench guard install clean

install: $(STAMP)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): $(VENV)/bin/python pyproject.toml $(RUST_SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[test,lint,docs]'
	rm -f $(VENV)/.emu2-*
	touch $@

demo: $(STAMP)
	$(BIN)/python -m pycompiler.demo --out $(DEMO_OUT)

# What cargo checks needs no Python packages, so it runs while pip fetches them.
test:
	$(MAKE) --jobs=2 rust lint-python
	$(MAKE) test-python

rust:
	$(MAKE) lint-rust
	$(MAKE) test-rust

# The bindings have no tests of their own. They are named so that cargo picks the features of emu2 that pip picks: what is
# built here is built once.
PACKAGES := --package emu2 --package emu2-capi --package annealing --package choosing --package packing --package placing --package sorting --package switches --package emu2-python

# The seed of proptest's cases is fixed, as that of all tests here.
test-rust: export PROPTEST_RNG_SEED := 1
test-rust:
	cargo test --release $(PACKAGES)

# Tests start hundreds of programs: without compiled files of Python each would compile this package anew.
unexport PYTHONDONTWRITEBYTECODE

# One process per core; each takes tests that stand together.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test-python: $(STAMP)
	$(PYTEST)
	@$(HAS_BROWSER) || echo 'skipped, because chromium or chromedriver is missing: tests/pycompiler/dashboard/test_browser.py (make browser)'

# The browser that the tests of the dashboard drive, from Debian's packages.
HAS_BROWSER := command -v chromium >/dev/null && command -v chromedriver >/dev/null

browser:
	@$(HAS_BROWSER) || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; }

# Host programs in C and linked programs: compilers, link lines, back ends, ninja and make; the sanitizers and valgrind.
HOST_TESTS := $(addprefix tests/emu2/test_,sdk.py host_programs.py linked_programs.py attach.py board_tools.py)

# The same alone.
test-host: $(STAMP)
	EMU2_LONG=1 $(PYTEST) $(HOST_TESTS)

# Millions of cases for the arithmetic, random programs for minutes, and ten times as many graphs, from SEED.
test-long: $(STAMP)
	EMU2_LONG=1 cargo test --release $(PACKAGES) --test 'num_*' --test '*fuzz*' -- --nocapture
	@echo 'hypothesis: SEED=$(SEED)'
	EMU2_LONG=1 $(PYTEST) --hypothesis-seed=$(SEED) tests/pycompiler tests/test_pages.py tests/emu2/test_wheel.py $(HOST_TESTS)

# Every clone of the kernels that the host has, with 1, 2 and 8 threads. Takes as long as that many times `make test`.
test-matrix: $(STAMP)
	$(BIN)/python tests/matrix.py

# The first series of versions that each range of pyproject.toml allows, in an environment of its own: it downloads PyTorch.
test-lowest:
	$(PYTHON) tests/lowest.py

# Compiles the corpus and shows as a table what differs from its records; RECORD=1 keeps what it finds. PROGRAMS="drawn/ mixed"
# takes those whose names contain one of the words.
corpus: $(STAMP)
	cd tests/pycompiler && $(abspath $(BIN)/python) -m corpus $(PROGRAMS) $(if $(RECORD),--record)

# Random programs and bytes for FUZZ_SECONDS a target: by cargo-fuzz (any toolchain) if it is installed, else by the tests.
fuzz:
	@if cargo fuzz --version >/dev/null 2>&1; then \
		for target in programs assembler; do \
			(cd emu2 && cargo fuzz run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) -len_control=0) || exit 1; \
		done; \
	else \
		EMU2_LONG=1 EMU2_FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --release $(PACKAGES) --test '*fuzz*' -- --nocapture; \
	fi

lint: lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings $(ALLOWED_IN_TESTS)

lint-python: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest emu2._core

# docs/isa from the spec, docs/operators.md, docs/options.md, docs/errors.md and docs/compiler/rewrites.md from their tables; `make test` fails when they are stale.
manual: $(STAMP)
	EMU2_BLESS=1 cargo test --release $(PACKAGES) --test manual
	$(BIN)/python -m pycompiler.manual.operators
	$(BIN)/python -m pycompiler.document_options
	$(BIN)/python -m pycompiler.rewriting.document
	$(BIN)/python -m pycompiler.errors.document

# The pictures of the pages: drawings from the spec, what commands print, and the dashboard in a browser (`make browser`).
# `make pictures NAMES="chip.svg dashboard.png"` makes some. `make test` fails when the drawings are stale.
pictures: $(STAMP)
	PYTHONPATH=docs $(BIN)/python -m pictures $(NAMES)

# The extension for VS Code, in build/.
extension: $(STAMP)
	$(BIN)/python editors/vscode/pack.py

# The pages as a site, in build/site. Every warning is an error, so all links and anchors must exist.
docs: $(STAMP)
	$(BIN)/python -m sphinx -b html -c docs -n -W --keep-going -q . build/site
	@echo build/site/docs/index.html

# The table of targets, then what criterion and pytest-benchmark make of the same kernels.
bench: $(STAMP)
	$(BIN)/emu2 bench
	cargo bench --package emu2-benches
	$(BIN)/python -m pytest benches --benchmark-only --override-ini addopts=-q
	$(BIN)/python benches/wheel.py
	$(BIN)/python benches/host_programs.py
	$(BIN)/python benches/targets.py $(if $(INSTANCES),--instances $(INSTANCES))

# Instructions of five kernels under valgrind, compared with benches/guard.toml; BLESS=1 writes that file.
guard:
	$(PYTHON) benches/guard.py $(if $(BLESS),--bless)

clean:
	cargo clean
	rm -rf .venv $(DEMO_OUT)
