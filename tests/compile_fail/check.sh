#!/usr/bin/env bash
# Usage: check.sh CONTRACTGEN COMPILER SOURCE_DIR [INCLUDE_DIR...]
# Generates each contract of this folder and compiles it. The compiler must report the line marked `must not compile`; a
# contract without a mark must compile.
set -euo pipefail
contractgen=$1 compiler=$2 source=$3
shift 3
includes=(-I"$source/src")
for folder in "$@"; do includes+=(-I"$folder"); done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
seen=0 turn=0

fail() {
  echo "$1" >&2
  failures=$((failures + 1))
}

for contract in "$source"/tests/compile_fail/*.yaml; do
  name=$(basename "$contract" .yaml)
  turn=$((turn + 1))
  [[ -n ${ASSAY_ALL:-} || $((turn % 4)) -eq 1 || $name == compiles ]] || continue  # ci/test takes every fourth
  seen=$((seen + 1))
  "$contractgen" "$scratch" "$source" "$contract"
  line=$(grep -n 'must not compile' "$contract" | cut -d: -f1 || true)
  # The negative tests compile violations.
  files=("$scratch/ops/$name.cpp")
  [[ $name != violation && $name != compiles ]] || files+=("$scratch/${name}_negative_test.cpp")
  output=$("$compiler" -std=c++20 -fsyntax-only -fno-diagnostics-color "${includes[@]}" -I"$source" -I"$scratch" \
           "${files[@]}" 2>&1) && compiled=yes || compiled=no
  if [[ -z $line ]]; then
    [[ $compiled == yes ]] || fail "$name: does not compile although nothing is wrong with it: $output"
  elif [[ $compiled == yes ]]; then
    fail "$name: compiles"
  elif ! grep -q "tests/compile_fail/$name.yaml:$line:[0-9]*: error:" <<<"$output"; then
    fail "$name: no error at line $line of the contract: $output"
  fi
done
echo "$seen contracts, $failures failures"
[[ $seen -gt 1 && $failures -eq 0 ]]
