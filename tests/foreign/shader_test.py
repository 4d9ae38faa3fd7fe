#!/usr/bin/env python3
"""Runs foreign shaders through the real command on the Vulkan device at hand (lavapipe in CI).

shader_test.py ASSAY MODULES SOURCES
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

assay, modules, sources = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-shader-"))
passed, failures = 0, []
ALL = "ASSAY_ALL" in os.environ  # ci/test runs a sample
DEEP, PASSED = ((), 0) if ALL else (("--cases", 20), 4)  # few cases are thin
turn = 0
right, the_map = modules / "rmsnorm.spv", sources / "rmsnorm.spv.yaml"


def run(*arguments):
    done = subprocess.run([assay, *map(str, arguments)], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200)
    return done.returncode, done.stdout, done.stderr


def check(condition, text):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(text)
        print("FAILED:", text, flush=True)


def falsify(module, *more, bindings=the_map, contract="rmsnorm"):
    return run("falsify", "--spv", module, "--bindings", bindings, "--contract", contract, "--quiet", *more)


def verdicts():
    code, out, err = falsify(right, "--json")
    kernel = json.loads(out)["kernels"][0] if out else {}
    check(code == 0 and kernel["status"] == "passed" and kernel["kernel"] == "foreign/rmsnorm.spv/main", f"the right shader: exit {code}, {out}{err}")
    obligations = kernel["obligations"]
    refused, cases = (sum(o[key] for o in obligations) for key in ("refused", "cases"))
    reasons = {o["reason"] for o in obligations if o["refused"] > 0}
    # The map asks for a workgroup per row, and the contract admits more rows than a device supports; nothing else is
    # refused.
    check(refused < cases / 50 and all("workgroups along one axis; every device runs 0 to 65535" in reason for reason in reasons),
          f"it takes every case that a device does: {refused} of {cases}: {reasons}")
    for rows, want, words in ((65535, 4, "thin"), (65536, 3, "its map asks for 65536 workgroups along one axis")):
        code, out, err = falsify(right, "--obligation", "FALSIFY-RMSNORM-002", "--dims", f"rows={rows},n=3", "--cases", 2)
        check(code == want and words in out and ("cases refused)" in out) == (want == 3), f"{rows} rows: exit {code}, {out}{err}")
    for name, words in (("eps_outside", "FALSIFY-RMSNORM-002"), ("one_too_many", "FALSIFY-RMSNORM-001")):
        first = shutil.copy(modules / f"{name}.spv", folder / "first.spv")
        code, out, err = falsify(first, "--cases", 20, "--obligation", words)
        check(code == 1 and f"FALSIFIED foreign/first.spv/main  {words}" in out, f"{name}: exit {code}, {out}{err}")
        check(name != "one_too_many" or "it wrote behind the last element of rrms" in out, f"{name} is detected by the words behind: {out}")
        file = folder / f"assay-replays/foreign-first.spv-main.{words}.json"
        first.unlink()
        check(run("replay", file)[0] == 2, f"{name}: a replay without its module is wrong use")
        code, out, err = run("replay", file, "--lib", modules / f"{name}.spv")
        check(code == 1, f"{name}: replay with the module elsewhere: exit {code}, {out}{err}")
        check(run("replay", file, "--lib", right)[0] == 0, f"{name}: the right shader passes the same case")
    dense = folder / "dense.yaml"
    dense.write_text(the_map.read_text() + "requires: dense row-major\n")
    code, out, _ = falsify(right, *DEEP, bindings=dense)
    check(code == PASSED and "refused)" not in out, f"a map that asks for dense rows is given them: {out}")
    swapped = folder / "swapped.yaml"
    swapped.write_text(the_map.read_text().replace("{stride: [x, 0]}, {stride: [y, 0]}", "{stride: [y, 0]}, {stride: [x, 0]}"))
    check(falsify(right, "--cases", 20, bindings=swapped)[0] == 1, "strides that are swapped are falsified")


def expect(words, module=right, text=None, more=(), code=2):
    global turn
    turn += 1
    if not ALL and turn % 4 != 0:
        return
    bindings = the_map
    if text is not None:
        bindings = folder / "bad.yaml"
        bindings.write_text(text)
    got, _, err = falsify(module, "--cases", 1, *more, bindings=bindings)
    check(got == code and err.count("\n") == 1 and words in err, f"exit {got}, said {err!r}, wanted {code} {words!r}")


def wrong_maps():
    good = the_map.read_text()
    changed = lambda before, after: good.replace(before, after)
    expect("bad.yaml:2:11: the tensor 'rrms' has no binding; add 'rrms: N'", text=changed(", rrms: 3", ""))
    expect("bad.yaml:2:15: 'z' is no tensor of rmsnorm", text=changed("{x: 0", "{z: 0"))
    expect("binding 0 is given to x already", text=changed("weight: 1", "weight: 0"))
    expect("write an integer from 0 to 3", text=changed("rrms: 3", "rrms: 4"))
    expect("the map lacks 'bindings'", text="groups: [rows]\n")
    expect("the map lacks 'groups'", text=changed("groups: [rows]\n", ""))
    expect("'m' is no dim or param of rmsnorm", text=changed("[rows]", "[m]"))
    for count in ("rows +", "(rows", "rows rows", "rows)", "1.5"):
        expect("is no count of workgroups", text=changed("[rows]", f'["{count}"]'))
    expect("workgroups have 4 axes", text=changed("[rows]", "[rows, 1, 1, 1]"))
    expect("'m' is no dim, param or tensor", text=changed("push: [n", "push: [m"))
    expect("takes no 4 bytes", text=changed("push: [n", "push: [x"))
    expect("takes no 4 bytes", text=changed("eps]", "{param: eps, as: double}]"))
    expect("has 16 bytes of push constants, and", text=changed("push: [n, ", "push: ["))
    expect("unknown key 'binding'", text=good + "binding: 1\n")
    expect("is still TODO", text=changed("groups: [rows]", "groups: TODO"))
    for groups, refused in (("[rows / 0]", True), ("[\"-1\"]", True), ("[rows - n - 1048576]", True), ("[(rows * 64 + 63) / 64, 1, (n + 1) - n]", False)):
        (folder / "groups.yaml").write_text(changed("[rows]", groups))
        code, out, err = falsify(right, *DEEP, bindings=folder / "groups.yaml")
        check(code == (3 if refused else PASSED), f"groups {groups}: exit {code}, {out}{err}")


def wrong_modules():
    words = right.read_bytes()
    bad = folder / "bad.spv"

    def module(content):
        bad.write_bytes(content)
        return bad

    expect("none.spv: the file cannot be read", module=folder / "none.spv")
    expect("this is no SPIR-V module", module=module(b"text"))
    expect("this is no SPIR-V module", module=module(b""))
    expect("this is no SPIR-V module", module=module(words[:-1]))
    expect("is cut off", module=module(words[:-12]))
    expect("has no compute entry point 'main'", module=module(words.replace(b"main\0", b"mein\0")))
    expect("spirv-val rejects it", module=module(words[:12] + struct.pack("<I", 3) + words[16:]))
    expect("has a binding in set 1", module=modules / "set_one.spv")
    expect("has a binding 4, which", module=modules / "fifth_binding.spv")
    expect("has no binding 3, where", module=modules / "nothing_saved.spv")
    expect("add --contract", module=right, more=("--contract", ""))
    expect("excludes", more=("--lib", right))
    expect("excludes", more=("--backend", "vulkan"))
    got, _, err = run("falsify", "--spv", right, "--contract", "rmsnorm")
    check(got == 2 and "add --bindings MAP.yaml" in err, f"without a map: exit {got}, {err}")
    got, _, err = run("falsify", "--bindings", the_map, "--contract", "rmsnorm")
    check(got == 2 and "--spv" in err, f"a map alone: exit {got}, {err}")
    got, _, err = run("falsify", "--contract", "rmsnorm")
    check(got == 2 and "add --lib, --spv or --python" in err, f"a contract alone: exit {got}, {err}")


for part in (verdicts, wrong_maps, wrong_modules):
    part()
shutil.rmtree(folder, ignore_errors=True)
print(f"{passed} passed, {len(failures)} failed")
sys.exit(1 if failures or not passed else 0)
