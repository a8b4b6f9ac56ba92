#!/bin/sh
# Makes .venv-litellm with the LiteLLM proxy, from its own lock file: its packages never meet ours.
# Safe to run again and again; PYTHON=/path/to/python3.12 chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
lock=requirements/litellm.lock
if [ -x .venv-litellm/bin/litellm ] && cmp -s "$lock" .venv-litellm/.ready; then exit 0; fi

python=${PYTHON:-}
for candidate in .venv/bin/python python3.11 python3.12 python3.13 python3; do
    if [ -n "$python" ]; then break; fi
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
        2>/dev/null; then python=$candidate; fi
done
if [ -z "$python" ]; then
    echo "setup-litellm: needs Python 3.11, 3.12 or 3.13 with its venv module; name one: PYTHON=..." >&2
    exit 1
fi
echo "setup-litellm: making .venv-litellm with $("$python" --version) (about 700 MiB, a few minutes)"
rm -rf .venv-litellm
"$python" -m venv .venv-litellm
.venv-litellm/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
cp "$lock" .venv-litellm/.ready
echo "setup-litellm: done, .venv-litellm/bin/litellm is there"
