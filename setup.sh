#!/usr/bin/env bash
# Installs the one native package that the build needs and this machine may lack: cmake, which builds the bundled libopus.
set -eu
command -v cmake >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
  echo "Dovecote needs cmake to build libopus. Install it with your package manager, then run this command again." >&2
  exit 1
fi
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
$as_root apt-get update -qq && $as_root apt-get install -y -qq cmake >/dev/null
