# The commands of this book. `make html` and `make test` are all a reader or CI needs.

PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed
RUN := $(VENV)/bin/python

# The sources of this folder win over any installed copy.
export PYTHONPATH := $(CURDIR)/src
# A font cache of our own, made once while installing: kernels that run side by side would each make it.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
# Two builds of one commit are equal: whatever wants a date gets the commit's.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1767225600)
export FORCE_SOURCE_DATE := 1

# `make html CHAPTER=attention` executes one chapter, into a folder of its own.
export CHAPTER ?=
PAGES := $(basename $(notdir $(wildcard book/*.md)))
ifneq ($(CHAPTER),$(filter $(CHAPTER),$(PAGES)))
    $(error there is no chapter '$(CHAPTER)'; there are: $(PAGES))
endif
BUILD := _build$(if $(CHAPTER),/chapter)
# Eight processes: each gets a chapter or two, so two or four cores are busy until the end.
SPHINX := $(RUN) -m sphinx -n -W -j 8 -c . -d $(BUILD)/doctrees

.DEFAULT_GOAL := help
.PHONY: help html pdf test test-slow lint experiments lock clean

help:
	@echo "make html         build the book, and check every number in it (CHAPTER=name: one chapter only)"
	@echo "make test         build the book and run the tests"
	@echo "make test-slow    run every program of the book alone, and build the book a second time"
	@echo "make pdf          build the PDF from what make html has executed"
	@echo "make lint         check the code, the ledger and the chapters' cells"
	@echo "make experiments  run what takes minutes and is not recorded yet; says what is left"
	@echo "make lock         make requirements.txt again from pyproject.toml"
	@echo "make clean        remove what was built (not the environment in .venv)"

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Try: make PYTHON=python3.12 html"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --disable-pip-version-check --quiet --requirement requirements.txt
	$(RUN) -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	$(RUN) -c 'import matplotlib.font_manager'
	@touch $@

html: $(INSTALLED)
	$(SPHINX) -b html book $(BUILD)/html
	@echo "Open $(BUILD)/html/$(or $(CHAPTER),index).html"
	@$(if $(CHAPTER),echo "Only $(CHAPTER) was executed: whether every record is verified was not checked.")

pdf: $(INSTALLED)
	@command -v latexmk >/dev/null && command -v xelatex >/dev/null || { \
	    echo "make pdf needs XeLaTeX and latexmk. On Debian or Ubuntu:"; \
	    echo "  apt-get install --no-install-recommends latexmk texlive-xetex texlive-latex-recommended \\"; \
	    echo "    texlive-latex-extra texlive-fonts-recommended fonts-freefont-otf tex-gyre lmodern"; \
	    exit 1; }
	$(SPHINX) -b latex book $(BUILD)/latex
	$(MAKE) -C $(BUILD)/latex LATEXMKOPTS="-silent -halt-on-error -interaction=nonstopmode"
	@echo "Open $(BUILD)/latex/bert-recomputed.pdf"

# Two files of tests at a time, on one thread each, in the order of pyproject.toml: both cores are busy until the end.
test: html
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# What runs the whole book again: each program by itself, and a second build that must be equal to the first.
test-slow: html
	$(RUN) -m pytest tests/slow

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m bookkit lint book/*.md

# Stopped, it goes on where it was; what book/results holds is not run again.
experiments: $(INSTALLED)
	$(RUN) -m bertbook.experiments

# The lock holds no local version label ("+cpu"): pip takes the build of torch that your index offers.
lock:
	$(PYTHON) -m venv _build/lock
	_build/lock/bin/python -m pip install --disable-pip-version-check --quiet pip-tools==7.6.2
	_build/lock/bin/pip-compile --quiet --extra test --strip-extras --no-emit-index-url --no-emit-find-links \
	    --no-emit-trusted-host --no-emit-options --no-header --allow-unsafe --upgrade --output-file requirements.txt pyproject.toml
	sed -i.old 's/+cpu$$//' requirements.txt && rm requirements.txt.old

clean:
	rm -rf _build
