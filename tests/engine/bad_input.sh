#!/usr/bin/env bash
# Malformed command lines and replay files: exit code 2 and one clear sentence on standard error each.
set -u
assay=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

expect() {  # expect EXIT WORDS ARGS...
  local code=$1 words=$2 out status
  shift 2
  out=$("$assay" "$@" 2>&1 >/dev/null)
  status=$?
  if [ "$status" -eq "$code" ] && [ "$(wc -l <<<"$out")" -eq 1 ] && grep -qF -- "$words" <<<"$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: assay %s\n  exit %s (want %s), said: %s (want: %s)\n' "$*" "$status" "$code" "$out" "$words"
  fi
}

expect 2 'subcommand is required'
expect 2 "'conquer' is no command" conquer
expect 2 "'conquer' is no command" conquer matmul --quiet
expect 2 'matmull' falsify matmull
expect 2 'no such back end' falsify --backend gpu
expect 2 'no kernel of this id' falsify --kernel matmul/cpu/magic
expect 2 'no chosen operation has it' falsify --obligation FALSIFY-NO-001
expect 2 'not a duration' falsify --time soon
expect 2 'not a duration' falsify --limit -5s
expect 2 '--cases' falsify --cases 0
expect 2 '--cases' falsify --cases many
expect 2 'not a shard' falsify --shard 3/2
expect 2 'not a seed' falsify --seed -1
expect 2 '--jobs' falsify --jobs -2
expect 2 '--time' falsify --cases 3 --time 3s
expect 2 'not UTF-8' falsify --quiet --cases 1 --kernel matmul/cpu/naive --report "$folder/"$'\xff'
expect 2 '--frobnicate' falsify --frobnicate
expect 2 'OP' explain
expect 2 'no contract of this name' explain nothing
expect 2 "did you mean 'softmax'" explain sofmax
expect 2 "did you mean 'softmax'" falsify sofmax
expect 2 'not a duration' falsify --time 5
expect 2 'assay gate: needs either' gate
expect 2 'FILE' replay
expect 2 'cannot be read' replay "$folder/none.json"
echo '{' >"$folder/a.json" && expect 2 'is not JSON' replay "$folder/a.json"
echo '[]' >"$folder/b.json" && expect 2 "'schema'" replay "$folder/b.json"
echo '{"schema": "assay-replay/9"}' >"$folder/c.json" && expect 2 'this version reads' replay "$folder/c.json"
good='{"schema":"assay-replay/1","op":"matmul","kernel":"matmul/cpu/naive","obligation":"FALSIFY-MM-002","case":{"dims":{"m":1,"k":1,"n":1},"strategy":"gaussian","layout":"tight","placement":"sentinels","seed":"1"}}'
change() { sed "s~$1~$2~" <<<"$good" >"$folder/d.json"; }
change '"op":"matmul"' '"op":"x"' && expect 2 'no contract of this name' replay "$folder/d.json"
change 'matmul/cpu/naive' 'gemv/cpu/naive' && expect 2 'not one of matmul' replay "$folder/d.json"
change 'FALSIFY-MM-002' 'FALSIFY-MM-999' && expect 2 'does not have' replay "$folder/d.json"
change '"m":1' '"m":-1' && expect 2 'case.dims.m' replay "$folder/d.json"
change '"m":1' '"m":99999999' && expect 2 'use an integer from' replay "$folder/d.json"
change 'gaussian' 'lucky' && expect 2 'case.strategy' replay "$folder/d.json"
change '"seed":"1"' '"seed":"1","values":{"a":["x"],"b":[1]}' && expect 2 'is not a float' replay "$folder/d.json"
published() { printf '%s\n' "$1" >"$folder/published-v1.yaml"; }
skeleton="$folder/skeleton.yaml"
expect 2 'FILE' import
expect 2 'cannot be read' import "$folder/none.yaml" --output "$skeleton"
published 'equations: {a: [' && expect 2 'published-v1.yaml:2:1: this is not YAML' import "$folder/published-v1.yaml" --output "$skeleton"
published 'metadata: {version: 1}' && expect 2 'published-v1.yaml:1:1: this is no published contract' import "$folder/published-v1.yaml" --output "$skeleton"
published 'equations: {a: {formula: x}}'
expect 2 'named after its operation' import "$folder/published-v1.yaml" --output "$folder/Skeleton.yaml"
expect 2 'could not be written' import "$folder/published-v1.yaml" --output /proc/skeleton.yaml
cp "$folder/published-v1.yaml" "$folder/4d.yaml" && expect 2 'gives no name for the operation' import "$folder/4d.yaml"
touch "$skeleton" && expect 2 'the file exists already' import "$folder/published-v1.yaml" --output "$skeleton"
[ ! -s "$skeleton" ] || { failed=$((failed + 1)); echo "FAILED: import overwrote a file"; }
expect 0 '' import "$folder/published-v1.yaml" --output "$skeleton" --force
grep -q 'by: TODO\|formula\|dims: TODO' "$skeleton" || { failed=$((failed + 1)); echo "FAILED: import --force wrote nothing"; }
expect 2 "'x' is not a dim of matmul" falsify matmul --dims m=2,x=3 --cases 1 --quiet
expect 2 "'m' gives m no whole number" falsify matmul --dims m --cases 1 --quiet
expect 2 "'m=2x' gives m no whole number" falsify matmul --dims m=2x --cases 1 --quiet
expect 2 "'n=9999999' is out of range; use n=N once, with N from 0 to 1048576" falsify matmul --dims n=9999999 --cases 1 --quiet
expect 2 "'n=99999999999999999999' is out of range" falsify matmul --dims n=99999999999999999999 --cases 1 --quiet
expect 2 "'m=3' gives m a second time" falsify matmul --dims m=2,m=3 --cases 1 --quiet
expect 2 'no element in any output' falsify matmul --dims m=0,n=0,k=0 --cases 1 --quiet
expect 2 'no element in any output' falsify matmul --dims m=0 --cases 1 --quiet
expect 2 'its tensors are 1.23e+04 GiB' falsify --kernel matmul/cpu/naive --dims m=1048576,n=1048576,k=1048576 --quiet
expect 2 'use smaller extents, or --jobs 1' falsify matmul --backend cpu --jobs 2 --dims m=1048576,n=1048576 --quiet
expect 2 'judging a case needs' falsify --kernel softmax/cpu/naive --dims rows=1048576,n=1048576 --quiet
expect 2 'judging a case needs' falsify --kernel attention/cpu/naive --dims s=1048576,t=1048576,d=256,kv_heads=64,heads=64 --quiet
expect 2 'heads = 4 is no multiple of kv_heads' falsify attention --dims kv_heads=3,heads=4 --cases 1 --quiet
expect 2 'heads = 4 is no multiple of kv_heads' falsify attention --dims heads=4 --cases 1 --quiet
expect 2 'gives a shape to several operations' falsify matmul gemv --dims m=2 --cases 1 --quiet
# A shape within the kernel's limits; one case is thin.
expect 4 '' falsify matmul --kernel matmul/cpu/naive --dims m=128,k=65,n=130 --cases 1 --quiet
expect 3 'unavailable' mutants --backend cuda tensor_layout
expect 3 'unavailable' falsify --backend cuda --cases 1 --quiet
expect 2 'the folder cannot be created: No such file or directory; name a place' falsify matmul --kernel matmul/cpu/naive --cases 1 --quiet --report /proc/none
touch "$folder/file" && expect 2 'the folder cannot be created: Not a directory; name a place' falsify matmul --kernel matmul/cpu/naive --cases 1 --quiet --report "$folder/file/under"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
