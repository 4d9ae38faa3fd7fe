#!/usr/bin/env python3
"""Unusable files (pipes, devices, folders), full disks, and replays larger than the machine give one sentence and exit
code 2 at once, and existing files stay intact.

files_test.py ASSAY
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

assay = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-files-"))
passed, failures = 0, []


def check(condition, text):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(text)
        print("FAILED:", text, flush=True)


def run(*arguments, out=subprocess.PIPE, file_bytes=None, cwd=folder):
    def limit():
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    try:
        return subprocess.run([assay, *map(str, arguments)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
                              timeout=120, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, "no end", "", "")


def refused(what, words, *arguments, **how):
    done = run(*arguments, **how)
    check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and words in done.stderr, f"{what}: exit {done.returncode}, said {done.stderr!r}")


def no_files():
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    shim = folder / "pipe.yaml"
    os.mkfifo(shim)
    lib = ("--lib", assay, "--symbol", "f", "--contract", "scale")
    for what in (pipe, "/dev/zero", folder):
        for arguments in (("replay", what), ("merge", what), ("false-alarms", "--record", what), ("false-alarms", "--record", folder / "new", "--add", what),
                          ("import", what, "--output", "x.yaml"), ("falsify", *lib, "--shim", what), ("falsify", "--lib", what, *lib[2:]),
                          ("falsify", "--spv", what, "--bindings", what, "--contract", "scale"), ("falsify", "scale", "--journal", what, "--cases", 1),
                          ("falsify", "scale", "--backend", "cpu", "--cases", 1, "--report", what) if what != folder else None):
            if arguments is not None:
                refused(f"{' '.join(map(str, arguments))}", str(what), *arguments)


def full_disks():
    wrong = ("falsify", "--kernel", "mutant/cpu/matmul/dropped_last_k", "--cases", 2, "--quiet")
    report = folder / "report"
    report.mkdir()
    (report / "report.json").write_text("before")
    refused("a full disk", "could not be written: File too large", *wrong, "--report", report, file_bytes=4096)
    check((report / "report.json").read_text() == "before", "what could not be replaced is as it was")
    check(not list(report.rglob("*.part")), "nothing is left of what could not be written")
    check(run(*wrong, "--report", report).returncode == 1 and json.loads((report / "report.json").read_text())["totals"]["falsified"] == 1,
          "with room it is replaced")
    link = folder / "link"
    link.mkdir()
    (link / "report.json").symlink_to(report / "report.json")
    (report / "report.json").write_text("before")
    run(*wrong, "--report", link)
    check((link / "report.json").is_symlink() and (report / "report.json").read_text() != "before", "a link is followed")
    with open("/dev/full", "w") as full:
        for arguments in (("list",), ("list", "--json"), ("explain", "matmul"), ("--version",), (*wrong, "--json")):
            refused(f"{arguments} to a full disk", "standard output", *arguments, out=full)


def giants():
    wrong = ("falsify", "--kernel", "mutant/cpu/matmul/dropped_last_k", "--cases", 2, "--quiet", "--report", folder / "giants")
    run(*wrong)
    file = next((folder / "giants" / "replay").glob("*.json"))
    for dims in ({"m": 16384, "k": 16384, "n": 16384}, {"m": 16384, "k": 0, "n": 16384}):
        replay = json.loads(file.read_text())
        replay["case"]["dims"] = dims
        replay["case"].pop("values", None)
        replay["case"].pop("prelude", None)
        giant = folder / "giant.json"
        giant.write_text(json.dumps(replay))
        if dims["k"] or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < 8 << 30:
            refused(f"a replay of {dims}", "giant.json: case", "replay", giant)


no_files()
full_disks()
giants()
shutil.rmtree(folder, ignore_errors=True)
print(f"{passed} passed, {len(failures)} failed")
sys.exit(1 if failures or not passed else 0)
