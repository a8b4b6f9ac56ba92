#!/bin/sh
# Installs the client for Node that make accept-wire runs, from its lock file. Without Node it says
# so, and what else is measured still is.
set -eu
cd "$(dirname "$0")/../acceptance/node"
if ! command -v npm >/dev/null 2>&1; then
    echo "setup-node: npm is not on PATH (Node 20 or later); the lines that need it are not met" >&2
    exit 0
fi
if [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
echo "setup-node: installing the locked packages"
npm ci --silent --no-audit --no-fund
: >node_modules/.ready
