#!/usr/bin/env bash
# The whole path through the command line: exit codes, report files, replay, shards.
set -eu
assay=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fails() { echo "FAILED: $*"; exit 1; }
code() { local status=0; "$@" >out 2>err || status=$?; echo "$status"; }

[ "$(code "$assay" doctor)" = 0 ] || fails doctor
[ "$(code "$assay" list --json)" = 0 ] && python3 -c 'import json; json.load(open("out"))' || fails 'list --json'
[ "$(code "$assay" explain matmul)" = 0 ] && grep -q MM-PRE-001 out || fails explain

[ "$(code "$assay" falsify --kernel matmul/cpu/naive --cases 5 --quiet --report r)" = 0 ] || fails 'a right kernel'
xmllint --noout r/junit.xml || fails 'junit.xml is not XML'
python3 - <<'PY' || fails report.json
import json
r = json.load(open("r/report.json"))
assert r["schema"] == "assay-report/1" and r["totals"]["falsified"] == 0 and r["totals"]["elements"] > 0
assert r["never_evaluated"] == [] and all(c["evaluated"] > 0 for c in r["clauses"])
PY

[ "$(code "$assay" falsify --kernel mutant/cpu/matmul/dropped_last_k --cases 30 --quiet --report m)" = 1 ] || fails 'a wrong kernel'
replay=$(ls m/replay/*.json | head -n 1)
[ "$(code "$assay" replay "$replay")" = 1 ] && grep -q falsified out || fails replay
sed 's~mutant/cpu/matmul/dropped_last_k~matmul/cpu/naive~' "$replay" >right.json
[ "$(code "$assay" replay right.json)" = 0 ] || fails 'replay of a right kernel'

# A mutant that is killed is no failure; with the matrix every obligation is tried.
[ "$(code "$assay" mutants transpose --backend cpu --cases 20 --matrix --quiet --report killed)" = 0 ] || fails 'mutants'
grep -q 'failures="0"' killed/junit.xml && xmllint --noout killed/junit.xml || fails 'a killed mutant is a failure in junit.xml'
grep -q 'Kill matrix' killed/mutants.html || fails 'mutants.html'
"$assay" mutants transpose --backend cpu --cases 20 --quiet --json >first.json
python3 - <<'PY' || fails mutants.json
import json
r = json.load(open("killed/mutants.json"))
assert r["killed"] == len(r["mutants"]) == r["operations"]["transpose"]["killed"] > 0
assert all(m["by"] in m["matrix"] for m in r["mutants"]) and any(len(m["matrix"]) > 1 for m in r["mutants"])
first = json.load(open("first.json"))
assert [(m["by"], m["cases"]) for m in r["mutants"]] == [(m["by"], m["cases"]) for m in first["mutants"]]
PY

[ "$(code "$assay" falsify --kernel matmul/cpu/naive --obligation FALSIFY-MM-002 --cases 5 --quiet)" = 0 ] || fails 'one obligation alone'

# The same seed finds the same cases; shards are parts of the whole.
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json >a.json
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json --shard 1/2 >s1.json
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json --shard 2/2 >s2.json
python3 - <<'PY' || fails shards
import json
def elements(*names):
    return sorted((k["kernel"], o["id"], o["elements"]) for n in names for k in json.load(open(n))["kernels"] for o in k["obligations"])
assert elements("a.json") == elements("s1.json", "s2.json")
PY
echo "1 passed, 0 failed"
