#!/bin/sh
# Renews the lock files for Python 3.11 to 3.13 with hashes; needs uv. No index is written into them.
set -eu
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "lock: uv is not on PATH (pip install uv)" >&2; exit 1; }
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header "$@"
}
compile pyproject.toml --extra learn --extra local --group dev -o requirements/dev.lock
compile pyproject.toml -c requirements/dev.lock -o requirements/core.lock
compile requirements/litellm.in -o requirements/litellm.lock
