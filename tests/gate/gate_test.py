#!/usr/bin/env python3
"""The gate by its real command, on a copy of the sources in which changes are planted.

gate_test.py ASSAY SOURCE BUILD_TYPE+SANITIZERS [PART...]
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

assay, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
build_type, sanitizers = sys.argv[3].split("+")  # never empty: CMake's lists drop what is
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-gate-"))
root = folder / "checkout"
EVIDENCE = root / "ci/evidence"
CUDA = "softmax/cuda/online"  # a kernel that no test machine without nvcc can run
SLACK = 10 if sanitizers else 1
PLAIN = build_type == "Release" and not sanitizers
EVERY = 1 if "ASSAY_EVERY_FIELD" in os.environ else 16  # of edits that differ in nothing but the field
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
    """Kernels that the planted change touches."""
    done = gate("--plan")
    check(done.returncode == 0, f"the plan ends with {done.returncode}: {done.stderr}")
    return {t["kernel"]: t for t in done.json["touched"]}


def edit(path, text="// another comment\n"):
    with open(root / path, "a") as file:
        file.write(text)


def undo():
    git("reset", "-q", "--hard")
    git("clean", "-qfd")


def lay_out():
    root.mkdir()
    for name in ("ci/cmake", "contracts", "falsify", "kernels", "reference", "src", "tests/gate"):
        shutil.copytree(source / name, root / name)
    for name in ("CMakeLists.txt", "CMakePresets.json", "README.md"):
        shutil.copy(source / name, root / name)
    git("init", "-q")
    commit()


def of(*prefixes, within=None):
    return {k for k in within or ALL if k.startswith(prefixes)}


def touches(what, expected, change):
    """Plants a change, and expects exactly these kernels to be touched."""
    change()
    found = set(plan())
    check(found == expected, f"{what}: touched {len(found)}, expected {len(expected)}; not expected {sorted(found - expected)[:4]}, "
                             f"missed {sorted(expected - found)[:4]}")
    undo()


def reaching(path, backend):
    """Kernels of a back end whose own files include one, by the plan of everything."""
    return {k for k, t in ALL.items() if k.split("/")[1] in backend and path in t["files"]}


def changes():
    both = ("cuda", "cuda-host")
    touches("nothing", set(), lambda: None)
    touches("documentation", set(), lambda: edit("README.md"))
    touches("tests", set(), lambda: edit("tests/gate/gate_test.py"))
    touches("the command line", set(), lambda: edit("src/cli/main.cpp"))
    touches("a mutant", set(), lambda: edit("falsify/mutants/cpu/softmax.cpp"))
    touches("times alone", set(), lambda: os.utime(root / "kernels/cpu/softmax.cpp"))
    touches("a source of the CPU", of("softmax/cpu/"), lambda: edit("kernels/cpu/softmax.cpp"))
    touches("a launcher of CUDA", of("softmax/cuda"), lambda: edit("kernels/cuda/softmax.cu"))
    touches("a shader", of("softmax/vulkan/"), lambda: edit("kernels/vulkan/softmax.comp"))
    touches("how a shader is compiled", of("softmax/vulkan/"), lambda: edit("kernels/vulkan/softmax.cmake", "# another comment\n"))
    for path, backend in (("kernels/vulkan/reduce.glsl", ("vulkan",)), ("kernels/cuda/rows.cuh", both), ("kernels/cpu/simd-inl.hpp", ("cpu",)),
                          ("kernels/cpu/gemm.hpp", ("cpu",)), ("kernels/cpu/tiled_gemm.cpp", ("cpu",)), ("kernels/lora.hpp", ("cpu", "vulkan", *both))):
        sharing = reaching(path, backend)
        check(1 < len(sharing) < len(of("")) and len({k.split("/")[0] for k in sharing}) > 1, f"{path} is shared by {len(sharing)} kernels")
        touches("shared " + path, sharing, lambda: edit(path))
    touches("an operation's contract", of("scale/"), lambda: edit("contracts/scale.yaml", "# another comment\n"))
    touches("a reference", of("transpose/"), lambda: edit("reference/transpose.hpp"))
    touches("a reference that others include", reaching("reference/nf4.hpp", ("cpu", "vulkan", *both)), lambda: edit("reference/nf4.hpp"))
    check(len({k.split("/")[0] for k in reaching("reference/nf4.hpp", ("cpu",))}) > 3, "reference/nf4.hpp is included by several references")
    touches("properties", of("transpose/"), lambda: edit("falsify/transpose.cpp"))
    touches("shared properties", reaching("falsify/rows.cpp", ("cpu", "vulkan", *both)), lambda: edit("falsify/rows.cpp"))
    for path in ("falsify/engine/comparator.cpp", "src/core/bounded.cpp", "src/contractgen/main.cpp", "src/contract/enforce.hpp",
                 "src/runtime/registry.cpp"):
        touches("the engine: " + path, set(ALL), lambda: edit(path))
    touches("how accurate functions are", set(ALL), lambda: edit("contracts/numerics.yaml", "# another comment\n"))
    touches("the engine of one back end", {k for k in ALL if "/vulkan/" in k}, lambda: edit("src/runtime/vulkan/memory.cpp"))
    touches("certificates of one operation", of("softmax/"), lambda: edit("src/contract/certificates/softmax.cpp"))
    touches("flags", set(ALL), lambda: edit("ci/cmake/AssayOptions.cmake", "# another comment\n"))
    touches("flags of one back end", {k for k in ALL if "/cpu/" in k}, lambda: edit("kernels/cpu/CMakeLists.txt", "# another comment\n"))
    touches("a file that nothing includes", set(), lambda: (root / "kernels/cpu/unused.hpp").write_text("#pragma once\n"))

    def include(line, path="kernels/cpu/softmax.cpp"):
        (root / path).write_text(line + (root / path).read_text())

    touches("a header that git does not know", of("softmax/cpu/"),
            lambda: ((root / "kernels/cpu/fresh.hpp").write_text("#pragma once\n"), include('#include "kernels/cpu/fresh.hpp"\n')))
    sharing = reaching("kernels/vulkan/reduce.glsl", ("vulkan",))
    touches("a header that is gone", sharing, lambda: (root / "kernels/vulkan/reduce.glsl").unlink())
    shaders = [p for p in (root / "kernels/vulkan").iterdir() if '"reduce.glsl"' in p.read_text()]

    def rename():
        (root / "kernels/vulkan/reduce.glsl").rename(root / "kernels/vulkan/reductions.glsl")
        for path in shaders:
            path.write_text(path.read_text().replace('"reduce.glsl"', '"reductions.glsl"'))

    touches("a renamed header", sharing, rename)
    # What text cannot follow is never proven unchanged, not even where nothing changed.
    include("#include CHOSEN\n")
    commit()
    found = plan()
    check(set(found) == of("softmax/cpu/"), f"an include that cannot be followed touches {sorted(found)}")
    check(all(t["hashes"]["kernel"] == "" for t in found.values()), "what is unknown has no hash")
    git("reset", "-q", "--hard", "HEAD~1")
    # Content decides, not history.
    edit("kernels/cpu/softmax.cpp")
    commit()
    git("revert", "--no-edit", "HEAD")
    check(not gate("--plan", base="HEAD~2").json["touched"], "a change that was taken back touches nothing")
    check(len(gate("--plan", base="HEAD~1").json["touched"]) == len(of("softmax/cpu/")), "taking a change back is one")
    git("reset", "-q", "--hard", "HEAD~2")
    # What happened to the base since the branch departed from it is not the branch's change.
    git("checkout", "-q", "-b", "other")
    edit("falsify/engine/comparator.cpp")
    commit()
    git("checkout", "-q", "-")
    check(not gate("--plan", base="other").json["touched"], "the base's own changes touch nothing")


def wrong_use():
    for code, words, arguments in ((2, "is no revision", ["--base", "nope", "--root", root]), (2, "is no revision", ["--base", "--help=", "--root", root]),
                                   (2, "--base or --all", ["--root", root]), (2, "holds no contracts/", ["--base", "HEAD", "--root", folder]),
                                   (2, "not a duration", ["--base", "HEAD", "--root", root, "--time", "soon"])):
        done = run("gate", *arguments)
        check(done.returncode == code and words in done.stderr and done.stderr.count("\n") == 1, f"gate {arguments}: {done.returncode}, {done.stderr}")
    plain = folder / "plain"
    shutil.copytree(root, plain, ignore=shutil.ignore_patterns(".git"))
    done = run("gate", "--base", "HEAD", "--root", plain)
    check(done.returncode == 2 and "not a git repository" in done.stderr and done.stderr.count("\n") == 1, f"no git checkout: {done.stderr}")
    done = run("gate", "--base", "HEAD", "--root", root, env={**os.environ, "PATH": "/nowhere"})
    check(done.returncode == 3 and "git is unavailable" in done.stderr, f"no git: {done.returncode}, {done.stderr}")
    shutil.rmtree(plain)


def campaigns():
    """The base had another kernel; the checkout is what this assay was built from."""
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
    # The verdict is about the sources, so the program has to be made of them.
    edit("kernels/cpu/softmax.cpp")
    done = gate("--time", "1s")
    check(done.returncode == 2 and "is not what this assay was built from" in done.stderr, f"stale program: {done.returncode}, {done.stderr}")
    done = run("attest", "--kernel", "softmax/cpu/naive", "--root", root, "--quiet")
    why = "is not what this assay was built from" if PLAIN else "evidence is of what is shipped"
    check(done.returncode == 2 and why in done.stderr, f"stale program attests: {done.returncode}, {done.stderr}")
    undo()
    git("reset", "-q", "--hard", "HEAD~2")


def speed():
    """Two seconds are the limit for a change of the documentation. Processor time is what other work on the machine leaves alone;
    a second of it, on one thread, leaves as much for reading files."""
    edit("README.md")
    begin = os.times()
    seconds = [gate().seconds for _ in range(3)]
    end = os.times()
    used = (end.children_user + end.children_system - begin.children_user - begin.children_system) / 3
    check(used < SLACK, f"a change of the documentation took {used:.2f} s of processor time")
    print(f"a change of the documentation: {min(seconds):.2f} s, {used:.2f} s of processor time")
    undo()


def text_of(evidence):
    """As `assay attest` lays it out."""
    compact = lambda value: json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    lines = []
    for key in sorted(evidence):
        value = evidence[key]
        rows = "[" + ",".join("\n  " + compact(v) for v in value) + "]" if key == "obligations" and isinstance(value, list) else compact(value)
        lines.append(f'\n "{key}": {rows}')
    return "{" + ",".join(lines) + "\n}\n"


def sealed(evidence):
    rest = {k: v for k, v in evidence.items() if k != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}


def made_up(kernel, hashes):
    """Evidence as a machine with a GPU would write it."""
    op, backend, _ = kernel.split("/")
    ids = [line.split()[0] for line in run("explain", op).stdout.split("Falsified by\n")[1].split("\n\n")[0].splitlines()]
    obligations = [{"id": i, "verdict": "passed", "cases": 200, "refused": 0, "elements": 4000, "nonzero": 3000, "worst": 0.25, "typical": 0.125}
                   for i in ids]
    obligations[-1].update(verdict="not applicable", cases=0, elements=0, nonzero=0, worst=0.0, typical=0.0, reason="a reason")
    return sealed({"schema": "assay-evidence/1", "kernel": kernel, "op": op, "backend": backend, "arithmetic": "f32", "device": "A GPU",
                   "driver": "1.2.3", "on_processor": False, "build": "Release, GNU 12.2.0", "made": "2026-01-31", "verdict": "passed",
                   "seeds": ["1"], "draws": 200, "cases": 200 * (len(ids) - 1), "elements": 4000 * (len(ids) - 1), "worst": 0.25,
                   "hashes": hashes, "obligations": obligations})


def put(evidence, kernel=CUDA):
    path = EVIDENCE / (kernel + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(evidence if isinstance(evidence, str) else text_of(evidence))
    return path


def refused(what, words="", *options, kernel=CUDA):
    done = gate(*options)
    reasons = [e["reason"] for e in done.json["evidence"] if e["kernel"] == kernel and not e["accepted"]] if done.json else []
    check(done.returncode == 1 and len(reasons) == 1 and words in reasons[0] and f"assay attest --kernel {kernel}" in reasons[0],
          f"{what} is not refused: exit {done.returncode}, {reasons}, {done.stderr}")


def leaves(value, path=()):
    """Every field, however deep; of the obligations the first and the last, which is not applicable."""
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else list(enumerate(value))[::max(1, len(value) - 1)]:
            yield from leaves(inner, path + (key,))
    else:
        yield path, value


def fields_of(evidence):
    """Each field; of obligations, which are alike, those of the first and the last."""
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


# Fields whose edit nothing but a signature shows, once the digest was made anew: what the figures themselves do not contradict.
ONLY_SIGNED = {"arithmetic", "device", "driver", "build", "draws", "seeds", "obligations.refused", "obligations.nonzero", "obligations.worst",
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
    for what, words, edited in (
            ("another schema", "schema", {"schema": "assay-evidence/2"}), ("falsified", "verdict", {"verdict": "falsified"}),
            ("too few cases", "too few", {"draws": 99}), ("a debug build", "Release", {"build": "Debug, GNU 12.2.0"}),
            ("the processor as a device", "GPU", {"on_processor": True}), ("no device", "device", {"device": ""}),
            ("evidence for another", "evidence for", {"kernel": "softmax/cuda/other"})):
        put(sealed({**evidence, **edited}))
        refused(what, words)
    for what, words, edited in (("an error above its bound", "times its bound", {"worst": 1.5, "typical": 0.1}), ("nothing compared", "compared nothing", {"elements": 0}),
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
    put(text_of(evidence).replace("{", '{\n "worst": 0.5,', 1))
    refused("a key given twice", "laid out")
    put("{")
    refused("what is not JSON", "JSON")
    undo()


def signatures(evidence):
    key, other, signers = folder / "key", folder / "other", folder / "signers"
    for path in (key, other):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    signers.write_text("gpu@example.org namespaces=\"assay-evidence\" " + key.with_suffix(".pub").read_text())
    signature = EVIDENCE / (CUDA + ".json.sig")

    def sign(path, by=key, namespace="assay-evidence"):
        signature.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-Y", "sign", "-q", "-f", by, "-n", namespace, path], check=True, capture_output=True)

    path = put(evidence)
    path.write_text(text_of(sealed({**evidence, "driver": "1.2.4"})))
    refused("evidence without a signature", "not signed", "--signers", signers)
    sign(path)
    check(gate("--signers", signers).returncode == 0, "signed evidence is accepted: " + str(gate("--signers", signers).json))
    sign(path, by=other)
    refused("a stranger's signature", "signed by nobody", "--signers", signers)
    sign(path, namespace="file")
    refused("a signature of something else", "does not hold", "--signers", signers)
    sign(path)
    for field, value in fields_of(evidence):
        put(sealed(with_field(evidence, field, changed(value) if value != "" else "x")))
        refused(f"a signed edit of {field}", "", "--signers", signers)
    put(sealed({**evidence, "driver": "1.2.4"}))
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
    put(good, "softmax/cuda/other")
    refused("evidence of another kernel under this name", "evidence for", kernel="softmax/cuda/other")
    undo()
    put(good, "softmax/cpu/none")
    done = gate()
    check(done.returncode == 1 and "does not exist" in done.json["evidence"][0]["reason"], "evidence for a kernel that does not exist")
    undo()
    (EVIDENCE / "stray.json").write_text("{}")
    check(gate().returncode == 1, "a file among the evidence that is for nothing")
    undo()
    (EVIDENCE / (CUDA + ".json")).unlink()
    refused("evidence that was removed", "missing", "--report", folder / "refused")
    check('<failure type="mistrusted"' in (folder / "refused/junit.xml").read_text(), "JUnit shows refused evidence as a failure")
    places = [r["locations"][0]["physicalLocation"] for r in json.loads((folder / "refused/assay.sarif").read_text())["runs"][0]["results"]]
    check(any(p["artifactLocation"]["uri"].endswith(CUDA + ".json") and p["region"] == {"startLine": 1} for p in places), f"SARIF places it: {places}")
    undo()
    # A change of its sources makes it stale, and is told apart from one of the engine.
    for path, part in (("kernels/cuda/softmax.cu", "kernel"), ("reference/softmax.hpp", "reference"), ("falsify/engine/draw.cpp", "engine"),
                       ("contracts/softmax.yaml", "contract"), ("falsify/softmax.cpp", "properties"), ("CMakePresets.json", "flags")):
        edit(path, "\n")
        commit()
        put({**sealed({**good, "driver": "another"})})
        refused("stale evidence", part)
        git("reset", "-q", "--hard", "HEAD~1")
        git("clean", "-qfd")
    # Campaigns here say nothing of a GPU: what a Vulkan kernel carries is asked for even where lavapipe could run it.
    vulkan = "softmax/vulkan/rows"
    put(made_up(vulkan, ALL[vulkan]["hashes"]), vulkan)
    check(gate().returncode == 0, "right evidence of a Vulkan kernel: " + gate().stdout[:500])
    commit()
    (EVIDENCE / (vulkan + ".json")).unlink()
    refused("evidence of a Vulkan kernel that was removed", "missing", kernel=vulkan)
    undo()
    put(sealed({**made_up(vulkan, ALL[vulkan]["hashes"]), "device": "llvmpipe", "on_processor": True}), vulkan)
    refused("lavapipe's evidence", "GPU", kernel=vulkan)
    undo()
    git("reset", "-q", "--hard", "HEAD~2")
    git("clean", "-qfd")


def interrupted():
    """The gradient of attention takes far longer than its neighbour: the signal comes in between."""
    if not PLAIN:
        return print("interrupted: left out, as only a plain Release build attests (ledger sees to that)")
    out = folder / "interrupted"
    command = [assay, "attest", "attention_backward", "scale", "--backend", "cpu", "--root", root, "--cases", "200", "--jobs", "8", "--out", out]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as attest:
        seen = next((line for line in attest.stderr if "scale/cpu/" in line), "")
        attest.terminate()
        table, said = attest.communicate(timeout=60)
    written = sorted(str(path.relative_to(out)) for path in out.rglob("*.json"))
    check(seen and attest.returncode == 143, f"an interrupted attest ends with {attest.returncode}: {said}")
    check(written and all(path.startswith("scale/cpu/") for path in written), f"an interrupted attest writes {written}")
    check(f"interrupted by SIGTERM after {len(written)} of " in said and f"{len(written)} of " in table, f"it says {said} and {table}")


def ledger():
    kernel = "softmax/cpu/naive"
    done = run("attest", "--kernel", kernel, "--root", root, "--cases", "100", "--quiet")
    if not PLAIN:  # its figures would be of other machine code
        check(done.returncode == 2 and "this build is" in done.stderr, f"a {build_type} build attests: {done.returncode}, {done.stderr}")
        return
    path = EVIDENCE / (kernel + ".json")
    check(done.returncode == 0 and path.is_file(), f"attest: {done.returncode}, {done.stderr}")
    recorded = json.loads(path.read_text())
    check(text_of(recorded) == path.read_text() and sealed(recorded) == recorded, "attest writes what it reads")
    check(gate().returncode == 0, "what attest writes is accepted")

    def growth(scale):
        """The base recorded errors that many times as large, and had another kernel."""
        copy = json.loads(json.dumps(recorded))
        for o in copy["obligations"]:
            o["worst"] *= scale
            o["typical"] *= scale
        copy["worst"] = max(o["worst"] for o in copy["obligations"])
        put(sealed(copy), kernel)
        edit("kernels/cpu/softmax.cpp")
        commit()
        (root / "kernels/cpu/softmax.cpp").write_text((source / "kernels/cpu/softmax.cpp").read_text())
        done = gate("--time", "6s", "--seed", "1")
        git("reset", "-q", "--hard", "HEAD~1")
        git("clean", "-qfd")
        check(done.returncode == 0, f"an error that grew inside its bound is a warning: exit {done.returncode} {done.stderr}")
        return done.json["ledger"]

    check(not growth(1.0), "nothing grew")
    grown = growth(0.04)
    check(any(w["kernel"] == kernel and w["figure"] == "worst" and w["now"] >= 10 * w["before"] > 0 for w in grown), f"errors grew: {grown}")
    done = run("attest", "--kernel", "mutant/cpu/matmul/dropped_last_k", "--root", root)
    check(done.returncode == 2, f"a mutant is attested: {done.returncode}")
    done = run("attest", "--backend", "cuda", "softmax", "--root", root)
    check(done.returncode == 3, f"what cannot run is attested: {done.returncode}, {done.stderr}")
    done = run("attest", "--kernel", kernel, "--cases", "99", "--root", root)
    check(done.returncode == 2, f"too few cases are attested: {done.returncode}")


def built_from():
    """What a build or a test leaves in the checkout is not what the program is built from."""
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
    file = folder / "clean-runs.jsonl"
    done = run("odds", "--record", file, "--add", folder / "clean/report.json", "--json")
    odds = json.loads(done.stdout)
    check(done.returncode == 0 and odds["added"] == 1 and odds["alarms"] == 0 and abs(odds["per_case"] - (1 - 0.05 ** (1 / odds["cases"]))) < 1e-9,
          f"odds of one campaign: {done.stdout}")
    check(json.loads(run("odds", "--record", file, "--add", folder / "clean/report.json", "--json").stdout)["added"] == 0, "a campaign counts once")
    check(run("odds", "--record", folder / "none").returncode == 2, "a record that is missing")
    file.write_text("{}\n")
    check(run("odds", "--record", file).returncode == 2, "a record that is none")
    check(run("odds", "--record", folder / "new", "--add", file).returncode == 2, "a report that is none")


try:
    lay_out()
    ALL = {t["kernel"]: t for t in json.loads(run("gate", "--root", root, "--all", "--plan", "--json").stdout)["touched"]}
    check(len(ALL) > 300 and CUDA in ALL, f"{len(ALL)} kernels")
    check(not any("#include" in f for t in ALL.values() for f in t["files"]), "every include of every kernel is followed")
    parts = {part.__name__: part for part in (wrong_use, changes, speed, campaigns, evidence, interrupted, ledger, built_from, record)}
    for part in [parts[name] for name in sys.argv[4:]] or parts.values():
        begin = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
finally:
    shutil.rmtree(folder, ignore_errors=True)
print(f"{sum(results)} passed, {results.count(False)} failed")
sys.exit(0 if all(results) else 1)
