# Every target sets up what it needs: a machine with make and Python 3.11 to 3.13 is enough.

BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup setup-litellm setup-node demo test matrix fuzz test-beside lint bench results lock size accept-spine accept-gateway accept-reflex accept-wire accept-upstream accept-context validity

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

.venv/.ready: requirements/dev.lock pyproject.toml scripts/setup.sh
	@scripts/setup.sh

setup: .venv/.ready ## make .venv with every extra that the tests need

setup-litellm: ## make .venv-litellm with the LiteLLM proxy, apart from all else (0.8 GB)
	@scripts/setup_litellm.sh

setup-node: ## install the client for Node that accept-wire runs, apart from all else
	@scripts/setup_node.sh

demo: .venv/.ready ## a returns desk on four arms: about a minute, 3 at most
	@$(BIN)/reflexarc demo $(ARGS)

test: .venv/.ready ## the whole test suite
	@$(BIN)/pytest -q -n 2 $(ARGS)

matrix: .venv/.ready ## write the snapshots of the golden matrix anew: read what differs
	@PYTHONPATH=. $(BIN)/python -m tests.wire.matrix.write

fuzz: .venv/.ready ## mutate every input of the matrix for 10 minutes (ARGS="--seconds 60 --seed 7")
	@PYTHONPATH=. $(BIN)/python -m tests.wire.fuzzing $(ARGS)

test-beside: .venv/.ready setup-litellm ## tests with a real LiteLLM proxy before and behind the gateway
	@$(BIN)/pytest -q -m beside tests/beside $(ARGS)

lint: .venv/.ready ## ruff, strict types, the floors of the house
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@PYTHONPATH=src $(BIN)/lint-imports

bench: .venv/.ready ## added latency over direct, beside nginx (installed where absent, as root)
	@$(BIN)/python -m reflexarc.bench.latency --install-nginx \
		--json results/latency.json $(ARGS)

accept-spine: .venv/.ready ## measure every promise, a fresh clone too (ARGS=--no-clone: without)
	@$(BIN)/python -m acceptance.spine $(ARGS)

accept-reflex: .venv/.ready ## measure what a reflex worth trusting promises (ARGS=--only speed: a part)
	@$(BIN)/python -m acceptance.reflex $(ARGS)

accept-gateway: .venv/.ready setup-litellm ## measure what a gateway one can leave on promises (ARGS=--only safe: a part)
	@$(BIN)/python -m acceptance.gateway $(ARGS)

accept-wire: .venv/.ready setup-node ## measure every dialect over every upstream (ARGS=--only clients: a part)
	@$(BIN)/python -m acceptance.wire $(ARGS)

accept-upstream: .venv/.ready ## measure System 2, well driven (ARGS=--only chaos: a part)
	@$(BIN)/python -m acceptance.upstream $(ARGS)

accept-context: .venv/.ready ## measure what an agent wastes, and what is done about it (ARGS=--only logs: a part)
	@$(BIN)/python -m acceptance.context $(ARGS)

validity: .venv/.ready ## do certificates keep their promise? 8 minutes on two cores (ARGS="--only tasks": a part)
	@$(BIN)/python -m acceptance.validity $(ARGS)

results: .venv/.ready ## write docs/results.md from results/*.json
	@$(BIN)/python -m acceptance.report

size: .venv/.ready ## what the core install weighs in site-packages
	@$(BIN)/python -m acceptance.size

lock: ## renew requirements/*.lock (needs uv on PATH)
	@scripts/lock.sh
