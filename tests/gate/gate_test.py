#!/usr/bin/env python3
"""Tests the gate through the real command, on a copy of the sources with planted changes.

gate_test.py ASSAY SOURCE BUILD_TYPE+SANITIZERS [PART...]
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

assay, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
build_type, sanitizers = sys.argv[3].split("+")  # the argument is never empty, since CMake's lists drop empty items
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-gate-"))
root = folder / "checkout"
EVIDENCE = root / "ci/evidence"
LOCK = root / "ci/environment.lock"
CUDA = "softmax/cuda/online"  # a kernel that no test machine without nvcc can run
SLACK = 10 if sanitizers else 1
PLAIN = build_type == "Release" and not sanitizers
ALL_OF_IT = "ASSAY_ALL" in os.environ  # ci/test tries a sample
EVERY = 1 if ALL_OF_IT else 16  # stride through edits that differ in the field only
planted = 0
results = []


def check(right, text):
    results.append(bool(right))
    if not right:
        print("FAILED:", text, flush=True)


def git(*arguments):
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    return subprocess.run(["git", *identity, "-C", root, *arguments], check=True, capture_output=True, text=True).stdout


def commit():
    git("add", "-A")
    git("commit", "--allow-empty", "-qm", "change")


def run(*arguments, **options):
    begin = time.monotonic()
    done = subprocess.run([assay, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=600, **options)
    done.seconds = time.monotonic() - begin
    return done


def gate(*arguments, base="HEAD"):
    done = run("gate", "--root", root, "--base", base, "--json", *arguments)
    done.json = json.loads(done.stdout) if done.stdout.startswith("{") else None
    return done


def plan():
    """Returns the kernels that the planted change touches."""
    done = gate("--plan")
    check(done.returncode == 0, f"the plan ends with {done.returncode}: {done.stderr}")
    return {t["kernel"]: t for t in done.json["touched"]}


PLANTED = {".yaml": "planted: 1\n", ".txt": "set(PLANTED 1)\n", ".cmake": "set(PLANTED 1)\n", ".py": "planted = 1\n"}


def edit(path, text=None):
    """Appends text that changes the meaning of a file, or the given text."""
    file = root / path
    if text is None and file.suffix == ".json" and file.exists():
        file.write_text(json.dumps({**json.loads(file.read_text()), "planted": 1}))
        return
    with open(file, "a") as out:
        out.write(PLANTED.get(file.suffix, "#define PLANTED 1\n") if text is None else text)


def rewrite(path, old, new):
    text = (root / path).read_text()
    check(old in text, f"{path} holds {old!r}")
    (root / path).write_text(text.replace(old, new, 1))


def undo():
    git("reset", "-q", "--hard")
    git("clean", "-qfd")


def lay_out():
    root.mkdir()
    for name in ("ci/cmake", "contracts", "falsify", "kernels", "reference", "src", "tests/gate"):
        shutil.copytree(source / name, root / name)
    for name in ("CMakeLists.txt", "CMakePresets.json", "README.md", "ci/setup"):
        shutil.copy(source / name, root / name)
    git("init", "-q")
    done = run("gate", "--lock", "--root", root)  # from the current machine
    check(done.returncode == 0 and done.stdout == LOCK.read_text(), f"--lock: {done.returncode}, {done.stdout}, {done.stderr}")
    commit()


def of(*prefixes, within=None):
    return {k for k in within or ALL if k.startswith(prefixes)}


def sampled(*items):
    return items[::1 if ALL_OF_IT else 4]


def touches(what, expected, change):
    """Plants a change and expects it to touch exactly these kernels."""
    global planted
    planted += 1
    if not ALL_OF_IT and planted % 5 != 0:
        return
    change()
    found = set(plan())
    check(found == expected, f"{what}: touched {len(found)}, expected {len(expected)}; not expected {sorted(found - expected)[:4]}, "
                             f"missed {sorted(expected - found)[:4]}")
    undo()


def reaching(path, backend):
    """Returns the kernels of a back end whose own files include the path, by the plan of all kernels."""
    return {k for k, t in ALL.items() if k.split("/")[1] in backend and path in t["files"]}


def changes():
    both = ("cuda", "cuda-host")
    touches("nothing", set(), lambda: None)
    touches("documentation", set(), lambda: edit("README.md"))
    touches("tests", set(), lambda: edit("tests/gate/gate_test.py"))
    touches("the command line", set(), lambda: edit("src/cli/main.cpp"))
    touches("what serves callers", set(), lambda: edit("src/serve/dispatch.cpp"))
    touches("a mutant", set(), lambda: edit("falsify/mutation/faults/softmax.yaml"))
    touches("times alone", set(), lambda: os.utime(root / "kernels/cpu/softmax.cpp"))
    touches("a source of the CPU", of("softmax/cpu/"), lambda: edit("kernels/cpu/softmax.cpp"))
    touches("a launcher of CUDA", of("softmax/cuda"), lambda: edit("kernels/cuda/softmax.cu"))
    touches("a shader", of("softmax/vulkan/"), lambda: edit("kernels/vulkan/softmax.comp"))
    touches("how a shader is compiled", of("softmax/vulkan/"),
            lambda: rewrite("kernels/vulkan/softmax.comp", "#pragma shaders softmax_rows", "#pragma shaders softmax_rows WIDE=1"))
    for path, backend in (("kernels/vulkan/reduce.glsl", ("vulkan",)), ("kernels/cuda/rows.cuh", both), ("kernels/cpu/simd-inl.hpp", ("cpu",)),
                          ("kernels/cpu/gemm.hpp", ("cpu",)), ("kernels/cpu/tiled_gemm.cpp", ("cpu",)), ("kernels/lora.hpp", ("cpu", "vulkan", *both))):
        sharing = reaching(path, backend)
        check(1 < len(sharing) < len(of("")) and len({k.split("/")[0] for k in sharing}) > 1, f"{path} is shared by {len(sharing)} kernels")
        touches("shared " + path, sharing, lambda: edit(path))
    touches("an operation's contract", of("scale/"), lambda: edit("contracts/scale.yaml"))
    touches("a reference", of("transpose/"), lambda: edit("reference/transpose.hpp"))
    touches("a reference that others include", reaching("reference/nf4.hpp", ("cpu", "vulkan", *both)), lambda: edit("reference/nf4.hpp"))
    check(len({k.split("/")[0] for k in reaching("reference/nf4.hpp", ("cpu",))}) > 3, "reference/nf4.hpp is included by several references")
    touches("properties", of("transpose/"), lambda: edit("falsify/properties/transpose.cpp"))
    touches("shared properties", reaching("falsify/properties/shared/rows.cpp", ("cpu", "vulkan", *both)), lambda: edit("falsify/properties/shared/rows.cpp"))
    for path in ("falsify/engine/comparator.cpp", "src/contractgen/main.cpp", "src/contract/enforce.hpp", "src/runtime/registry.cpp"):
        touches("the engine: " + path, set(ALL), lambda: edit(path))
    touches("how accurate functions are", set(ALL), lambda: rewrite("contracts/numerics.yaml", "ulp: 1.5", "ulp: 1.6"))
    touches("the engine of one back end", {k for k in ALL if "/vulkan/" in k}, lambda: edit("src/runtime/vulkan/memory.cpp"))
    touches("the software model of CUDA, which no device runs", {k for k in ALL if "/cuda-host/" in k}, lambda: edit("src/runtime/cuda_host/hopper.cpp"))
    touches("certificates of one operation", of("softmax/"), lambda: edit("src/contract/certificates/softmax.cpp"))
    touches("flags", set(ALL), lambda: edit("ci/cmake/AssayOptions.cmake"))
    touches("flags of one back end", {k for k in ALL if "/cpu/" in k}, lambda: edit("kernels/cpu/CMakeLists.txt"))
    touches("a file that nothing includes", set(), lambda: (root / "kernels/cpu/unused.hpp").write_text("#pragma once\n"))

    def include(line, path="kernels/cpu/softmax.cpp"):
        (root / path).write_text(line + (root / path).read_text())

    touches("a header that git does not know", of("softmax/cpu/"),
            lambda: ((root / "kernels/cpu/fresh.hpp").write_text("#pragma once\n"), include('#include "kernels/cpu/fresh.hpp"\n')))
    sharing = reaching("kernels/vulkan/reduce.glsl", ("vulkan",))
    touches("a header that is gone", sharing, lambda: (root / "kernels/vulkan/reduce.glsl").unlink())
    # Includes that text cannot resolve count as changed, even if nothing changed.
    for line, path, expected, part in sampled(
            ("#include CHOSEN\n", "kernels/cpu/softmax.cpp", of("softmax/cpu/"), "kernel"), ('%:include "core/view.hpp"\n', "kernels/cpu/softmax.cpp", of("softmax/cpu/"), "kernel"),
            ('asm(".incbin \\"a\\"");\n', "kernels/cuda/softmax.cu", of("softmax/cuda"), "kernel"), ('%:include "core/view.hpp"\n', "src/core/sum.hpp", set(ALL), "engine")):
        include(line, path)
        commit()
        found = plan()
        check(set(found) == expected, f"{line} in {path} touches {len(found)}, expected {len(expected)}")
        check(all(t["hashes"][part] == "" and any(path in f and ":1: " in f for f in t["files"]) for t in found.values()), f"{line} is said, and has no hash")
        git("reset", "-q", "--hard", "HEAD~1")
    # Content decides, not history.
    edit("kernels/cpu/softmax.cpp")
    commit()
    git("revert", "--no-edit", "HEAD")
    check(not gate("--plan", base="HEAD~2").json["touched"], "a change that was taken back touches nothing")
    check(len(gate("--plan", base="HEAD~1").json["touched"]) == len(of("softmax/cpu/")), "taking a change back is one")
    git("reset", "-q", "--hard", "HEAD~2")
    # Changes of the base after the branch point are not changes of the branch.
    git("checkout", "-q", "-b", "other")
    edit("falsify/engine/comparator.cpp")
    commit()
    git("checkout", "-q", "-")
    check(not gate("--plan", base="other").json["touched"], "the base's own changes touch nothing")


CODE = (".cpp", ".cu", ".hpp", ".h", ".cuh", ".comp", ".glsl")


def sources():
    return [p for folder in ("ci/cmake", "contracts", "falsify", "kernels", "reference", "src") for p in sorted((root / folder).rglob("*")) if p.is_file()]


def comments():
    """Rewording, adding or moving comments touches nothing."""
    def reword():
        for path in [*sources(), root / "CMakeLists.txt"]:
            text = path.read_text()
            if path.suffix in CODE and 'R"' not in text and "/*" not in text:
                text = re.sub(r"//[^\n\"'\\]*$", "// reworded\n  /* over\n     lines */", text, flags=re.M)
                if path.suffix in (".comp", ".glsl"):  # no strings there
                    text = re.sub(r"([;,]) ", r"\1  /* and between */\t", text)
                text = "/* first */ // #include WHAT\n" + text + "\n// last\n"
            elif path.suffix in (".yaml", ".cmake", ".txt"):
                text = "# first\n" + re.sub(r"^( *)# .*$", r"\1# reworded\n", text, flags=re.M) + "\n# last\n"
            elif path.suffix == ".py":
                text += "\n# last\n"
            path.write_text(text)

    touches("comments of all files", set(), reword)
    touches("a comment at an operator", set(), lambda: rewrite("src/core/bounded.cpp", "return ", "return /* what */\n  "))

    def explain():
        for path in (root / "contracts").glob("*.yaml"):
            path.write_text(re.sub(r'says: "', 'says: "In other words: ', re.sub(r'^summary: "', 'summary: "In short, ', path.read_text(), flags=re.M)))
        rewrite("contracts/softmax.yaml", "sources:\n", "sources:\n  - another book\n")

    touches("words that explain", set(), explain)
    touches("lists in another layout", set(), lambda: rewrite("contracts/scale.yaml", "nonfinite: ", "nonfinite:   "))
    touches("a string that looks like a comment", of("softmax/cpu/"), lambda: edit("kernels/cpu/softmax.cpp", 'const char* s = "// x";\n'))


def engine():
    """Files that decide verdicts touch all kernels; bystanders touch none, and no deciding file includes a bystander.
    """
    def operator(path):
        for number, line in enumerate(lines := (root / path).read_text().split("\n")):
            if not line.lstrip().startswith(("//", "#")) and " * " in line.split("//")[0]:
                lines[number] = line.replace(" * ", " + ", 1)
                return (root / path).write_text("\n".join(lines))
        check(False, f"{path} has no operator")

    for path in ("src/core/bounded.cpp", "src/core/bounded_functions.cpp"):
        touches("an operator of " + path, set(ALL), lambda: operator(path))
    for path in ("src/core/dual.hpp", "src/core/sum.hpp", "falsify/engine/draw.cpp", "falsify/engine/inputs.cpp", "falsify/engine/oracle.hpp", "falsify/engine/builtin.cpp",
                 "falsify/engine/worker.cpp", "src/system/child_process.cpp", "falsify/engine/campaign.cpp", "falsify/audit/judge.cpp", "src/runtime/span.hpp"):
        touches("what decides: " + path, set(ALL), lambda: edit(path))
    touches("a new file of the engine", set(ALL), lambda: (root / "falsify/engine/fresh.cpp").write_text("int fresh;\n"))
    touches("a new folder of the engine", set(ALL), lambda: ((root / "src/runtime/fresh").mkdir(), (root / "src/runtime/fresh/fresh.cpp").write_text("int fresh;\n")))
    bystanders = set(re.findall(r'"([\w./]+)"', (root / "falsify/gate/bystanders.hpp").read_text().split("kBystanders")[1]))
    gone = sorted(b for b in bystanders if not (root / b).exists())
    check(len(bystanders) > 30 and not gone, f"bystanders.hpp lists files that do not exist: {gone}")
    touches("all bystanders", set(), lambda: [edit(path) for path in sorted(bystanders - set(gone))])
    for path in sources():
        name = str(path.relative_to(root))
        if name.startswith(("falsify/engine/", "falsify/audit/", "src/core/", "src/contract/", "src/contractgen/", "src/runtime/", "src/system/")) and path.suffix in CODE and name not in bystanders:
            included = {f"{folder}{i}" for i in re.findall(r'^ *# *include *["<]([^">]+)', path.read_text(), re.M) for folder in ("", "src/", f"{path.parent.relative_to(root)}/")}
            check(not included & bystanders, f"{name} decides, and includes {sorted(included & bystanders)}: take it from bystanders.hpp")


def moves():
    """Moving a file and adapting its users touches nothing; another file in its place does."""
    def move(old, new, *names):
        (root / new).parent.mkdir(exist_ok=True)
        git("mv", old, new)
        for path in [*sources(), *[root / "CMakeLists.txt"]]:
            if path.suffix in (*CODE, ".cmake", ".txt"):
                text = adapted = path.read_text()
                for was, now in ((old, new), (old.removeprefix("src/"), new.removeprefix("src/")), *names):
                    adapted = re.sub(rf"(?<![\w/.]){re.escape(was)}(?![\w])", now, adapted)
                if adapted != text:
                    path.write_text(adapted)

    for old, new, *names in (
            ("src/core/bounded.hpp", "src/core/bounds.hpp"), ("src/core/half.hpp", "src/core/formats/half.hpp"),
            ("src/core/bounded.cpp", "src/core/bounds.cpp", ("bounded.cpp", "bounds.cpp")), ("falsify/engine/draw.cpp", "falsify/engine/drawing.cpp"),
            ("falsify/properties/shared/rows.hpp", "falsify/properties/shared/row_tools.hpp"), ("falsify/properties/shared/rows.cpp", "falsify/properties/shared/row_tools.cpp"), ("reference/nf4.hpp", "reference/nf4_codes.hpp"),
            ("kernels/cuda/rows.cuh", "kernels/cuda/row_tools.cuh", ("rows.cuh", "row_tools.cuh")), ("kernels/cpu/tiled_gemm.cpp", "kernels/cpu/gemm_by_tiles.cpp"),
            ("kernels/vulkan/reduce.glsl", "kernels/vulkan/reductions.glsl", ("reduce.glsl", "reductions.glsl")), ("kernels/lora.hpp", "kernels/shared/lora.hpp"),
            ("kernels/vulkan/softmax.comp", "kernels/vulkan/softmax_by_rows.comp", ("softmax.comp", "softmax_by_rows.comp"))):
        touches(f"{old} as {new}", set(), lambda: move(old, new, *names))

    def swap():
        """Exchanges the contents of the two files."""
        one, other = root / "kernels/vulkan/reduce.glsl", root / "kernels/vulkan/log1p.glsl"
        texts = one.read_text(), other.read_text()
        other.write_text(texts[0]), one.write_text(texts[1])

    touches("two files in each other's place", reaching("kernels/vulkan/reduce.glsl", ("vulkan",)) | reaching("kernels/vulkan/log1p.glsl", ("vulkan",)), swap)


def environment():
    """Another library in the lock, in ci/setup or on the machine touches the kernels that it can affect."""
    def set_entry(name, value):
        LOCK.write_text(re.sub(rf"^{name}: .*\n", "", LOCK.read_text(), flags=re.M) + (f"{name}: {value}\n" if value else ""))

    backend = lambda name: {k for k in ALL if k.split("/")[1] == name}
    check(gate("--plan").json["machine"] == "", "the lock is this machine's")
    for name, expected in (("blas", backend("cpu")), ("OPENBLAS_CORETYPE", backend("cpu")), ("highway", backend("cpu")), ("glslc", backend("vulkan")),
                           ("vulkan-driver", backend("vulkan")), ("cuda", backend("cuda")), ("compiler", set(ALL)), ("libm", set(ALL)), ("flags", set(ALL)), ("another", set(ALL))):
        touches(f"another {name} in the lock", expected, lambda: set_entry(name, "Another 1.2"))
    touches("a comment in the lock", set(), lambda: LOCK.write_text("# a comment\n" + LOCK.read_text()))
    touches("no lock", set(ALL), LOCK.unlink)
    touches("another BLAS in ci/setup", backend("cpu"), lambda: rewrite("ci/setup", "libopenblas-dev", "libblis-dev"))
    touches("another compiler in ci/setup", set(ALL), lambda: rewrite("ci/setup", "build-essential", "clang"))
    touches("another browser in ci/setup", set(), lambda: rewrite("ci/setup", "chromium-headless-shell", "firefox-esr"))
    touches("another formatter in ci/setup", set(), lambda: rewrite("ci/setup", "clang-format-14", "clang-format-15"))
    # Base and change agree on the machine, but the machine differs.
    set_entry("blas", "OpenBLAS 0.1.0")
    set_entry("cuda", "CUDA 1.0")  # a library that the machine lacks is no difference
    commit()
    done = gate("--plan")
    check({t["kernel"] for t in done.json["touched"]} == backend("cpu") and all(t["environment"] == ["blas"] and not t["parts"] for t in done.json["touched"]),
          f"another BLAS on the machine touches {len(done.json['touched'])}")
    said = done.json["machine"]
    check(said.count("\n") == 0 and "blas is " in said and "there OpenBLAS 0.1.0" in said and "cuda" not in said and "--lock" in said, f"it is said: {said}")
    check(said in run("gate", "--root", root, "--base", "HEAD", "--plan").stdout, "and printed")
    check(run("gate", "--lock", "--root", root).returncode == 0 and "cuda: CUDA 1.0\n" in LOCK.read_text(), "--lock keeps what is not here")
    commit()
    check(gate("--plan").json["machine"] == "" and not gate("--plan").json["touched"], "and adopts what is")
    done = run("gate", "--root", root, "--base", "HEAD", "--plan", env={**os.environ, "OPENBLAS_CORETYPE": "Prescott"})
    check(f"{len(backend('cpu'))} of " in done.stdout and "OPENBLAS_CORETYPE is Prescott" in done.stdout, f"another type of core: {done.stdout[:300]}")
    LOCK.write_text("nonsense\n")
    done = run("gate", "--root", root, "--base", "HEAD", "--plan")
    check(done.returncode == 2 and "environment.lock:1" in done.stderr and done.stderr.count("\n") == 1, f"a lock that is none: {done.returncode}, {done.stderr}")
    git("reset", "-q", "--hard", "HEAD~2")
    # Evidence from another environment is still valid.
    put(sealed({**made_up(CUDA, ALL[CUDA]["hashes"]), "environment": {"compiler": "GNU 1.0", "blas": "none", "vulkan-driver": "other"}}))
    done = gate()
    check(done.returncode == 0 and "compiler GNU 1.0" in done.json["evidence"][0]["warning"] and "blas" not in done.json["evidence"][0]["warning"], f"{done.json}")
    done = run("gate", "--root", root, "--base", "HEAD")
    check(done.stdout.count("warning: evidence of 1 kernels was made with compiler GNU 1.0, in ci/environment.lock ") == 1, f"a warning: {done.stdout}")
    undo()


def wrong_use():
    for code, words, arguments in ((2, "is no revision", ["--base", "nope", "--root", root]), (2, "is no revision", ["--base", "--help=", "--root", root]),
                                   (2, "--base or --all", ["--root", root]), (2, "holds no contracts/", ["--base", "HEAD", "--root", folder]),
                                   (2, "not a duration", ["--base", "HEAD", "--root", root, "--time", "soon", "--plan"]), (2, "not a duration", ["--base", "HEAD", "--root", root, "--limit", "soon", "--plan"]),
                                   (2, "--seed", ["--base", "HEAD", "--root", root, "--seed", "-", "--plan"]), (2, "none: ", ["--base", "HEAD", "--root", root, "--plan", "--signers", folder / "none"]),
                                   (2, "--agree softmax/cpu/none: is no kernel", ["--base", "HEAD", "--root", root, "--plan", "--agree", "softmax/cpu/none"]),
                                   (2, "--base", ["--root", root, "--plan", "--base"]), (2, "is no revision", ["--root", root, "--base", "--plan"]), (2, "--build none", ["--base", "HEAD", "--root", root, "--build", "none"])):
        done = run("gate", *arguments)
        check(done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1, f"gate {arguments}: {done.returncode}, {done.stderr}")
    plain = folder / "plain"
    shutil.copytree(root, plain, ignore=shutil.ignore_patterns(".git"))
    done = run("gate", "--base", "HEAD", "--root", plain)
    check(done.returncode == 2 and "not a git repository" in done.stderr and done.stderr.count("\n") == 1, f"no git checkout: {done.stderr}")
    done = run("gate", "--base", "HEAD", "--root", root, env={**os.environ, "PATH": "/nowhere"})
    check(done.returncode == 3 and "git is unavailable" in done.stderr, f"no git: {done.returncode}, {done.stderr}")
    shutil.rmtree(plain)


def inputs():
    """What a build reads and no hash covers is refused: in the build of this program nothing, and each class planted in
    a build of two objects."""
    done = run("gate", "--root", source, "--all", "--plan", "--json", "--build", assay.parent.parent)
    check(done.returncode == 0, f"the build of this program: {done.returncode}, {done.stderr}")
    if PLAIN:
        check("options of" not in json.loads(done.stdout)["machine"], f"its options are those of the lock: {done.stdout[:3000]}")
    said = run("gate", "--root", root, "--base", "HEAD", "--plan").stdout
    check("not checked: whether the build" in said and "older" not in said, f"a gate without a build says so: {said}")
    edit("kernels/cpu/softmax.cpp")
    said = run("gate", "--root", root, "--base", "HEAD", "--plan").stdout
    check("this assay is older than kernels/cpu/softmax.cpp" in said, f"a program of other sources: {said}")
    undo()
    build = folder / "build"
    (build / "generated/shaders").mkdir(parents=True)
    (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={root}\n")
    kernel, other = "kernels/cpu/CMakeFiles/assay_kernels_cpu.dir/scale.cpp.o", "src/cli/CMakeFiles/assay_cli.dir/cli.cpp.o"

    def make(text, files=(), cli="", flags="", compiled="", early=""):
        """Builds a kernel, the command line and sources of kernels."""
        for path, content in {"kernels/cpu/naive/scale.cpp": text, "src/cli/cli.cpp": cli, **dict(files)}.items():
            file = build / path.removeprefix("<build>/") if path.startswith("<build>/") else root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        objects = {kernel: "kernels/cpu/naive/scale.cpp", other: "src/cli/cli.cpp"}
        if compiled:
            objects["kernels/cpu/CMakeFiles/assay_kernels_cpu.dir/more.cpp.o"] = compiled
        options = f"{early} -std=c++20 -O1 -I{root}/src -I{root} -I{build}/generated"
        rules = f"rule cxx\n  command = c++ {options} -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\nrule link\n  command = touch $out\n"
        (build / "build.ninja").write_text(rules + "".join(f"build {o}: cxx {root}/{s}\n" for o, s in objects.items()) + f"build bin/assay: link {' '.join(objects)}\n")
        (build / "compile_commands.json").write_text(json.dumps([{"directory": str(build), "command": f"c++ {options} {flags} -o {o} -c {root}/{s}", "file": f"{root}/{s}"} for o, s in objects.items()]))
        made = subprocess.run(["ninja", "-C", build], capture_output=True, text=True)
        check(made.returncode == 0, f"the build: {made.stdout}{made.stderr}")

    def checked(**options):
        done = run("gate", "--root", root, "--all", "--plan", "--json", "--build", build, **options)
        document = json.loads(done.stdout or "{}")
        document["unseen"] = [u for u in document.get("unseen", []) if "is read by no object" not in u]  # this build has one kernel
        return done, document

    make("#include \"core/errors.hpp\"\n#include <generated.hpp>\n", {"<build>/generated/generated.hpp": "// only\n#include \"core/files.hpp\"\n"})
    done, document = checked()
    check(done.returncode == 1 and not document["unseen"] and "is read by no object of the build" in done.stderr, f"hashed files: {document['unseen']}")
    undo()
    # One of each class: files by a relative path, from the top, by an option, generated, in the system's place, of a
    # shader and of no kernel; symbols from elsewhere.
    said = {f"tests/kernels/relative.inc is read to build {kernel}": '#include "../../../tests/kernels/relative.inc"', "tests/kernels/top.inc is read": '#include "tests/kernels/top.inc"',
            "tests/kernels/option.inc is read": "#include <option.inc>", "<build>/generated/made.hpp is read": "#include <made.hpp>", "kernels/cpu/shim/cmath is read": "#include <cmath>",
            "tests/kernels/shader.inc is read": '#include "shaders/scale_rows.inc"', "kernels/cpu/factor.cpp is read": "", f"{other} defines expf": "",
            f"{kernel} takes _Z6factorv from {other}": "float factor(); float twice() { return 2 * factor(); }", f"{kernel} calls fopen": "#include <cstdio>\nvoid* table() { return std::fopen(\"table\", \"r\"); }"}
    files = {f"tests/kernels/{name}.inc": f"// {name}\n" for name in ("relative", "top", "option", "shader")}
    files.update({"<build>/generated/made.hpp": "#define FACTOR 1\n", "kernels/cpu/shim/cmath": "#include_next <cmath>\n", "kernels/cpu/factor.cpp": "int none;\n",
                  "<build>/generated/shaders/scale_rows.inc": "int words;\n",
                  "<build>/generated/shaders/scale_rows.spv.d": f"scale_rows.spv: {build}/generated/shaders/scale_rows.inc {root}/tests/kernels/shader.inc\n"})
    make("\n".join(said.values()) + "\n", files, compiled="kernels/cpu/factor.cpp", early=f"-I{root}/tests/kernels -I{root}/kernels/cpu/shim",
         cli='extern "C" float expf(float x) { return 1 + x; }\nfloat factor() { return 1; }\n')
    unseen = checked()[1]["unseen"]
    check(len(unseen) == len(said), f"planted {len(said)}, said {len(unseen)}: {unseen}")
    for words in said:
        check(sum(words in u for u in unseen) == 1, f"{words}: {unseen}")
    undo()
    make('#if __has_include("../../../tests/kernels/fast.txt")\n#endif\n')
    check(any(":1: __has_include" in f for t in checked()[1]["touched"] if t["kernel"] == "scale/cpu/naive" for f in t["files"]), "__has_include of a file outside")
    undo()
    for link, target in (("kernels/cpu/more", root / "tests"), ("kernels/cpu/more.hpp", root / "tests/gate/gate_test.py")):
        (root / link).symlink_to(target)
        done = run("gate", "--root", root, "--base", "HEAD", "--plan")
        check(done.returncode == 2 and f"{link}: is a symbolic link" in done.stderr and done.stderr.count("\n") == 1, f"a link: {done.returncode}, {done.stderr}")
        (root / link).unlink()
    (folder / "flush.cpp").write_text("#include <cfenv>\n#include <xmmintrin.h>\n__attribute__((constructor)) void start() { START; }\n")
    for start in ("_mm_setcsr(_mm_getcsr() | 0x8000)", "_mm_setcsr(_mm_getcsr() | 0x0040)", "fesetround(FE_UPWARD)") if not sanitizers and os.uname().machine == "x86_64" else ():
        subprocess.run(["c++", "-shared", "-fPIC", f"-DSTART={start}", folder / "flush.cpp", "-o", folder / "flush.so"], check=True)
        make("")
        said = checked(env={**os.environ, "LD_PRELOAD": str(folder / "flush.so")})[1]["unseen"]
        check(len(said) == 1 and "this program starts" in said[0], f"{start} before main: {said}")
    # Options are entries of the lock.
    make("")
    done = run("gate", "--lock", "--root", root, "--build", build)
    check(done.returncode == 0 and "options of assay_kernels_cpu: -std=c++20 -O1 -I<source>/src -I<source> -I<build>/generated\n" in LOCK.read_text(), f"--lock with a build: {LOCK.read_text()}")
    commit()
    for flags, said in (("-Wall -Wextra", ""), ("-ffast-math", "options of assay_kernels_cpu are with -ffast-math;"), ("-DFACTOR=2", "options of assay_kernels_cpu are with -DFACTOR=2;")):
        make("", flags=flags)
        machine = checked()[1]["machine"]
        check(machine == said if not said else said in machine, f"{flags}: {machine}")
    done = run("gate", "--root", root, "--base", "HEAD", "--plan", "--json", "--build", build)
    touched = [t["kernel"] for t in json.loads(done.stdout)["touched"] if t["environment"]]
    check(set(touched) == {k for k in ALL if k.split("/")[1] == "cpu"}, f"another option touches {len(touched)}")
    git("reset", "-q", "--hard", "HEAD~1")
    # Builds that are none, or of other sources.
    (build / kernel).unlink()
    for words, change in (("build it first", lambda: None), (f"is no build of {root}", lambda: (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")),
                          ("holds no build.ninja", (build / "build.ninja").unlink)):
        change()
        done = run("gate", "--root", root, "--base", "HEAD", "--plan", "--build", build)
        check(done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.returncode}, {done.stderr}")
    undo()


def campaigns():
    """The base has another kernel; the checkout equals the sources of this assay."""
    edit("kernels/cpu/softmax.cpp")
    commit()
    git("revert", "--no-edit", "HEAD")
    done = gate("--time", "4s", "--report", folder / "report", base="HEAD~1")
    kernels = {k["kernel"]: k for k in done.json["report"]["kernels"]}
    check(done.returncode in (0, 4) and set(kernels) == of("softmax/cpu/"), f"a right kernel: {done.returncode}, {set(kernels)}, {done.stderr}")
    check(all(k["status"] in ("passed", "thin") and sum(o["cases"] for o in k["obligations"]) > 0 for k in kernels.values()), "its campaigns ran")
    check(done.seconds < 4 + 20 * SLACK, f"4 s became {done.seconds:.1f} s")
    for name in ("gate.json", "report.json", "junit.xml"):
        check((folder / "report" / name).is_file(), f"--report wrote no {name}")
    # The verdict is about the sources, so the program must be built from them: from their tokens, however they are laid out.
    for file in ("kernels/cpu/softmax.cpp", "contracts/softmax.yaml"):
        (root / file).write_text((root / file).read_text().replace("\n", "  \n" if file.endswith(".yaml") else "\n\n"))
    done = gate("--time", "1s", base="HEAD~1")
    check(done.returncode in (0, 4) and done.json["older_than"] == "", f"a reformatted kernel: {done.returncode}, {done.stderr}")
    undo()
    edit("kernels/cpu/softmax.cpp")
    done = gate("--time", "1s")
    check(done.returncode == 2 and "is not what this assay was built from" in done.stderr, f"stale program: {done.returncode}, {done.stderr}")
    undo()
    edit("kernels/vulkan/softmax.comp")
    done = run("attest", "--kernel", "softmax/vulkan/rows", "--root", root, "--quiet")
    why = "is not what this assay was built from" if PLAIN else "evidence is of what is shipped"
    check(done.returncode == 2 and why in done.stderr, f"stale program attests: {done.returncode}, {done.stderr}")
    undo()
    git("reset", "-q", "--hard", "HEAD~2")


def systems():
    """A change of what systems are made of runs all of them, and a comment none."""
    path = "src/program/model/transformer.cpp"
    check(gate("--plan").json["systems"] == [], "nothing touches the systems")
    edit(path, "// A comment.\n")
    check(gate("--plan").json["systems"] == [], "a comment touches the systems")
    undo()
    for source in (path, "falsify/program/wiring.cpp", "src/program/session.hpp"):
        edit(source)
        check(gate("--plan").json["systems"] == [source], f"{source} touches the systems")
        undo()
    edit(path)
    done = gate("--time", "1s")
    check(done.returncode == 2 and path in done.stderr, f"stale program: {done.returncode}, {done.stderr}")
    commit()
    git("revert", "--no-edit", "HEAD")
    done = gate("--time", "4s", base="HEAD~1")
    kernels = {k["kernel"]: k["status"] for k in done.json["report"]["kernels"]}
    check(done.returncode in (0, 4) and len(kernels) == 8 and set(kernels.values()) <= {"passed", "thin"}, f"right systems: {done.returncode}, {kernels}, {done.stderr}")
    git("reset", "-q", "--hard", "HEAD~2")


def speed():
    """A change of the documentation takes at most two seconds. Measures processor time, which other load affects least,
    and takes the minimum of several runs."""
    edit("README.md")
    runs = []
    for _ in range(3):
        begin = os.times()
        seconds = gate().seconds
        end = os.times()
        runs.append((end.children_user + end.children_system - begin.children_user - begin.children_system, seconds))
    used, seconds = min(runs)
    check(used < 2 * SLACK, f"a change of the documentation took {used:.2f} s of processor time")
    print(f"a change of the documentation: {seconds:.2f} s, {used:.2f} s of processor time")
    undo()


def text_of(evidence):
    """Formats evidence as `assay attest` does."""
    return json.dumps(evidence, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sealed(evidence):
    rest = {k: v for k, v in evidence.items() if k not in ("digest", "signature")}
    return {**rest, "digest": "sha256:" + hashlib.sha256(text_of(rest).encode()).hexdigest()}


def made_up(kernel, hashes):
    """Returns evidence as a machine with a GPU would write it."""
    op, backend, _ = kernel.split("/")
    ids = [line.split()[0] for line in run("explain", op).stdout.split("Falsified by\n")[1].split("\n\n")[0].splitlines()]
    obligations = [{"id": i, "verdict": "passed", "cases": 200, "refused": 0, "elements": 4000, "nonzero": 3000, "worst": 0.25, "typical": 0.125}
                   for i in ids]
    obligations[-1].update(verdict="not applicable", cases=0, elements=0, nonzero=0, worst=0.0, typical=0.0, reason="a reason")
    return sealed({"schema": "assay-evidence/2", "kernel": kernel, "op": op, "backend": backend, "arithmetic": "f32", "device": "A GPU",
                   "driver": "1.2.3", "on_processor": False, "build": "Release, GNU 12.2.0", "made": "2026-01-31", "verdict": "passed",
                   "seeds": ["1"], "draws": 200, "cases": 200 * (len(ids) - 1), "elements": 4000 * (len(ids) - 1), "worst": 0.25,
                   "hashes": hashes, "obligations": obligations, "environment": {"compiler": compiler()}})


def compiler():
    return re.search(r"^compiler: (.*)$", LOCK.read_text(), re.M)[1]


def file_of(kernel):
    return EVIDENCE / (kernel.split("/")[1] + ".jsonl")


def put(evidence, kernel=CUDA):
    """Makes this the only line of the kernel's file."""
    path = file_of(kernel)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((evidence if isinstance(evidence, str) else text_of(evidence)) + "\n")
    return path


