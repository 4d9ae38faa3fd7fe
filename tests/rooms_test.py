#!/usr/bin/env python3
"""Holds every #include of ours to the table of allowed arrows below, and refuses a circle of folders or of CMake libraries.

rooms_test.py SOURCE GENERATED

GENERATED is the build's folder of generated sources; CMake writes links.txt there: a library a line, and what it links.
"""
import os
import re
import subprocess
import sys

# A file belongs to the room with the longest name that begins its path; `*`: every room. Who includes whom:
ARROWS = {
    "src/core": "",
    "src/system": "src/core",
    "src/spirv": "src/core",
    "src/runtime": "src/core",
    "src/runtime/cuda_host": "src/core",
    "src/runtime/cuda": "src/core src/runtime src/runtime/cuda_host",
    "src/runtime/vulkan": "src/runtime",
    "src/contract": "src/core src/runtime src/contract/certificates/elements.hpp",
    "src/contract/certificates": "src/core src/contract src/contract/certificates/elements.hpp",
    "src/contract/certificates/elements.hpp": "src/core",
    "src/contractgen": "src/core src/contract",
    "src/import": "src/contract",
    "src/serve": "src/core src/runtime src/contract",
    "src/program": "src/core src/runtime src/contract src/serve",
    "src/program/model": "src/core src/system src/program generated/program",
    "src/program/ranks": "src/program/model",
    "src/plugin": "src/core src/runtime src/runtime/cuda src/contract",
    "src/python": "src/cli src/plugin",
    "reference": "src/core",
    "kernels": "src/core src/runtime generated/ops",
    "kernels/cpu": "src/core src/runtime src/serve kernels generated/ops",
    "kernels/cuda": "src/core src/runtime src/runtime/cuda src/runtime/cuda_host kernels generated/ops",
    "kernels/vulkan": "src/core src/runtime src/runtime/vulkan kernels generated/ops generated/shaders",
    "falsify/engine": "src/core src/system src/runtime src/runtime/cuda_host src/contract",
    "falsify/audit": "src/core src/runtime src/contract falsify/engine",
    "falsify/foreign": "src/core src/system src/runtime src/plugin falsify/engine",
    "falsify/foreign/vulkan": "src/spirv src/runtime/vulkan src/plugin",
    "falsify/properties": "src/core src/contract/certificates reference falsify/engine falsify/properties/inputs falsify/properties/shared generated/obligations",
    "falsify/properties/inputs": "src/core falsify/engine",
    "falsify/properties/shared": "src/core src/contract falsify/engine",
    "falsify/adversarial": "src/runtime generated/ops",
    "falsify/mutation": "src/runtime",
    "falsify/mutation/study": "src/core src/runtime falsify/engine",
    "falsify/mutation/study/cuda": "src/runtime/cuda falsify/engine falsify/mutation/study falsify/mutation/ptx",
    "falsify/mutation/study/vulkan": "src/runtime/vulkan falsify/engine falsify/mutation/study falsify/mutation/spirv",
    "falsify/mutation/source": "src/runtime falsify/engine falsify/mutation/study",
    "falsify/mutation/ptx": "src/core src/system",
    "falsify/mutation/spirv": "src/spirv",
    "falsify/program": "src/core src/serve src/program src/program/model generated/program falsify/engine",
    "falsify/policies": "src/core falsify/engine",
    "falsify/gate": "src/core src/system src/runtime src/contract falsify/engine",
    "src/cli": "*",
    "tests": "*",
    "generated": "src/core",
    "generated/ops": "src/core src/runtime src/contract src/contract/certificates",
    "generated/ops/calls.cpp": "generated/ops src/serve",
    "generated/oracles": "src/core reference falsify/engine",
    "generated/obligations": "src/core falsify/engine falsify/audit",
    "generated/tests": "falsify/engine",
    "generated/kernels": "kernels/cpu",
    "generated/program": "src/program",
    "generated/shaders": "src/runtime/vulkan",
}
CODE = re.compile(r"\.(c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hxx|inc|inl|ipp|tpp|comp|glsl)(\.in)?$")
INCLUDE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*(?:include|include_next|import)\b[ \t]*(?:["<]([^">\n]+)[">])?', re.M)
COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
# Generated files by name, since their folder says less.
GENERATED = ((r"generated/\w+_oracle\.cpp|generated/oracles\.cpp", "generated/oracles"), (r"generated/\w+_negative_test\.cpp", "generated/tests"),
             (r"generated/(\w+_)?obligations\.[ch]pp", "generated/obligations"))


def room_of(path):
    for pattern, room in GENERATED:
        if re.fullmatch(pattern, path):
            return room
    return max((r for r in ARROWS if path == r or path.startswith(r + "/")), key=len, default=None)


def included(path, target, files):
    """The file that an #include of `path` names; None where it is not ours."""
    for folder in (os.path.dirname(path), "", "src", "src/plugin", "generated"):
        found = os.path.normpath(os.path.join(folder, target))
        if found in files:
            return found
    # A build without a back end generates nothing for it.
    if target.startswith(("ops/", "shaders/")) or target.endswith("_obligations.hpp"):
        return "generated/" + target
    return None


def circle(arrows):
    """Names along a circle of {name: names}; empty where there is none."""
    done, open_ = set(), []

    def visit(name):
        if name in open_:
            return open_[open_.index(name):] + [name]
        if name in done:
            return []
        open_.append(name)
        for other in sorted(arrows.get(name, ())):
            found = visit(other)
            if found:
                return found
        done.add(open_.pop())
        return []

    return next(filter(None, map(visit, sorted(arrows))), [])


def main(source, generated):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True).stdout.split("\n")
    files = {f: os.path.join(source, f) for f in listed if CODE.search(f) and os.path.isfile(os.path.join(source, f))}
    for folder, _, names in os.walk(generated):
        for name in filter(CODE.search, names):
            path = os.path.join(folder, name)
            files["generated/" + os.path.relpath(path, generated)] = path
    faults, seen, count = [], {}, 0
    for path, where in sorted(files.items()):
        room = room_of(path)
        if room is None:
            faults.append(f"{path} is in no room of the table")
            continue
        with open(where, encoding="utf-8") as f:
            text = f.read()
        text = re.sub(r"((?:[^\n]*\\\n)+)([^\n]*\n)", lambda lines: lines[0].replace("\\\n", "") + "\n" * lines[1].count("\n"), text)
        text = COMMENT.sub(lambda c: c[0] if c[0].startswith('"') else " " + "\n" * c[0].count("\n"), text)
        for match in INCLUDE.finditer(text):
            if match[1] is None:
                faults.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: an include that names no file: {match[0].strip()}")
                continue
            found = included(path, match[1], files)
            other = found and room_of(found)
            count += found is not None
            if other is None or other == room:
                continue
            seen.setdefault(room, set()).add(other)
            if ARROWS[room] != "*" and other not in ARROWS[room].split():
                faults.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {room} may not include {other}: {match[1]}")
    for room, arrows in ARROWS.items():
        for other in arrows.split():
            if arrows != "*" and other not in seen.get(room, ()):
                faults.append(f"the table allows {room} -> {other}, which nothing uses: take it out")
    for what, arrows in (("folders", seen), ("libraries", libraries(generated))):
        if found := circle(arrows):
            faults.append(f"a circle of {what}: {' -> '.join(found)}")
    with open(os.path.join(source, "README.md"), encoding="utf-8") as f:
        faults += map_faults(f.read())
    for fault in faults:
        print("FAILED:", fault)
    print(f"{len(files)} files, {count} includes, {sum(map(len, seen.values()))} arrows between {len(ARROWS)} rooms, {len(faults)} failed")
    return 1 if faults or count < 1000 else 0


