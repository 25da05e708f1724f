#!/usr/bin/env bash
# Is the bundled voice understood? Speaks held-out sentences in one batch and lets Whisper write them down.
# usage: tests/asr/listen.sh [--precision f32|bf16|int8] [--cfg W] [--sentences N] [--model base|tiny.en] [--max-wer PERCENT] [-- SAY_OPTIONS]
set -eu
cd "$(dirname "$0")/../.."
precision=f32 sentences=40 model=base max_wer="" say=()
while [ $# -gt 0 ]; do
  case $1 in
    --precision) precision=$2; shift 2 ;;
    --cfg) say+=(--cfg "$2"); shift 2 ;;
    --sentences) sentences=$2; shift 2 ;;
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
head -n "$sentences" tests/fixtures/nano/heldout.txt > "$work/sentences.txt"
# A sentence that fails is told and leaves a file for the judge, who counts what is missing.
"${CARGO_TARGET_DIR:-target}/release/dovecote" say --batch "$work/sentences.txt" --out-dir "$work/wav" \
  --bundle voices/nano --precision "$precision" --speed-report ${say[@]+"${say[@]}"} || echo "some sentences failed" >&2
.asr/venv/bin/python tests/asr/judge.py "$work/wav" "$work/sentences.txt" --model ".asr/$judge" | tee "$work/report.txt"
[ -z "$max_wer" ] && exit 0
awk -v max="$max_wer" '/^TOTAL/ { match($0, /WER=[0-9.]+/); wer = substr($0, RSTART + 4, RLENGTH - 4)
  if (wer + 0 > max + 0) { print "word error rate " wer " % is above " max " %"; exit 1 } }' "$work/report.txt"
