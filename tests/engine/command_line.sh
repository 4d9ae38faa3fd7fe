#!/usr/bin/env bash
# End-to-end tests of the command line: exit codes, report files, replay, shards.
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

[ "$(code "$assay" falsify --kernel matmul/cpu/naive --quiet --report r)" = 0 ] || fails 'a right kernel'
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

# A killed mutant is no failure; with the matrix every obligation is tried.
[ "$(code "$assay" mutants transpose --backend cpu --cases 50 --matrix --quiet --report killed)" = 0 ] || fails 'mutants'
grep -q 'failures="0"' killed/junit.xml && xmllint --noout killed/junit.xml || fails 'a killed mutant is a failure in junit.xml'
grep -q 'Kill matrix' killed/mutants.html || fails 'mutants.html'
"$assay" mutants transpose --backend cpu --cases 50 --quiet --json >first.json
python3 - <<'PY' || fails mutants.json
import json
r = json.load(open("killed/mutants.json"))
assert r["killed"] == len(r["mutants"]) == r["operations"]["transpose"]["killed"] > 0
assert all(m["by"] in m["matrix"] for m in r["mutants"]) and any(len(m["matrix"]) > 1 for m in r["mutants"])
first = json.load(open("first.json"))
assert [(m["by"], m["cases"]) for m in r["mutants"]] == [(m["by"], m["cases"]) for m in first["mutants"]]
PY

[ "$(code "$assay" falsify --kernel matmul/cpu/naive --obligation FALSIFY-MM-002 --quiet)" = 0 ] || fails 'one obligation alone'

# A campaign that ends below its floor is thin; --kernel-time never ends one there.
[ "$(code "$assay" falsify --kernel matmul/cpu/naive --cases 5 --quiet --report thin)" = 4 ] && grep -q ' thin: .*% of the default depth' out || fails 'few cases are thin'
grep -q 'failure type="thin"' thin/junit.xml || fails 'thin is a failure in junit.xml'
[ "$(code "$assay" falsify --kernel matmul/cpu/naive --time 1ms --quiet)" = 4 ] || fails 'little time is thin'
[ "$(code "$assay" falsify --kernel matmul/cpu/naive --kernel-time 1ms --quiet)" = 0 ] && grep -q 'passed (floor after' out || fails '--kernel-time goes on to the floor'

# A folder that cannot hold replay files changes no verdict.
mkdir blocked && (cd blocked && touch assay-replays)
[ "$(cd blocked && code "$assay" falsify --kernel mutant/cpu/matmul/dropped_last_k --cases 30 --quiet --first)" = 1 ] && grep -q 'no replay files were written' blocked/err || fails 'replay files that cannot be written'

# One explanation per kernel; --first stops at it.
[ "$(code "$assay" falsify --kernel mutant/cpu/matmul/dropped_last_k --quiet)" = 1 ] && [ "$(grep -c '^FALSIFIED' out)" = 1 ] || fails 'one explanation'
grep -q '^  also fails: FALSIFY-MM-' out || fails 'what else fails'
[ "$(code "$assay" falsify --kernel mutant/cpu/matmul/dropped_last_k --quiet --first --report first)" = 1 ] && ! grep -q 'also fails' out || fails --first
# Obligations left after --first are reported as not run, and their clauses not as never evaluated.
grep -q 'obligations not run)' out && ! grep -q 'NEVER EVALUATED\|not applicable' out && grep -q '<skipped>not run: ' first/junit.xml && xmllint --noout first/junit.xml || fails 'not run'

# The command that a finding names runs as it stands.
[ "$(code bash -c "$(sed -n 's/^  replay *//p' out)")" = 1 ] && grep -q '^mutant/cpu/matmul/dropped_last_k .* falsified$' out || fails 'the replay command of a report'

# gradcheck counts the calls that it makes.
calls() { "$assay" gradcheck transpose --backend cpu --cases "$1" --quiet | sed -n 's/^1 gradients, \([0-9]*\) calls of kernels, .*/\1/p'; }
two=$(calls 2)
[ "${two:-0}" -gt 0 ] && [ "$(calls 6)" = $((3 * two)) ] || fails 'gradcheck counts calls'

# The same seed gives the same cases; shards partition them.
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json >a.json || [ $? = 4 ]
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json --shard 1/2 >s1.json || [ $? = 4 ]
"$assay" falsify transpose --backend cpu --cases 3 --quiet --json --shard 2/2 >s2.json || [ $? = 4 ]
python3 - <<'PY' || fails shards
import json
def elements(*names):
    return sorted((k["kernel"], o["id"], o["elements"]) for n in names for k in json.load(open(n))["kernels"] for o in k["obligations"])
assert elements("a.json") == elements("s1.json", "s2.json")
PY
echo "1 passed, 0 failed"
