#!/usr/bin/env python3
"""The files that the gate hashes for each kernel, found in the text only, include all files that the build uses: files
that the preprocessor reads for each of the kernel's sources, and sources that the linker takes the called functions
from (nm).

closure_test.py ASSAY BUILD SOURCE
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

assay, build, source = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
ENTRY = {"cpu": "kernels/cpu/{}.cpp", "cuda-host": "kernels/cuda/{}.cu", "vulkan": "kernels/vulkan/{}.cpp"}
OURS = re.compile(r"(kernels|falsify|reference|contracts|src)/")
HEADER = re.compile(r"\.(hpp|cuh|h)$")
OF_KERNELS = re.compile(r"(kernels|src/contract/certificates|generated)/|falsify/properties/")


def output(*command):
    return subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout


def relative(path):
    """Returns the path from the top of the repository; None if it is outside."""
    path = pathlib.Path(os.path.normpath(build / path))
    for folder, prefix in ((build / "generated", "generated/"), (source, "")):
        if path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return None


def compiled():
    """Returns the objects of kernels, properties, certificates and generated code: the sources of each, and the flags.
    """
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file, made = pathlib.Path(entry["file"]), re.search(r" -o (\S+)", entry["command"])[1]
        if re.search(r"adversarial|mutation|tests/|policies", made):
            continue
        together = file.name.startswith(("unity_", "together_"))
        names = [source / n for n in re.findall(r'^#include "(.+)"', file.read_text(), re.M)] if together else [file]
        names = {n for n in map(relative, names) if n and (build / n if n.startswith("generated/") else source / n).exists()}
        if any(map(OF_KERNELS.match, names)):
            flags = [f for f in shlex.split(entry["command"]) if f.startswith(("-I", "-D", "-std="))]
            found[made] = (names, flags)
    return found


def files_read(name, flags):
    """Returns the headers in our folders that the preprocessor reads; the absence of other headers is no error (-MG).
    """
    path = build / name if name.startswith("generated/") else source / name
    text = output("c++", "-x", "c++", *flags, "-nostdinc", "-DHWY_ONCE=1", "-MM", "-MG", "-MT", "o", str(path))
    return {relative(f) for f in text.replace("\\\n", " ").split()[1:] if os.path.isabs(f)} - {None}


def shader_read(record):
    """Returns the generated words of a shader, and the files that glslc read for it, except the wrapper with its
    definitions."""
    made, files = record.read_text().split(":", 1)
    name = f"generated/shaders/{made.removesuffix('.spv')}"
    return f"{name}.inc", {relative(f) for f in files.replace("\\\n", " ").split()} - {None, name}


def symbols(made):
    """Returns our symbols that the object defines, and those that it needs from elsewhere."""
    defined, wanted = set(), set()
    for line in output("nm", made).splitlines():
        kind, symbol = line.split()[-2:]
        if "assay" in symbol and kind in "UTDBRV":
            (wanted if kind == "U" else defined).add(symbol)
    return defined, wanted


def plain_names(all_symbols):
    """Returns the names used in calls, qualified by their scope: rope::scaling."""
    listed = sorted(all_symbols)
    text = subprocess.run(["c++filt"], input="\n".join(listed), capture_output=True, text=True, check=True).stdout
    plain = {}
    for symbol, name in zip(listed, text.splitlines()):
        head = re.sub(r"\[abi:\w+\]|\(anonymous namespace\)::", "", name).split("(")[0]
        plain[symbol] = re.findall(r"(?:\w+::)?~?\w+(?!\w|::)", re.sub(r"<.*>", "", head) or head)[-1]
        plain[symbol] = re.sub(r"^([A-Z]\w+)::operator$", r"\1", plain[symbol])  # a call shows at most the class
    return plain


def is_engine(path):
    return (path.startswith(("falsify/engine/", "falsify/audit/", "src/core/", "src/contractgen/", "src/runtime/", "src/system/")) or path == "contracts/numerics.yaml"
            or (path.startswith("src/contract/") and not path.startswith("src/contract/certificates/")))


plan = json.loads(output(assay, "gate", "--all", "--plan", "--json", "--root", source))
closures = {t["kernel"]: set(t["files"]) for t in plan["touched"]}
of_all = {k.split("/")[0] for k in closures}
chosen = of_all if "ASSAY_ALL" in os.environ else set(sorted(of_all)[::8])  # ci/test takes every eighth operation
unknown = {f for files in closures.values() for f in files if re.search(r":\d+: ", f)}
for include in sorted(unknown):
    print("FAILED: cannot be followed:", include)

objects = compiled()
made_from, flags_of = {}, {}
for made, (names, flags) in objects.items():
    for name in names:
        made_from.setdefault(name, set()).add(made)
        flags_of[name] = flags


class Read(dict):
    def __missing__(self, name):
        return self.setdefault(name, files_read(name, flags_of[name]))


read = Read(map(shader_read, (build / "generated/shaders").glob("*.spv.d")))
names = [n for n in flags_of if OF_KERNELS.match(n)]
readable = read.keys() | set(names)
if chosen == of_all:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        read.update(zip(names, pool.map(files_read, names, map(flags_of.get, names))))
text = {n: (build / n if n.startswith("generated/") else source / n).read_text() for n in flags_of}
tables = {o: symbols(o) for o in objects if (build / o).exists()}
definers = {}
for o, (defined, _) in tables.items():
    for symbol in defined:
        definers.setdefault(symbol, set()).add(o)


def naming(name, names, pattern):
    """Returns the sources among these whose text matches the pattern: for the qualified name if any does, else for the
    plain name, else all."""
    for each in (name, name.split("::")[-1]):
        found = {n for n in names if re.search(pattern.format(rf"\b{each}\b"), text[n], re.M)}
        if found:
            return found
    return names


plain = plain_names({symbol for defined, wanted in tables.values() for symbol in defined | wanted})


headers = {}


def declares(path, name):
    """Returns true if this header declares a function or object of that name, in a scope that it names."""
    if path not in headers:
        headers[path] = re.sub("//.*", "", (build / path if path.startswith("generated/") else source / path).read_text())
    *scope, own = name.split("::")
    return re.search(rf"\b{own}\b *[({{;=\[]", headers[path]) and all(re.search(rf"\b{s}\b", headers[path]) for s in scope)


def wanted_of(name):
    """Returns the sources paired with headers that this one reads, and the sources in other objects that define its
    callees."""
    found = {re.sub(HEADER, suffix, h) for h in read[name] if HEADER.search(h) for suffix in (".cpp", ".cu")} & made_from.keys()
    for o in made_from[name] & tables.keys():
        for symbol in tables[o][1]:
            for d in definers.get(symbol, ()):
                # For sources compiled together, attribute a call and a definition by their texts and a header that both
                # read.
                if name in naming(plain[symbol], objects[o][0], "{}"):
                    for n in naming(plain[symbol], objects[d][0], r"^[^\s/#][^(){{}}=;\n]*{}") & readable:
                        if any(HEADER.search(h) and declares(h, plain[symbol]) for h in read[name] & read[n]):
                            found.add(n)
    return found


wanted = {}


def linked(starts):
    """Returns the sources of kernels, properties and certificates that these need."""
    seen, open_ = set(), list(starts)
    while open_:
        name = open_.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in wanted:
            # Skip tables of all operations (operations, oracles), which name entry points of other operations.
            wanted[name] = {n for n in wanted_of(name) if OF_KERNELS.match(n) and not n.startswith("generated/")}
        open_ += wanted[name]
    return seen


def hashed_as(path, op):
    """Returns the files of the repository behind a file that was read."""
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
    if op not in chosen or backend not in ENTRY:  # the device back end has the same files as cuda-host
        continue
    starts = set()
    for name in (ENTRY[backend], "falsify/properties/{}.cpp", "generated/ops/{}.cpp", "generated/{}_oracle.cpp", "generated/{}_obligations.cpp"):
        # A gradient may stand in the file of its operation.
        found = [n for n in (name.format(op), name.format(op.removesuffix("_backward"))) if n in made_from]
        starts.update(found[:1])
    needed = set()
    for name in linked(starts):
        for path in read[name] | {name}:
            needed |= hashed_as(path, op)
    # The oracle of an operation holds its gradients, which no campaign against the operation uses.
    backward = next((c for k, c in closures.items() if k.startswith(f"{op}_backward/")), set())
    missing = {p for p in needed - closure if not is_engine(p) and not (p.startswith("reference/") and p in backward)}
    checked += len(needed)
    if missing:
        failed += 1
        print(f"FAILED: {kernel} is built from files that its hash does not cover: {', '.join(sorted(missing)[:5])}")
    if len(starts) < 5:
        failed += 1
        print(f"FAILED: {kernel}: the build compiles only {', '.join(sorted(starts)) or 'nothing'} of what it is made of")
print(f"{len(closures)} kernels, {checked} files checked, {failed} failed")
sys.exit(1 if failed else 0)
