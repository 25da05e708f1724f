#!/usr/bin/env bash
# Clients that others wrote, unmodified, against this server: run.sh [-v] [--sdks] [CLIENT..]   (all of them without a name)
# Installs what is pinned here under .clients/ and js/node_modules/ at the first run, builds the server, and plays the cases.
# With --sdks it leaves out the agent frameworks, which are most of what is to be installed.
set -eu
cd "$(dirname "$0")"
ROOT=$PWD/../..
VENV=$ROOT/.clients/venv

install() {
  if ! command -v apt-get >/dev/null; then
    echo "the checks with real clients need $1: install it with your package manager, then run this command again" >&2
    exit 1
  fi
  as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Installs again only when the list has changed since; who has the frameworks has the SDKs too.
packages() {
  if cmp -s requirements.txt "$VENV/installed.txt"; then return; fi
  case " $* " in
    *" --sdks "*)
      if cmp -s requirements.txt "$VENV/installed-sdks.txt"; then return; fi
      "$VENV/bin/pip" install --quiet --disable-pip-version-check -c requirements.txt -r requirements-sdks.in
      cp requirements.txt "$VENV/installed-sdks.txt" ;;
    *)
      "$VENV/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
      cp requirements.txt "$VENV/installed.txt" ;;
  esac
}

command -v npm >/dev/null || install nodejs npm
command -v openssl >/dev/null || install openssl
[ -x "$VENV/bin/pip" ] || python3 -m venv "$VENV" 2>/dev/null || { install python3-venv; python3 -m venv "$VENV"; }
packages "$@"
if ! cmp -s js/package-lock.json js/node_modules/installed.json; then
  npm --prefix js ci --silent --no-audit --no-fund
  cp js/package-lock.json js/node_modules/installed.json
fi
[ -n "${DOVECOTE:-}" ] || cargo build --workspace --locked --quiet
export PYTHONPATH=$ROOT/clients/python/src
exec "$VENV/bin/python" -m checks "$@"
