# Every recipe also works pasted by hand.

check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo test --workspace --locked

test:
    ./test.sh

bench:
    cargo bench --workspace

listen:
    tests/asr/listen.sh
