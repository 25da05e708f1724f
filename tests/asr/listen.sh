#!/usr/bin/env bash
# Is the bundled voice understood? Speaks held-out sentences in one batch and lets Whisper write them down.
# usage: tests/asr/listen.sh [--precision f32|bf16|int8] [--cfg W] [--text FILE] [--sentences N] [--seeds N] [--model base|tiny.en] [--max-wer PERCENT] [-- SAY_OPTIONS]
set -eu
cd "$(dirname "$0")/../.."
precision=f32 sentences=40 seeds=3 text=tests/fixtures/nano/heldout.txt model=base max_wer="" say=()
while [ $# -gt 0 ]; do
  case $1 in
    --precision) precision=$2; shift 2 ;;
    --cfg) say+=(--cfg "$2"); shift 2 ;;
    --text) text=$2; shift 2 ;;
    --sentences) sentences=$2; shift 2 ;;
    --seeds) seeds=$2; shift 2 ;;
    --model) model=$2; shift 2 ;;
    --max-wer) max_wer=$2; shift 2 ;;
    --) shift; say+=("$@"); break ;;
    *) sed -n 's/^# //p' "$0" >&2; exit 2 ;;
  esac
done
judge=whisper-$model
[ "$model" = tiny.en ] || [ "$model" = base ] || { echo "--model is base or tiny.en" >&2; exit 2; }
[ -f ".asr/$judge/model.bin" ] || tests/asr/setup.sh .asr
cargo build --release --locked --quiet

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin="${CARGO_TARGET_DIR:-target}/release/dovecote"
head -n "$sentences" "$text" > "$work/sentences.txt"
# What is judged is what was to be said: $5 is two words.
"$bin" text --bundle voices/nano < "$work/sentences.txt" > "$work/spoken.txt"
for seed in $(seq 0 $((seeds - 1))); do
  # A sentence that fails is told and leaves a file for the judge, who counts what is missing.
  "$bin" say --batch "$work/sentences.txt" --out-dir "$work/wav$seed" --seed "$seed" \
    --bundle voices/nano --precision "$precision" --speed-report ${say[@]+"${say[@]}"} || echo "some sentences failed" >&2
  .asr/venv/bin/python tests/asr/judge.py "$work/wav$seed" "$work/spoken.txt" --model ".asr/$judge" | tee -a "$work/report.txt"
done
awk -v max="$max_wer" '/^TOTAL/ { match($0, /WER=[0-9.]+/); sum += substr($0, RSTART + 4, RLENGTH - 4); runs++ }
  END { mean = sum / runs; printf "mean word error rate %.2f %% of %d seeds\n", mean, runs
    if (max != "" && mean > max + 0) { print "which is above " max " %"; exit 1 } }' "$work/report.txt"