def refused(what, words="", *options, kernel=CUDA):
    done = gate(*options)
    reasons = [e["reason"] for e in done.json["evidence"] if e["kernel"] == kernel and not e["accepted"]] if done.json else []
    check(done.returncode == 1 and len(reasons) == 1 and words in reasons[0] and f"assay attest --kernel {kernel}" in reasons[0],
          f"{what} is not refused: exit {done.returncode}, {reasons}, {done.stderr}")


def leaves(value, path=()):
    """Yields every nested field; of lists, such as the obligations, the first and the last item (the last is not
    applicable)."""
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else list(enumerate(value))[::max(1, len(value) - 1)]:
            yield from leaves(inner, path + (key,))
    else:
        yield path, value


def fields_of(evidence):
    """Returns the fields; only of the first and the last obligation, since obligations are alike."""
    ends = (0, len(evidence["obligations"]) - 1)
    fields = leaves({k: v for k, v in evidence.items() if k != "digest"})
    return [(path, value) for path, value in fields if path[0] != "obligations" or path[1] in ends][::EVERY]


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 if value else 0.5
    return "7" if value == "1" else value + "x"


def with_field(evidence, path, value):
    copy = json.loads(json.dumps(evidence))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


# Fields whose edit only a signature detects once the digest is recomputed: the other figures do not contradict them.
ONLY_SIGNED = {"arithmetic", "device", "driver", "build", "draws", "environment", "seeds", "obligations.nonzero", "obligations.worst",
               "obligations.typical", "obligations.reason"}


