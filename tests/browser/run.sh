#!/usr/bin/env bash
# The demo page in a real browser. Installs what this needs and the machine lacks: Node, Chromium, and one package.
set -eu
cd "$(dirname "$0")"

install() {
  if ! command -v apt-get >/dev/null; then
    echo "the browser test needs $1: install it with your package manager, then run this command again" >&2
    exit 1
  fi
  as_root=""
  [ "$(id -u)" = 0 ] || as_root=sudo
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

command -v npm >/dev/null || install nodejs npm
if [ "$(node --print 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  echo "the browser test needs Node 20 or newer; here is $(node --version)" >&2
  exit 1
fi
if [ -z "${CHROMIUM:-}" ]; then
  command -v chromium >/dev/null || install chromium
  CHROMIUM=$(command -v chromium)
  export CHROMIUM
fi
npm ci --silent --no-audit --no-fund
npm test
