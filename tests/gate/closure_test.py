#!/usr/bin/env python3
"""The files that the gate hashes for each kernel, found in the text alone, are at least those that the build used: what the
compiler read for it (ninja's record), and what the linker took what it calls from (nm).

closure_test.py ASSAY BUILD SOURCE
"""
import json
import os
import pathlib
import re
import subprocess
import sys

assay, build, source = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
ENTRY = {"cpu": "kernels/cpu/{}.cpp", "cuda-host": "kernels/cuda/{}.cu", "vulkan": "kernels/vulkan/{}.cpp"}
OURS = re.compile(r"(kernels|falsify|reference|contracts|src)/")
OTHERS = re.compile(r"falsify/(mutants|automatic|spirv|gate)/|src/cli/|tests/")


def output(*command):
    return subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout


def relative(path):
    """From the top of the repository; None where it is not in it."""
    path = pathlib.Path(os.path.normpath(build / path))
    for folder, prefix in ((build / "generated", "generated/"), (source, "")):
        if path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return None


def files_read():
    """Object or other output, and the files that it was made from."""
    made, files = None, {}
    for line in output("ninja", "-t", "deps").splitlines():
        if line.startswith("    "):
            files[made].add(relative(line.strip()))
        elif line.strip():
            made = line.split(":")[0]
            files[made] = set()
    return files


def objects():
    """Source, and its objects, of kernels, properties, certificates and generated code."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name, made = relative(entry["file"]), re.search(r" -o (\S+)", entry["command"])[1]
        if name and not OTHERS.match(name) and not re.search(r"mutants|tests/", made):
            found.setdefault(name, set()).add(made)
    return found


def symbols(made):
    defined, wanted = set(), set()
    for line in output("nm", made).splitlines():
        kind, symbol = line.split()[-2:]
        (wanted if kind == "U" else defined if kind in "TDBRV" else set()).add(symbol)
    return defined, wanted


def is_engine(path):
    return (path.startswith(("falsify/engine/", "falsify/audit/", "src/core/", "src/contractgen/", "src/runtime/")) or path == "contracts/numerics.yaml"
            or (path.startswith("src/contract/") and not path.startswith("src/contract/certificates/")))


plan = json.loads(output(assay, "gate", "--all", "--plan", "--json", "--root", source))
closures = {t["kernel"]: set(t["files"]) for t in plan["touched"]}
unknown = {f for files in closures.values() for f in files if "#include" in f}
for include in sorted(unknown):
    print("FAILED: cannot be followed:", include)

read, sources = files_read(), objects()
made_from = {o: name for name, made in sources.items() for o in made}
tables = {o: symbols(o) for o, name in made_from.items()
          if name.startswith(("kernels/", "falsify/", "src/contract/certificates/", "generated/")) and (build / o).exists()}
definers = {}
for o, (defined, _) in tables.items():
    for symbol in defined:
        definers.setdefault(symbol, set()).add(o)


def linked(starts):
    """Objects of kernels, properties and certificates that these need."""
    seen, open_ = set(), list(starts)
    while open_:
        o = open_.pop()
        if o in seen or o not in tables:
            continue
        seen.add(o)
        for symbol in tables[o][1]:
            # Tables by name (operations, oracles) name every operation, entry points of others among them.
            open_ += [d for d in definers.get(symbol, ()) if not made_from[d].startswith("generated/")]
    return seen


def hashed_as(path, op):
    """The file of the repository that stands for one that was read."""
    generated = re.match(r"generated/(?:ops/)?(\w+?)(?:_obligations|_oracle)?\.[ch]pp$", path)
    if generated:
        return {f"contracts/{generated[1]}.yaml"}
    shader = re.match(r"generated/shaders/(\w+)\.(hpp|inc)$", path)
    if shader:
        return {f for f in read.get(f"generated/shaders/{shader[1]}.inc", ()) if f and OURS.match(f)}
    return {path} if OURS.match(path) else set()


failed = len(unknown)
checked = 0
for kernel, closure in closures.items():
    op, backend = kernel.split("/")[:2]
    if backend not in ENTRY:  # a device's twin has the files of cuda-host
        continue
    starts = set()
    for name in (ENTRY[backend], "falsify/{}.cpp", "generated/ops/{}.cpp", "generated/{}_oracle.cpp", "generated/{}_obligations.cpp"):
        starts |= sources.get(name.format(op), set())
    needed = set()
    for o in linked(starts):
        for path in read.get(o, set()) | {made_from[o]}:
            if path:
                needed |= hashed_as(path, op)
    # The gradients of an operation are in its oracle, and in no campaign against it.
    backward = next((c for k, c in closures.items() if k.startswith(f"{op}_backward/")), set())
    missing = {p for p in needed - closure if not is_engine(p) and not (p.startswith("reference/") and p in backward)}
    checked += len(needed)
    if missing:
        failed += 1
        print(f"FAILED: {kernel} is built from files that its hash does not cover: {', '.join(sorted(missing)[:5])}")
if checked < 10 * len(closures):
    failed += 1
    print(f"FAILED: the build names {checked} files for {len(closures)} kernels: its record was not found")
print(f"{len(closures)} kernels, {checked} files checked, {failed} failed")
sys.exit(1 if failed else 0)