def tampering(evidence):
    unseen, fields = set(), 0
    for path, value in fields_of(evidence):
        edited = with_field(evidence, path, changed(value))
        put(edited)
        refused(f"an edit of {path}", "")
        if value == "":
            continue
        put(sealed(edited))
        done = gate()
        fields += 1
        if done.returncode == 0:
            unseen.add("obligations." + path[-1] if path[0] == "obligations" else path[0])
        else:
            check(done.returncode == 1, f"an edit of {path} with a new digest: exit {done.returncode}, {done.stderr}")
    check(fields > 30 // EVERY, f"{fields} fields were edited")
    check(unseen == ONLY_SIGNED if EVERY == 1 else unseen <= ONLY_SIGNED, f"edits with a new digest: not seen of {unseen - ONLY_SIGNED}, seen of {ONLY_SIGNED - unseen}")
    put(with_field(evidence, ("digest",), "sha256:" + 64 * "0"))
    refused("another digest", "edited")
    for key in list(evidence)[::EVERY]:
        put(sealed({k: v for k, v in evidence.items() if k != key}) if key != "digest" else {k: v for k, v in evidence.items() if k != key})
        refused(f"evidence without {key}")
    put(sealed({**evidence, "more": 1}))
    refused("an unknown key", "unknown")
    for what, words, edited in sampled(
            ("another schema", "schema", {"schema": "assay-evidence/1"}), ("falsified", "verdict", {"verdict": "falsified"}),
            ("too few cases", "too few", {"draws": 99}), ("a debug build", "Release", {"build": "Debug, GNU 12.2.0"}),
            ("the processor as a device", "GPU", {"on_processor": True}), ("no device", "device", {"device": ""}),
            ("evidence for another", "no line", {"kernel": "softmax/cuda/other"}), ("no environment", "environment", {"environment": {}})):
        put(sealed({**evidence, **edited}))
        refused(what, words)
    for what, words, edited in sampled(("an error above its bound", "times its bound", {"worst": 1.5, "typical": 0.1}), ("nothing compared", "compared nothing", {"elements": 0}),
                                ("a falsified obligation", "not passed", {"verdict": "falsified"}), ("text for a figure", "type", {"worst": "0.1"})):
        copy = json.loads(json.dumps(evidence))
        copy["obligations"][0].update(edited)
        put(sealed(copy))
        refused(what, words)
    copy = json.loads(json.dumps(evidence))
    dropped = copy["obligations"].pop(0)
    copy["cases"] -= dropped["cases"]
    copy["elements"] -= dropped["elements"]
    put(sealed(copy))
    refused("an obligation left out", "obligations")
    put(text_of(evidence).replace('"cases":', '"cases" :', 1))
    refused("another layout", "laid out")
    put(text_of(evidence).replace("{", '{"worst":0.5,', 1))
    refused("a key given twice", "laid out")
    put("{")
    refused("what is not JSON", "no line")
    check(any("cuda.jsonl:1: it is no JSON object" in e["reason"] for e in gate().json["evidence"]), "and it is said where")
    put(text_of(evidence) + "\n" + text_of(evidence))
    check(any("cuda.jsonl:2: softmax/cuda/online is there twice" in e["reason"] for e in gate().json["evidence"]), "a line given twice")
    put(text_of(evidence) + "\n" + text_of(sealed({**evidence, "kernel": "scale/cuda/elementwise", "op": "scale"})))
    check(any("cuda.jsonl:2: scale/cuda/elementwise is there twice, or not in order" in e["reason"] for e in gate().json["evidence"]), "lines out of order")
    undo()


def signatures(evidence):
    key, other, signers = folder / "key", folder / "other", folder / "signers"
    for path in (key, other):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    signers.write_text("gpu@example.org namespaces=\"assay-evidence\" " + key.with_suffix(".pub").read_text())
    def signature(evidence, by=key, namespace="assay-evidence"):
        text = folder / "signed"
        text.write_text(text_of(evidence))
        text.with_suffix(".sig").unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-Y", "sign", "-q", "-f", by, "-n", namespace, text], check=True, capture_output=True)
        return {**evidence, "signature": text.with_suffix(".sig").read_text()}

    evidence = sealed({**evidence, "driver": "1.2.4"})
    put(evidence)
    refused("evidence without a signature", "not signed", "--signers", signers)
    good = signature(evidence)
    put(good)
    check(gate("--signers", signers).returncode == 0, "signed evidence is accepted: " + str(gate("--signers", signers).json))
    check(gate().returncode == 0, "also where signatures are not looked at")
    put(signature(evidence, by=other))
    refused("a stranger's signature", "signed by nobody", "--signers", signers)
    put(signature(evidence, namespace="file"))
    refused("a signature of something else", "does not hold", "--signers", signers)
    for field, value in fields_of(evidence):
        put({**sealed(with_field(evidence, field, changed(value) if value != "" else "x")), "signature": good["signature"]})
        refused(f"a signed edit of {field}", "", "--signers", signers)
    put(good)
    done = run("gate", "--root", root, "--base", "HEAD", "--signers", folder / "none")
    check(done.returncode == 2 and "--signers" in done.stderr, f"no file of signers: {done.returncode}, {done.stderr}")
    undo()


def evidence():
    hashes = ALL[CUDA]["hashes"]
    good = made_up(CUDA, hashes)
    put(good)
    done = gate()
    check(done.returncode == 0 and [e["accepted"] for e in done.json["evidence"]] == [True], f"right evidence: {done.returncode}, {done.stdout[:2000]}{done.stderr}")
    commit()
    check(not gate().json["evidence"], "evidence that did not change is not looked at again")
    tampering(good)
    signatures(good)
    def stray(what, words, evidence, kernel):
        put(evidence, kernel)
        done = gate()
        check(done.returncode == 1 and any(words in e["reason"] for e in done.json["evidence"]), f"{what}: {done.returncode}, {done.json['evidence']}")
        undo()

    stray("a line in another's file", "belongs into ci/evidence/cuda.jsonl", good, "softmax/vulkan/rows")
    stray("evidence for a kernel that does not exist", "does not exist", sealed({**good, "kernel": "softmax/vulkan/none", "backend": "vulkan"}), "softmax/vulkan/none")
    stray("evidence of what CI runs itself", "CI runs itself", sealed({**good, "kernel": "softmax/cpu/naive", "backend": "cpu"}), "softmax/cpu/naive")
    stray("a file among the evidence that is for nothing", "no JSON object with a kernel", "{}", "a/b/c")
    file_of(CUDA).unlink()
    refused("evidence that was removed", "no line", "--report", folder / "refused")
    check('<failure type="mistrusted"' in (folder / "refused/junit.xml").read_text(), "JUnit shows refused evidence as a failure")
    places = [r["locations"][0]["physicalLocation"] for r in json.loads((folder / "refused/assay.sarif").read_text())["runs"][0]["results"]]
    check(any(p["artifactLocation"]["uri"] == "ci/evidence/cuda.jsonl" and p["region"] == {"startLine": 1} for p in places), f"SARIF places it: {places}")
    undo()
    # A change of the kernel's sources makes evidence stale, and is distinguished from a change of the engine.
    for path, part in sampled(("kernels/cuda/softmax.cu", "kernel"), ("reference/softmax.hpp", "reference"), ("falsify/engine/draw.cpp", "engine"),
                       ("contracts/softmax.yaml", "contract"), ("falsify/properties/softmax.cpp", "properties"), ("CMakePresets.json", "flags")):
        edit(path)
        commit()
        put({**sealed({**good, "driver": "another"})})
        refused("stale evidence", part)
        git("reset", "-q", "--hard", "HEAD~1")
        git("clean", "-qfd")
    # Commits agree to staleness by trailers (agreements_test.cpp), which the command reads.
    def agreeing(code, words, trailer):
        edit("README.md")
        git("add", "-A")
        git("commit", "-qm", "change\n\n" + trailer)
        done = gate(base="HEAD~1")
        check(done.returncode == code and words in done.stderr, f"{trailer}: {done.returncode}, {done.stderr}")
        git("reset", "-q", "--hard", "HEAD~1")

    agreeing(0, "", "Gate-agree: cuda: renewed with the next release")
    agreeing(0, "", f"Gate-agree: {CUDA}: only a name")
    agreeing(2, "gives no reason", "Gate-agree: cuda")
    agreeing(2, "names no kernel", "Gate-agree: cpu: which needs no evidence")
    # Campaigns here prove nothing about a GPU: Vulkan kernels need evidence even if lavapipe could run them.
    vulkan = "softmax/vulkan/rows"
    put(made_up(vulkan, ALL[vulkan]["hashes"]), vulkan)
    check(gate().returncode == 0, "right evidence of a Vulkan kernel: " + gate().stdout[:500])
    commit()
    file_of(vulkan).unlink()
    refused("evidence of a Vulkan kernel that was removed", "no line", kernel=vulkan)
    undo()
    put(sealed({**made_up(vulkan, ALL[vulkan]["hashes"]), "device": "llvmpipe", "on_processor": True}), vulkan)
    refused("lavapipe's evidence", "GPU", kernel=vulkan)
    undo()
    git("reset", "-q", "--hard", "HEAD~2")
    git("clean", "-qfd")


def interrupted():
    """The gradient of attention takes far longer than `scale`: the signal arrives between the two."""
    if not PLAIN:
        return print("interrupted: left out, as only a plain Release build attests (attested sees to that)")
    out = folder / "interrupted"
    command = [assay, "attest", "attention_backward", "scale", "--backend", "vulkan", "--root", root, "--cases", "200", "--jobs", "8", "--out", out]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as attest:
        seen = next((line for line in attest.stderr if "scale/vulkan/" in line), "")
        attest.terminate()
        table, said = attest.communicate(timeout=60)
    written = [json.loads(line)["kernel"] for line in (out / "vulkan.jsonl").read_text().splitlines()]
    check(seen and attest.returncode == 143, f"an interrupted attest ends with {attest.returncode}: {said}")
    check(written and all(kernel.startswith("scale/vulkan/") for kernel in written), f"an interrupted attest writes {written}")
    check(f"interrupted by SIGTERM after {len(written)} of " in said and f"{len(written)} of " in table, f"it says {said} and {table}")


def attested():
    """The gate reads the output of `assay attest`; lavapipe replaces the device."""
    kernel, out = "softmax/vulkan/rows", folder / "attested"
    command = ("attest", "--kernel", kernel, "--root", root, "--cases", "100", "--quiet", "--out", out)
    done = run(*command)
    if not PLAIN:  # the evidence would describe other machine code
        check(done.returncode == 2 and "this build is" in done.stderr, f"a {build_type} build attests: {done.returncode}, {done.stderr}")
        return
    check(done.returncode == 0, f"attest: {done.returncode}, {done.stderr}")
    file = out / "vulkan.jsonl"
    recorded = json.loads(file.read_text())
    check(text_of(recorded) + "\n" == file.read_text() and sealed(recorded) == recorded, "attest writes what it reads")
    check(recorded["environment"]["compiler"] == compiler() and "vulkan-driver" in recorded["environment"], f"its environment: {recorded['environment']}")
    put(file.read_text().rstrip("\n"), kernel)
    refused("what lavapipe attests", "made on the processor", kernel=kernel)
    undo()
    if not ALL_OF_IT:
        return
    # Lines of other kernels stay in order, and the kernel's own line is replaced.
    others = [text_of(sealed({**recorded, "kernel": k, "op": k.split("/")[0]})) for k in ("scale/vulkan/a", "transpose/vulkan/b")]
    file.write_text("\n".join([others[0], text_of({**recorded, "made": "2020-01-01"}), others[1]]) + "\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / "attester"], check=True)
    done = run(*command, "--key", folder / "attester")
    lines = file.read_text().splitlines()
    check(done.returncode == 0 and len(lines) == 3 and [lines[0], lines[2]] == others, f"other lines: {done.returncode}, {done.stderr}")
    renewed = json.loads(lines[1])
    check(renewed["made"] != "2020-01-01" and "BEGIN SSH SIGNATURE" in renewed.pop("signature") and {**renewed, "made": 0} == {**recorded, "made": 0}, "its own is renewed and signed")
    file.write_text("{}\n")
    done = run(*command)
    check(done.returncode == 2 and "vulkan.jsonl:1" in done.stderr and file.read_text() == "{}\n", f"a file that is none: {done.returncode}, {done.stderr}")
    for code, words, arguments in ((2, "needs no evidence", ["--kernel", "softmax/cpu/naive"]), (2, "needs no evidence", ["--backend", "cpu"]),
                                   (2, "needs no evidence", ["--kernel", "mutant/cpu/matmul/dropped_last_k"]), (3, "cuda", ["--backend", "cuda", "softmax"]),
                                   (2, "--cases", ["--kernel", kernel, "--cases", "99"]), (2, "evidence is of a GPU", ["--kernel", kernel])):
        done = run("attest", *arguments, "--root", root, "--quiet")
        check(done.returncode == code and words in done.stderr, f"attest {arguments}: {done.returncode}, {done.stderr}")
    check(not EVIDENCE.exists(), "evidence of no GPU among the others")


def ledger():
    """Growth of errors between recorded and new evidence."""
    good = made_up(CUDA, ALL[CUDA]["hashes"])

    def growth(scale):
        copy = json.loads(json.dumps(good))
        for o in copy["obligations"]:
            o["worst"] *= scale
            o["typical"] *= scale
        copy["worst"] = max(o["worst"] for o in copy["obligations"])
        put(sealed(copy))
        commit()
        put(sealed({**good, "made": "2026-02-01"}))
        done = gate()
        check(done.returncode == 0, f"an error that grew inside its bound is a warning: exit {done.returncode} {done.stdout} {done.stderr}")
        text = run("gate", "--root", root, "--base", "HEAD").stdout
        git("reset", "-q", "--hard", "HEAD~1")
        git("clean", "-qfd")
        check(text.count("WORSE ") == len(done.json["ledger"]), f"each is a line: {text}")
        return done.json["ledger"]

    check(not growth(1.0), "nothing grew")
    check(not growth(0.2), "by less than ten")
    grown = growth(0.04)
    check(any(w["kernel"] == CUDA and w["figure"] == "worst" and w["now"] >= 10 * w["before"] > 0 for w in grown), f"errors grew: {grown}")


def built_from():
    """Files left in the checkout by a build or a test are not sources of the program."""
    def table():
        output = folder / "built_table.cpp"
        subprocess.run(["cmake", f"-DSOURCE={root}", f"-DOUTPUT={output}", "-DBUILD=test", "-P", root / "ci/cmake/BuiltFrom.cmake"], check=True)
        return output.read_text()

    before = table()
    check('"CMakeLists.txt"' in before and '"kernels/cpu/softmax.cpp"' in before, "the table names what is built")
    for path in ("build/release/tests/x/CMakeLists.txt", "tests/gate/CMakePresets.json", "falsify/policies/new.cpp", "src/cli/new.cpp"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        edit(path)
        check(table() == before, f"{path} changes what the program is built from")
    for path in ("CMakeLists.txt", "kernels/new.hpp"):
        edit(path)
        check(table() != before, f"{path} changes nothing")
        before = table()
    undo()


def record():
    run("falsify", "--kernel", "matmul/cpu/naive", "--cases", "5", "--quiet", "--report", folder / "clean")
    file = folder / "false_alarms.jsonl"
    done = run("false-alarms", "--record", file, "--add", folder / "clean/report.json", "--json")
    alarms = json.loads(done.stdout)
    check(done.returncode == 0 and alarms["added"] == 1 and alarms["alarms"] == 0 and abs(alarms["per_case"] - (1 - 0.05 ** (1 / alarms["cases"]))) < 1e-9,
          f"false alarms of one campaign: {done.stdout}")
    check(json.loads(run("false-alarms", "--record", file, "--add", folder / "clean/report.json", "--json").stdout)["added"] == 0, "a campaign counts once")
    check(run("false-alarms", "--record", folder / "none").returncode == 2, "a record that is missing")
    file.write_text("{}\n")
    check(run("false-alarms", "--record", file).returncode == 2, "a record that is none")
    check(run("false-alarms", "--record", folder / "new", "--add", file).returncode == 2, "a report that is none")


try:
    lay_out()
    ALL = {t["kernel"]: t for t in json.loads(run("gate", "--root", root, "--all", "--plan", "--json").stdout)["touched"]}
    check(len(ALL) > 300 and CUDA in ALL, f"{len(ALL)} kernels")
    check(not any(re.search(r":\d+: ", f) for t in ALL.values() for f in t["files"]), "every include of every kernel is followed")
    parts = {part.__name__: part for part in (wrong_use, inputs, changes, comments, engine, moves, environment, speed, campaigns, systems, evidence, interrupted, attested, ledger, built_from, record)}
    for part in [parts[name] for name in sys.argv[4:]] or parts.values():
        begin = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
finally:
    shutil.rmtree(folder, ignore_errors=True)
print(f"{sum(results)} passed, {results.count(False)} failed")
sys.exit(0 if all(results) else 1)
