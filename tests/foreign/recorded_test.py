#!/usr/bin/env python3
"""Kernels that ran elsewhere: recorded_test.py ASSAY. Right results pass, planted faults are found and shrink from round to round, and
files that do not fit are refused in one sentence."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

assay, here = sys.argv[1], pathlib.Path(__file__).resolve().parent
try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: this Python has no NumPy (apt-get install python3-numpy)")
    sys.exit(77)


def run(*args, code=0):
    done = subprocess.run([assay, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def kernel(folder, *fault):
    subprocess.run([sys.executable, here / "recorded_numpy.py", folder, *fault], check=True)


def extents(text):
    return tuple(int(n) for n in re.search(r"case +rows=(\d+) n=(\d+)", text).groups())


with tempfile.TemporaryDirectory() as top:
    folder = pathlib.Path(top) / "right"
    text = run("cases", "rmsnorm", "--out", folder)
    assert re.match(r"\d+ calls of rmsnorm, [\d.]+ MB", text), text
    assert "holds no results" in run("check", folder, code=2)
    kernel(folder)
    report = json.loads(run("check", folder, "--json"))
    assert report["totals"]["passed"] == 1 and report["requests"] == 0, report["totals"]
    verdicts = {x["id"]: x["verdict"] for x in report["kernels"][0]["obligations"]}
    assert verdicts["FALSIFY-RMSNORM-005"] == "not applicable", verdicts  # the same call twice: it was recorded once

    # A part of the results is no evidence, and is no pass.
    few = pathlib.Path(top) / "few"
    run("cases", "rmsnorm", "--out", few)
    index = json.loads((few / "cases.json").read_text())
    (few / "cases.json").write_text(json.dumps({**index, "calls": index["calls"][:40]}))
    kernel(few)
    (few / "cases.json").write_text(json.dumps(index))
    refused = run("check", few, "--no-requests", code=3)
    assert "no results hold this call" in refused, refused

    # Results of another call, of another shape, and twice.
    first = index["calls"][0]["id"]
    for wrong, says in ((("results-0001", "elsewhere-0001"), "holds no results"),):
        shutil.move(few / f"{wrong[0]}.safetensors", few / f"{wrong[1]}.safetensors")
        assert says in run("check", few, code=2)
    shutil.copy(few / "elsewhere-0001.safetensors", few / "results-0001.safetensors")
    shutil.copy(few / "elsewhere-0001.safetensors", few / "results-0002.safetensors")
    assert "which another file of results has too" in run("check", few, code=2)
    (few / "results-0002.safetensors").unlink()
    data = (few / "results-0001.safetensors").read_bytes()
    (few / "results-0001.safetensors").write_bytes(data.replace(first.encode(), b"0" * 20))
    assert "is no output of a call in cases.json" in run("check", few, code=2)
    (few / "results-0001.safetensors").write_bytes(data[:-4])
    assert "bytes where its tensors end" in run("check", few, code=2)
    (few / "cases.json").write_text("{")
    assert "is no JSON" in run("check", few, code=2)
    assert "holds cases already" in run("cases", "rmsnorm", "--out", few, code=2)
    assert "says where a kernel runs" in run("cases", "rmsnorm", "--out", pathlib.Path(top) / "x", "--declare", "backend=cuda", code=2)

    # Faults: found in the first round; later rounds hold the calls that the search for a smaller one asked for.
    for fault, least in (("eps_outside", (1, 1)), ("short_mean", (1, 4928))):
        folder = pathlib.Path(top) / fault
        run("cases", "rmsnorm", "--out", folder)
        sizes = []
        for _ in range(4):
            kernel(folder, fault)
            sizes.append(extents(run("check", folder, code=1)))
        assert sizes[0] > sizes[-1] and sizes[-1] <= least, sizes
print("recorded results: a right kernel passed, two faults found and shrunk, nine misuses refused")
