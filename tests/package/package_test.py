#!/usr/bin/env python3
"""Builds a project outside this repository against an installed Assay: verdicts, exit codes, messages, documentation.

package_test.py BUILD SOURCE CXX_FLAGS
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

build, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
flags = sys.argv[3]  # flags of an instrumented build, which programs that link with it need too
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-package-"))
prefix, project = folder / "moved" / "assay", folder / "layer_norm"
environment = dict(os.environ, PATH=f"{prefix}/bin:{os.environ['PATH']}", CMAKE_PREFIX_PATH=str(prefix), HOME=str(folder),
                   CXXFLAGS=flags, LDFLAGS=flags, GIT_CONFIG_COUNT="0")
passed, failures = 0, []


def check(condition, text):
    global passed
    if condition:
        passed += 1
    else:
        failures.append(text)
        print("FAILED:", text, flush=True)


def run(command, cwd=project):
    done = subprocess.run(command, shell=True, executable="/bin/bash", cwd=cwd, env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1200)
    return done.returncode, done.stdout + done.stderr


def expect(code, command, *words):
    """Runs the command and expects this exit code and these words."""
    status, said = run(command)
    joined = re.sub(r"\s+", " ", said)
    missing = [word for word in words if word not in joined]
    check(status == code and not missing, f"{command}\n  exit {status} (want {code}), without {missing}: {said[-3000:]}")
    return said


def edit(name, before, after):
    """Replaces one text in a file of the project; returns the old contents."""
    path = project / name
    text = path.read_text()
    check(text.count(before) == 1, f"{name} holds '{before}' {text.count(before)} times")
    path.write_text(text.replace(before, after))
    return text


def mentions(root, words):
    """Files with one of the words, but for the program and its copy for Python: both know the mutants of their build."""
    return [f"{path}: {word}" for path in sorted(root.rglob("*")) if path.is_file() and path.suffix not in (".a", ".o")
            and path.parent.name != "bin" and path.name != "libassay.so" for word in words if word in path.read_text(errors="replace")]


def install():
    """Installs into one folder and moves it to another: no file may refer to the first."""
    status, said = run(f"cmake --install {build} --prefix {folder}/first", folder)
    check(status == 0, f"cmake --install: {said[-2000:]}")
    prefix.parent.mkdir()
    (folder / "first").rename(prefix)
    found = mentions(prefix, [str(build), str(source), f"{folder}/first"])
    check(not found, f"installed files name the build: {found[:5]}")
    for name in ("include/assay/plugin.h", "include/assay/core/view.hpp", "share/assay/contracts/schema.json",
                 "share/assay/contracts/SCHEMA.md", "share/assay/contracts/numerics.yaml", "share/doc/assay/LICENSE"):
        check((prefix / name).is_file(), f"{name} is not installed")


def install_without_tests():
    """Installs a build as `ci/falsify` leaves it: the command only, without objects of tests."""
    script, alone = (build / "cmake_install.cmake").read_text(), folder / "alone"
    check("assay_tests.dir" in script, "cmake_install.cmake names the objects of the tests")
    (folder / "alone.cmake").write_text(script.replace("assay_tests.dir", "assay_tests_not_built.dir"))
    status, said = run(f"cmake -DCMAKE_INSTALL_PREFIX={alone} -P {folder}/alone.cmake", folder)
    check(status == 0, f"cmake --install without test objects: {said[-2000:]}")
    own = folder / "without_tests"
    own.mkdir()
    (own / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(own LANGUAGES CXX)\nfind_package(assay REQUIRED)\n"
                                        "assay_add_tests(tests operations)\n")
    status, said = run(f"CMAKE_PREFIX_PATH={alone} cmake -G Ninja -S {own} -B {own}/build", folder)
    check(status != 0 and "was installed without its test objects" in re.sub(r"\s+", " ", said), f"find_package without test objects: {said[-2000:]}")


def clone():
    """Makes a fresh clone of the project as a repository of its own."""
    shutil.copytree(source / "tests/package/project", folder / "origin")
    status, said = run("git init -q && git add -A && git -c user.name=t -c user.email=t@t commit -qm first && git clone -q . ../layer_norm",
                       folder / "origin")
    check(status == 0, f"git clone: {said}")


def walk_through():
    """Runs the README's commands in order, which must print what it shows, then the commands of the workflow."""
    said = expect(0, f"{sys.executable} {source}/tests/engine/readme.py {prefix}/bin/assay {project}/README.md")
    check(re.search(r"[1-9]\d commands ran, [1-9]", said), f"the commands of README.md: {said}")
    steps = re.split(r"^      - ", (project / ".github/workflows/gate.yml").read_text(), flags=re.MULTILINE)
    runs = [re.search(r"run: (?:\|\n)?(.*)", step, re.DOTALL).group(1) for step in steps
            if "run:" in step and not step.startswith("name: Install Assay")]
    check(len(runs) == 5, f"gate.yml has {len(runs)} steps to run")
    for script in runs:
        expect(0, "set -e\n" + re.sub(r"^ +", "", script, flags=re.MULTILINE))


