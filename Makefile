# make run    install into .venv and verify the example: sequential and parallel, compared
# make test   install the tools too, and run all checks
# make bench  measure against the targets, and write docs/benchmarks.md
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test bench clean

run: .venv/.installed
	$(BIN)/pams-parallel verify

# what is checked is said in noxfile.py; nox runs it with the .venv as it is
test: .venv/.installed-dev
	$(BIN)/nox

bench: .venv/.installed-dev
	$(BIN)/nox -s bench -- --out docs

clean:
	rm -rf .venv .nox site

# The install is editable: only pyproject.toml makes it out of date, no source file does.
.venv/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[dill]'
	@touch $@

# dependency groups need pip 25.1
.venv/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --editable '.[dill]' --group dev
	@touch $@

# a half-made .venv is taken away: it would look like a finished one to the next make
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or later is needed (make PYTHON=...)" if sys.version_info < (3, 10) else 0)'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
