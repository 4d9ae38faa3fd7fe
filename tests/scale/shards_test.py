#!/usr/bin/env python3
"""Shards are disjoint and complete; `assay merge` gives the result of a single run, or an error.

shards_test.py ASSAY
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

from checks import Checks, Command
from same_report import compare

checks = Checks()
check = checks.check
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-shards-"))
assay = Command(sys.argv[1], folder, checks)
WRONG = "mutant/cpu/matmul/dropped_last_k"


def run_shards(name, count, *campaign, codes=(0, 4)):
    """Returns the report files of `count` shards."""
    files = []
    for i in range(1, count + 1):
        status, _, said = assay.run("falsify", *campaign, "--shard", f"{i}/{count}", "--quiet", "--report", folder / f"{name}{i}of{count}")
        check(status in codes, f"shard {i}/{count}: exit {status}: {said}")
        files.append(folder / f"{name}{i}of{count}" / "report.json")
    return files


def kernels(file):
    return [k["kernel"] for k in json.loads(file.read_text())["kernels"]]


def union():
    """1, 2 and 7 shards give the same verdicts and the same cases; ci/test tries 7."""
    campaign = ("transpose", "softmax", "gemv", "--backend", "cpu", "--cases", "6")
    whole = assay.report("falsify", *campaign)
    ids = [k["kernel"] for k in whole["kernels"]]
    check(len(ids) > 7 and whole["totals"]["cases"] > 0, f"more kernels than shards: {ids}")
    for count in (1, 2, 7) if "ASSAY_ALL" in os.environ else (7,):
        files = run_shards("union", count, *campaign)
        parts = [kernels(f) for f in files]
        check(sorted(sum(parts, [])) == ids, f"{count} shards hold each kernel once: {parts}")
        check(max(map(len, parts)) - min(map(len, parts)) <= 1, f"and as many each: {[len(p) for p in parts]}")
        status, said, _ = assay.run("merge", *reversed(files), "--report", folder / f"merged{count}")
        merged = json.loads((folder / f"merged{count}" / "report.json").read_text())
        check(status == 4 and f"{len(ids)} kernels" in said, f"merge of {count}: exit {status}, {said[-200:]}")
        check(compare(whole, merged) == [], f"merged from {count} shards it is another report: {compare(whole, merged)[:5]}")
        check(not any(k.startswith("whole") for k in merged), "a merged report is whole")
    for file in ("report.html", "junit.xml", "assay.sarif"):
        check((folder / "merged7" / file).stat().st_size > 0, f"merge writes {file}")
    check(assay.report("merge", *run_shards("union", 2, *campaign))["totals"] == whole["totals"], "merge --json prints the report")


def findings():
    """A finding of one shard falsifies the whole, even if the other shard is empty."""
    campaign = ("--kernel", WRONG, "--cases", "30")
    whole = assay.report("falsify", *campaign, code=1)
    files = run_shards("wrong", 2, *campaign, codes=(0, 1))
    check([len(kernels(f)) for f in files] == [1, 0], "a shard may be empty")
    status, said, _ = assay.run("merge", *files, "--report", folder / "wrong")
    check(status == 1 and f"FALSIFIED {WRONG}" in said, f"merge of a falsified shard: exit {status}, {said[:300]}")
    merged = json.loads((folder / "wrong" / "report.json").read_text())
    check(compare(whole, merged) == [], f"its report: {compare(whole, merged)[:5]}")
    for o in merged["kernels"][0]["obligations"]:
        if "counterexample" in o:
            status, said, _ = assay.run("replay", o["counterexample"]["file"])
            check(status == 1 and "falsified" in said, f"a merged report's replay file: exit {status}, {said}")
    check((folder / "wrong" / "replay").is_dir(), "replay files of a merged report")


def exit_codes():
    """Exit codes for a named kernel that is unavailable, and for a clause that only one shard fails to reach."""
    files = run_shards("all", 2, "transpose", "--backend", "cpu")
    edited = json.loads(files[0].read_text())
    check(edited["never_evaluated"] == [], "a shard leaves clauses to the whole")
    documents = [json.loads(f.read_text()) for f in files]
    for d in documents:
        for k in d["kernels"]:
            k["clauses"][0]["evaluated"] = 0
    unreached = write("unreached", documents)
    status, said, _ = assay.run("merge", *unreached)
    check(status == 1 and "NEVER EVALUATED" in said, f"a clause that no shard reaches: exit {status}")
    for k in documents[0]["kernels"]:
        k["status"] = "unavailable"
        for o in k["obligations"]:
            o["verdict"], o["reason"] = "unavailable", "no device"
    for d in documents:
        for k in d["kernels"]:
            k["clauses"][0]["evaluated"] = 1
    status, _, _ = assay.run("merge", *write("missing", documents))
    check(status == 3, f"a back end that was asked for and is not here: exit {status}")


def write(name, documents):
    files = [folder / f"{name}{i}.json" for i in range(len(documents))]
    for file, document in zip(files, documents):
        file.write_text(json.dumps(document))
    return files


def refusals():
    campaign = ("transpose", "gemv", "--backend", "cpu", "--cases", "2")
    files = run_shards("refuse", 3, *campaign)
    first, second, third = files
    assay.refused("REPORT", "merge")
    assay.refused("one is missing: 2", "merge", first, third)
    assay.refused("2 are missing: 1, 2", "merge", third)
    assay.refused("is shard 2 of 3, and so is", "merge", first, second, third, second)
    assay.refused("cannot be read", "merge", first, second, folder / "none.json")
    assay.run("falsify", *campaign, "--quiet", "--report", folder / "unsharded")
    assay.refused("is not the report of a shard", "merge", folder / "unsharded" / "report.json")
    status, said, _ = assay.run("merge", *files, "--report", "/proc/none")
    check(status == 2 and said == "", f"a folder that cannot be written: exit {status}")

    other = run_shards("seed", 3, *campaign, "--seed", "3")
    assay.refused("--seed is not that of", "merge", first, second, other[2])
    other = run_shards("other", 3, "transpose", "gemv", "softmax", "--backend", "cpu", "--cases", "2")
    assay.refused("--ops is not that of", "merge", first, second, other[2])
    other = run_shards("limit", 3, *campaign, "--limit", "11s")
    assay.refused("--limit is not that of", "merge", first, second, other[2])
    other = run_shards("count", 2, *campaign)
    assay.refused("the number of shards", "merge", first, second, other[1])

    def changed(change, words):
        documents = [json.loads(f.read_text()) for f in files]
        change(documents)
        assay.refused(words, "merge", *write("changed", documents))

    changed(lambda d: d[1]["kernels"].append(d[0]["kernels"][0]), "holds")
    changed(lambda d: d[1]["kernels"].pop(), "is in no shard")
    changed(lambda d: d[1]["kernels"][0].update(kernel="transpose/cpu/other"), "is none of the run's kernels")
    changed(lambda d: d[2]["whole"]["kernels"].pop(), "the list of kernels is not that of")
    changed(lambda d: d[2]["whole"].update(program="0" * 64), "the program (its SHA-256) is not that of")
    changed(lambda d: d[2].update(version="0.0.1"), "the version is not that of")
    changed(lambda d: d[2].pop("whole"), "is not the report of a shard")
    changed(lambda d: d[2].update(kernels=3), "kernels")


union()
findings()
exit_codes()
refusals()
shutil.rmtree(folder)
sys.exit(checks.result())
