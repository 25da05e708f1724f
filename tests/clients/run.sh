#!/usr/bin/env bash
# Clients that others wrote, unmodified, against this server: run.sh [-v] [CLIENT..]   (all of them without a name)
# Installs what is pinned here under .clients/ and js/node_modules/ at the first run, builds the server, and plays the cases.
set -eu
cd "$(dirname "$0")"
ROOT=$PWD/../..
VENV=$ROOT/.clients/venv

# Installs again only when the list has changed since.
[ -x "$VENV/bin/python" ] || python3 -m venv "$VENV"
if ! cmp -s requirements.txt "$VENV/installed.txt"; then
  "$VENV/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt "$VENV/installed.txt"
fi
if ! cmp -s js/package-lock.json js/node_modules/installed.json; then
  npm --prefix js ci --silent --no-audit --no-fund
  cp js/package-lock.json js/node_modules/installed.json
fi
[ -n "${DOVECOTE:-}" ] || cargo build --workspace --locked --quiet
export PYTHONPATH=$ROOT/clients/python/src
exec "$VENV/bin/python" -m checks "$@"