def nothing_of_the_sources():
    """Checks that neither the compiler nor the project's build files use the source tree."""
    status, said = run("ninja -C build -t deps")
    check(status == 0 and "include/assay/core/view.hpp" in said, f"ninja -t deps: {said[-500:]}")
    read = sorted({line.strip() for line in said.splitlines() if str(source) in line or str(build) in line})
    check(not read, f"compiled with files of the source or build tree: {read[:5]}")
    if flags:
        print("left out: what the built files name (an instrumented build names its sources)")
        return
    found = mentions(project, [f"{source}/", f"{build}/"])
    check(not found, f"the project's files name the source or build tree: {found[:5]}")


def verdicts():
    listed = expect(0, "build/myassay list")
    check(listed.count("obligations)") == 1, f"the command has operations that are not the project's: {listed}")
    expect(0, "assay list", "matmul: ", "softmax: ")
    expect(0, "build/myassay falsify layer_norm --quiet", "1 passed, 0 falsified")
    wrong = "build/myassay falsify --kernel mutant/cpu/layer_norm/one_pass --obligation FALSIFY-LN-002 --quiet"
    expect(1, wrong, "1 falsified")
    replay = project / "assay-replays/mutant-cpu-layer_norm-one_pass.FALSIFY-LN-002.json"
    check(replay.is_file(), f"{replay.name} was not written")
    expect(1, f"build/myassay replay {replay}", "falsified")
    expect(0, "build/myassay mutants --quiet", "4 killed, 0 survived")
    # The project's own contract also judges functions of shared libraries.
    (project / "f.c").write_text("void f(float* y, long rows, long n) { for (long i = 0; i < rows * n; ++i) y[i] = 0; }\n")
    (project / "f.yaml").write_text("args: [y, {dim: rows, as: int64}, {dim: n, as: int64}]\nrequires: [dense rows, eps == 1.0e-5]\n")
    expect(0, "cc -shared -fPIC -o f.so f.c")
    expect(1, "build/myassay falsify --lib f.so --symbol f --contract layer_norm --shim f.yaml --cases 10 --quiet", "1 falsified")
    expect(3, "build/myassay falsify --spv f.spv --bindings f.yaml --contract layer_norm", "built without the Vulkan back end")
    tests = expect(0, "ctest --test-dir build", "100% tests passed")
    names = ("LayerNormContract.LnPre005_2", "layer_norm/cpu/two_pass.FALSIFY-LN-005", "Witness.")
    check(all(name in tests for name in names), f"ctest lacks one of {names}: {tests}")
    # A kernel that reads the neighbour's weight: its tests must fail as well.
    right = edit("layer_norm.cpp", "args.weight(j)", "args.weight(j > 0 ? j - 1 : 0)")
    expect(0, "cmake --build build")
    expect(8, "ctest --test-dir build -R two_pass", "two_pass.FALSIFY-LN-002 (Failed)")
    (project / "layer_norm.cpp").write_text(right)


