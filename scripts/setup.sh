#!/bin/sh
# Makes .venv with everything the tests need, from the lock file. Safe to run again and again.
#
#   PYTHON=/path/to/python3.12 scripts/setup.sh     to choose the interpreter
#
# Needs a Python from 3.11 to 3.13 with its venv module, and nothing else.
set -eu
cd "$(dirname "$0")/.."

fits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

choose() {
    if [ -n "${PYTHON:-}" ]; then
        if fits "$PYTHON"; then echo "$PYTHON"; return; fi
        echo "setup: PYTHON=$PYTHON is not a Python from 3.11 to 3.13" >&2
        return 1
    fi
    for python in python3.11 python3.12 python3.13 python3 python; do
        if command -v "$python" >/dev/null 2>&1 && fits "$python"; then echo "$python"; return; fi
    done
    found=$(python3 --version 2>&1 || echo "no python3")
    echo "setup: reflexarc needs Python 3.11, 3.12 or 3.13; this machine has: $found." >&2
    echo "setup: install one (Debian, Ubuntu: apt install python3.12 python3.12-venv), or name one:" >&2
    echo "setup:     make setup PYTHON=/path/to/python3.12" >&2
    return 1
}

if ! { [ -x .venv/bin/python ] && fits .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; }; then
    python=$(choose)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "setup: this Python $version cannot make virtual environments: its venv module is missing." >&2
        echo "setup: install it and run make again (Debian, Ubuntu: apt install python$version-venv)." >&2
        exit 1
    fi
    echo "setup: making .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
fi

echo "setup: installing the locked packages (a few minutes the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r requirements/dev.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation -e .
cat requirements/dev.lock pyproject.toml | cksum >.venv/.ready
echo "setup: done, .venv/bin/reflexarc is there"