def map_faults(page):
    """Arrows of the table that point upwards in README.md's map (a row of folders a line), and folders that the page does not name."""
    picture = page.split("## Map", 1)[1].split("```")[1]
    row = {name: number for number, line in enumerate(picture.splitlines()) for name in re.findall(r"(?:src|falsify)/\w+", line) if "kernels use" not in line}
    outer = {room: "/".join(room.split("/")[:2]) for room in ARROWS}
    faults = [f"README.md's map has {outer[room]} below {outer[other]}, which it includes" for room, arrows in ARROWS.items()
              for other in arrows.replace("*", "").split() if row.get(outer[other], 99) < row.get(outer[room], -1)]
    return faults + [f"README.md does not name {room}" for room in sorted({r for r in outer.values() if r.startswith(("src/", "falsify/"))})
                     if not re.search(rf"\b{room}\b", page)]


def libraries(generated):
    """{library: libraries of ours that it links}."""
    with open(os.path.join(generated, "links.txt"), encoding="utf-8") as f:
        lines = [line.split(":", 1) for line in f.read().splitlines()]
    names = {name for name, _ in lines}
    return {name: {n for n in re.findall(r"[\w-]+", re.sub(r"\$<INSTALL_INTERFACE:[^>]*>", "", links)) if n in names and n != name} for name, links in lines}


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:])))