def mistakes():
    """Mistakes in the contract, in the call and in the files give one sentence with place and remedy."""
    contractgen = next((prefix / "bin").glob("*contractgen"))
    right = edit("layer_norm.yaml", "y: {role: out, dtype", "y: {role: outward, dtype")
    place = "layer_norm.yaml:16:13: 'role' cannot be 'outward'; use one of: in, out, inout"
    status, said = run("cmake --build build")
    check(status != 0 and place in said, f"build with a wrong contract: exit {status}, {said}")
    expect(2, f"{contractgen} {folder}/out {project} layer_norm.yaml", place)
    (project / "layer_norm.yaml").write_text(right)
    edit("layer_norm.yaml", "1e-8 <= eps &&", "!overlap(y, z) &&")
    status, said = run("cmake --build build")
    check(status != 0 and re.search(r"layer_norm.yaml:23:\d+: error: .z. was not declared", said), f"unknown tensor: {said[-2000:]}")
    (project / "layer_norm.yaml").write_text(right)
    for before, after, words in (
        ("REFERENCES layer_norm.hpp", "", "no reference of layer_norm: add layer_norm.hpp to REFERENCES."),
        ("KERNELS layer_norm.cpp", "KERNELS layernorm.cpp", "layernorm.cpp does not exist: create it, or correct the path."),
        ("CONTRACTS layer_norm.yaml", "", "CONTRACTS are missing"),
        ("find_package(assay REQUIRED)", "find_package(assay 9 REQUIRED)", 'compatible with requested version "9"')):
        old = edit("CMakeLists.txt", before, after)
        expect(1, "cmake -B build", words)
        (project / "CMakeLists.txt").write_text(old)


def shipped_contract():
    """Uses one of Assay's contracts with a kernel of the project: the package provides its reference and properties."""
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(own LANGUAGES CXX)\nfind_package(assay REQUIRED)\n"
        "assay_add_operations(operations CONTRACTS ${ASSAY_CONTRACTS_DIR}/scale.yaml KERNELS scale.cpp)\n"
        "assay_add_command(own operations)\n")
    (project / "scale.cpp").write_text(
        '#include "ops/scale.hpp"\n#include "runtime/registry.hpp"\n'
        "void own(const assay::ops::ScaleArgs& args, assay::Device&) {\n"
        "  for (assay::Index i = 0; i < args.m; ++i)\n"
        "    for (assay::Index j = 0; j < args.n; ++j) args.y(i, j) = static_cast<float>(args.alpha) * args.x(i, j);\n}\n"
        'const assay::KernelRegistration one({.id = "scale/cpu/own",\n'
        "                                     .run = &assay::run_typed<assay::ops::ScaleArgs, &own>});\n")
    expect(0, "cmake -G Ninja -B scale && cmake --build scale")
    expect(0, "scale/own falsify --quiet", "1 passed, 0 falsified")


def cuda_host():
    """Runs a .cu file with a shim of the project against one of Assay's contracts, without a GPU."""
    folder_of = project / "cuda"
    folder_of.mkdir()
    for file in ("softmax.cu", "softmax.yaml"):
        shutil.copy(source / "tests/foreign" / file, folder_of / file)
    with open(folder_of / "softmax.yaml", "a") as shim:
        shim.write("requires: n <= 4000\n")  # the limit of its shared memory
    (folder_of / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\nfind_package(assay REQUIRED)\n"
                                              "assay_cuda_host_library(mine softmax.cu)\n")
    expect(0, "cmake -G Ninja -S cuda -B cuda/build && cmake --build cuda/build")
    falsify = "assay falsify --lib cuda/build/libmine.so --shim cuda/softmax.yaml --contract softmax --kernel-time 1s --quiet"
    expect(0, falsify, "1 passed, 0 falsified")
    text = (folder_of / "softmax.cu").read_text()
    (folder_of / "softmax.cu").write_text(text.replace("out[j] = sum", "out[j + 1] = sum"))
    expect(0, "cmake --build cuda/build")
    expect(1, falsify, "1 falsified")


try:
    install()
    install_without_tests()
    clone()
    walk_through()
    nothing_of_the_sources()
    verdicts()
    mistakes()
    shipped_contract()
    cuda_host()
finally:
    if not failures:
        shutil.rmtree(folder)
print(f"{passed} passed, {len(failures)} failed" + (f"; kept {folder}" if failures else ""))
sys.exit(1 if failures or passed == 0 else 0)
