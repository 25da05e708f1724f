#!/usr/bin/env bash
# Everything that must hold: format, lints, documentation, tests. Continuous integration runs this file.
set -eu
cd "$(dirname "$0")"
./setup.sh
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
cargo test --workspace --locked
tests/browser/run.sh
tests/clients/run.sh --sdks
cargo check --workspace --locked --features dovecote-gateway/cuda
cargo check --workspace --locked --no-default-features
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --locked --no-deps --quiet
