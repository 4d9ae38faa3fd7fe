#!/usr/bin/env python3
"""Kernels in Python: verdicts, findings, wrong use, the command line and pytest.

python_test.py PACKAGES ASSAY

PACKAGES is the folder of the package `assay`, ASSAY the program. Prints a line a check; exits with 1 if one fails.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

PACKAGES, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [PACKAGES, HERE]
import assay  # noqa: E402
import kernels  # noqa: E402

os.environ["ASSAY_PYTHON"] = sys.executable

failures = []


def expect(what, holds, seen=""):
    print("ok  " if holds else "FAIL", what, flush=True)
    if not holds:
        failures.append(what)
        print("     ", str(seen)[:2000])


def text_of(error, call):
    try:
        result = call()
    except error as said:
        return str(said)
    return f"nothing was raised: {result!r} {result}"


def right_kernels():
    for function, contract in ((kernels.rmsnorm, None), (kernels.rmsnorm_into, "rmsnorm"), (kernels.rmsnorm_of_a_dict, "rmsnorm"),
                               (kernels.scaled, "scale"), (kernels.scaled_by_a_library, "scale"), (kernels.Kernels.softmax, "softmax"), (kernels.silu, "silu"), (kernels.partial, "rmsnorm")):
        result = assay.falsify(function, contract, cases=8)
        expect(f"{contract or function.__name__} is not falsified", result.verdict in ("passed", "thin"), result)
        expect("elements are compared", result.elements > 1000, result.elements)
    result = assay.check(kernels.rmsnorm, seed=3)
    expect("a default campaign passes", result.verdict == "passed" and result.cases >= 800 and not result.findings, result)
    print(f"      {result.cases} cases, {result.elements} elements in {result.seconds:.1f} s")


def limits():
    takes = {"requires": "n % 8 == 0", "absent": ["rrms"]}
    result = assay.falsify(kernels.whole_rows, "rmsnorm", cases=8, **takes)
    expect("a kernel of some calls and outputs is not falsified", result.verdict in ("passed", "thin") and result.elements > 1000, result)
    result = assay.falsify(kernels.wrong_whole_rows, "rmsnorm", cases=20, **takes)
    expect("a wrong one is", result.verdict == "falsified" and result.findings[0].dims["n"] % 8 == 0, result)
    replayed = subprocess.run([PROGRAM, "replay", result.findings[0].replay], capture_output=True, text=True)
    expect("  and its replay fails again", replayed.returncode == 1 and result.findings[0].message in replayed.stdout, replayed)
    result = assay.falsify(kernels.whole_rows, "rmsnorm", cases=8, absent=["rrms"])
    expect("without its requirement it is falsified", result.verdict == "falsified" and "rows of" in str(result), result)
    said = text_of(ValueError, lambda: assay.falsify(kernels.whole_rows, "rmsnorm", requires="n % 8 == 0"))
    expect(f"an output that is missing: {said}", "1 value where y, rrms are expected" in said, said)
    for what, words, options in (("a condition that is none", "'requires' cannot be", {"requires": "whole"}), ("an output that is none", "is no tensor", {"absent": "q"}),
                                 ("an input that is absent", "no output", {"absent": "x"})):
        said = text_of(ValueError, lambda options=options: assay.falsify(kernels.whole_rows, "rmsnorm", **options))
        expect(f"{what}: {said}", words in said and "\n" not in said, said)


def planted_faults():
    for name, obligation in (("wrong_eps", None), ("wrong_row", None), ("wrong_dense", None), ("wrong_state", None), ("wrong_write", None),
                             ("wrong_half_written", None)):
        result = assay.falsify(getattr(kernels, name), "rmsnorm", cases=30)
        expect(f"{name} is falsified", result.verdict == "falsified" and not result, result)
        if not result.findings:
            continue
        finding = result.findings[0]
        expect("  with the smallest call and a sentence", set(finding.dims) == {"rows", "n"} and finding.message, finding)
        expect("  as the text says", finding.obligation in str(result) and finding.message in str(result), result)
        replayed = subprocess.run([PROGRAM, "replay", finding.replay], capture_output=True, text=True)
        if name == "wrong_state":
            continue  # depends on calls before it
        expect("  and a replay that fails again", replayed.returncode == 1 and finding.message in replayed.stdout, replayed)
    finding = assay.falsify(kernels.wrong_eps, "rmsnorm", cases=30).findings[0]
    expect("inputs of a small call are numbers", finding.inputs and all(isinstance(v, float) for v in finding.inputs["x"]), finding.inputs)
    expect("check raises", "FALSIFIED" in text_of(assay.Falsified, lambda: assay.check(kernels.wrong_eps, "rmsnorm", cases=5)))


def gradients():
    checked = assay.gradcheck(kernels.rmsnorm, backward=kernels.rmsnorm_backward)
    judged = checked.operations["rmsnorm"]
    expect(f"a pair of functions is right: {judged['elements']} elements, {judged['worst']:.2g} of the bound", checked and judged["elements"] > 1000, checked)
    found = assay.gradcheck(kernels.rmsnorm, backward=kernels.wrong_backward).wrong
    expect(f"a wrong gradient dies: {found[0]['message'] if found else 'nothing'}", found and found[0]["tensor"] == "dweight", found)
    for what, words, options in (("NumPy alone", "give backward=", {}), ("a backward function of other names", "takes gamma", {"backward": kernels.takes_gamma})):
        said = text_of(ValueError, lambda options=options: assay.gradcheck(kernels.rmsnorm, **options))
        expect(f"{what}: {said}", words in said and "\n" not in said, said)


def processes():
    for name, kind in (("raises", "error"), ("exits", "error"), ("dies", "crash")):
        said = text_of(ValueError, lambda name=name: assay.falsify(getattr(kernels, name), "rmsnorm", cases=5))
        result = said if said.startswith("nothing") else f"{kind}: {said}"
        expect(f"{name} is no pass", "falsified" in result or kind == "crash" and "died" in result or "first call" in result, result)
    result = assay.falsify(kernels.refuses, "rmsnorm", cases=5)
    expect("a kernel that refuses is refused", result.verdict == "refused" and "not today" in str(result), result)


def wrong_uses():
    for what, words, call in (
            ("no contract of that name", "did you mean 'rmsnorm'", lambda: assay.falsify(kernels.rmsnorm, "rms_norm")),
            ("a parameter that the contract lacks", "takes gamma", lambda: assay.falsify(kernels.takes_gamma, "rmsnorm")),
            ("a function that returns nothing", "returned nothing where y, rrms are expected", lambda: assay.falsify(kernels.returns_nothing, "rmsnorm")),
            ("one output of two", "returned 1 value where y, rrms are expected", lambda: assay.falsify(kernels.returns_one, "rmsnorm")),
            ("an output of doubles", "y of float64 where float32", lambda: assay.falsify(kernels.returns_doubles, "rmsnorm")),
            ("an output of another shape", "rrms of shape", lambda: assay.falsify(kernels.returns_rows, "rmsnorm")),
            ("a dict without an output", "without rrms", lambda: assay.falsify(kernels.returns_a_dict, "rmsnorm")),
            ("outputs taken and returned", "return nothing", lambda: assay.falsify(kernels.writes_and_returns, "rmsnorm")),
            ("a function in a function", "define it at the level", lambda: assay.falsify(kernels.local(), "rmsnorm")),
            ("a lambda", "define it at the level", lambda: assay.falsify(lambda x: x, "scale")),
            ("a built-in", "not in a Python file", lambda: assay.falsify(len, "scale")),
            ("a name that the file lacks", "has no nosuch", lambda: assay.falsify(f"{HERE}/kernels.py:nosuch", "rmsnorm")),
            ("a number", "cannot be called", lambda: assay.falsify(f"{HERE}/kernels.py:number", "rmsnorm")),
            ("a file that is not there", "cannot be read", lambda: assay.falsify("/nowhere/kernels.py:f", "rmsnorm")),
            ("no function", "FILE.py:FUNCTION", lambda: assay.falsify("kernels.py", "rmsnorm")),
            ("a device that is none", "\"cpu\" or \"cuda\"", lambda: assay.falsify(kernels.rmsnorm, device="gpu")),
            ("a declaration that is none", "--declare", lambda: assay.falsify(kernels.rmsnorm, declare={"accumulator": "f128"})),
            ("an obligation that is none", "no chosen operation has it", lambda: assay.falsify(kernels.rmsnorm, only="FALSIFY-1")),
            ("no cases", "--cases", lambda: assay.falsify(kernels.rmsnorm, cases=0)),
            ("dims that are none", "--dims", lambda: assay.falsify(kernels.rmsnorm, dims={"q": 3}))):
        begin = time.monotonic()
        said = text_of(ValueError, call)
        expect(f"{what}: {said}", words in said and "\n" not in said, said)
        expect("  within ten seconds", time.monotonic() - begin < 10)
    with tempfile.TemporaryDirectory() as folder:
        for name, text, words in (("raises", "raise KeyError('seven')", "KeyError"), ("syntax", "def f(x:\n  pass\n", "SyntaxError"),
                                  ("missing", "import no_such_module", "no_such_module"), ("exits", "import sys; sys.exit(3)", "SystemExit")):
            with open(f"{folder}/{name}.py", "w") as file:
                file.write(text)
            said = text_of(ValueError, lambda name=name: assay.falsify(f"{folder}/{name}.py:f", "scale"))
            expect(f"a module that {name}: {said}", words in said and "cannot be imported" in said and "\n" not in said, said)


def command_line():
    run = lambda *words: subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    ran = run("falsify", "--python", f"{HERE}/kernels.py:rmsnorm", "--contract", "rmsnorm", "--cases", "5", "--json")
    kernel = json.loads(ran.stdout)["kernels"][0]
    expect("the program starts Python", kernel["kernel"] == "foreign/kernels.py/rmsnorm" and kernel["status"] == "thin", kernel)
    ran = run("audit", "--python", f"{HERE}/kernels.py:rmsnorm", "--contract", "rmsnorm")
    expect("audit sees how it adds", ran.returncode in (0, 1) and "rmsnorm" in ran.stdout, ran)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("inspect", "traceback", "contextlib", "importlib", "ctypes", "assay"):
            with open(f"{folder}/{name}.py", "w") as file:
                file.write("raise SystemExit('taken for a module of Python')\n")
        with open(f"{folder}/twice.py", "w") as file:
            file.write("def scaled(x, alpha, y):\n    pass\n")
        ran = subprocess.run([PROGRAM, "falsify", "--python", "twice.py:scaled", "--contract", "scale", "--cases", "3"], capture_output=True, text=True, cwd=folder)
        expect("files beside a kernel are no modules of its judge", ran.returncode == 1 and "FALSIFIED" in ran.stdout, ran)
    ran = subprocess.run([PROGRAM, "falsify", "--python", f"{HERE}/kernels.py:rmsnorm", "--contract", "rmsnorm"], capture_output=True,
                         text=True, env={**os.environ, "ASSAY_PYTHON": "/nowhere/python"})
    expect("an interpreter that is not there", ran.returncode == 3 and "ASSAY_PYTHON" in ran.stderr, ran)


def evidence():
    with tempfile.TemporaryDirectory() as folder:
        def write(name, text):
            with open(f"{folder}/{name}.py", "w") as file:
                file.write(text)
        write("parts", "import numpy as np\n\n\ndef factor(alpha):\n    return np.float32(alpha)\n")
        write("mine", "from parts import factor\nimport unrelated\n\n\ndef scale(x, alpha):\n    return x * factor(alpha)\n")
        write("unrelated", "number = 1\n")
        write("beside", "number = 1\n")
        run = lambda *words: subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=folder)
        ran = run("attest", "--python", "mine.py:scale", "--contract", "scale", "--cases", "100")
        expect("a kernel in Python is attested", ran.returncode == 0 and "attested in assay-evidence.jsonl" in ran.stdout, ran)
        with open(f"{folder}/assay-evidence.jsonl") as file:
            line = json.loads(file.read())
        expect("its line names the modules of its folder, and packages", set(line["files"]) == {"mine.py", "parts.py", "unrelated.py"} and "numpy" in line["packages"], line)
        gate = lambda: run("gate", "--python", "assay-evidence.jsonl")
        accepted = lambda ran: ran.returncode == 0 and "1 accepted, 0 refused" in ran.stdout
        expect("the gate accepts it", accepted(gate()), gate())
        write("parts", "import numpy as np  # arrays\n\n# the factor\ndef factor(alpha):\n\n    return (np.float32(alpha))\n")
        write("beside", "number = 2\n")
        expect("  with other comments and layout, and other files changed", accepted(gate()), gate())
        write("parts", "import numpy as np\n\n\ndef factor(alpha):\n    return np.float32(alpha + 0)\n")
        ran = gate()
        expect("  and not with another module", ran.returncode == 1 and "parts.py is not what was judged" in ran.stdout and "1 refused" in ran.stdout, ran)
        write("parts", "import numpy as np\n\n\ndef factor(alpha):\n    return np.float32(alpha)\n")
        write("unrelated", "number = 2\n")
        expect("  nor with an imported number", "unrelated.py is not what was judged" in gate().stdout, gate())
        write("unrelated", "number = 1\n")
        expect("  and again with the first code", accepted(gate()), gate())
        for what, change, words in (("edited figures", {"cases": line["cases"] + 1}, "edited"), ("another contract", {"contract_hash": "0"}, "edited")):
            with open(f"{folder}/assay-evidence.jsonl", "w") as file:
                file.write(json.dumps({**line, **change}) + "\n")
            expect(f"  {what} are refused", gate().returncode == 1 and words in gate().stdout, gate())
        write("mine", "import parts\n\n\ndef scale(x, alpha):\n    return x + alpha\n")
        ran = run("attest", "--python", "mine.py:scale", "--contract", "scale", "--cases", "100", "--out", "none.jsonl")
        expect("a wrong kernel has no evidence", ran.returncode == 1 and "not attested" in ran.stdout and not os.path.exists(f"{folder}/none.jsonl"), ran)
        write("mine", "def scale(x, alpha):\n    return eval('x * alpha')\n")
        for what, words, ran in (("code without a hash", "eval()", run("attest", "--python", "mine.py:scale", "--cases", "100")),
                                 ("no file of evidence", "cannot be read", run("gate", "--python", "nowhere.jsonl")),
                                 ("too few cases", "--cases", run("attest", "--python", "mine.py:scale", "--cases", "3"))):
            expect(f"  {what}: {ran.stderr.strip()}", ran.returncode == 2 and words in ran.stderr and ran.stderr.count("\n") == 1, ran)


def pytest_plugin():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/test_kernels.py", "w") as file:
            file.write("import sys\nsys.path.insert(0, %r)\nimport assay\nimport kernels\n\n\n"
                       "@assay.falsifies('rmsnorm')\ndef right(x, weight, eps):\n    return kernels.rmsnorm(x, weight, eps)\n\n\n"
                       "@assay.falsifies('rmsnorm', cases=20)\ndef wrong(x, weight, eps):\n    return kernels.wrong_eps(x, weight, eps)\n" % HERE)
        ran = subprocess.run([sys.executable, "-m", "pytest", "-p", "assay.pytest_plugin", "-q", "-k", "right", folder], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": PACKAGES}, cwd=folder)
        ids = assay.obligations("rmsnorm")
        expect("each obligation is a test", ran.returncode == 0 and f"{len(ids)} passed" in ran.stdout, ran.stdout)
        ran = subprocess.run([sys.executable, "-m", "pytest", "-p", "assay.pytest_plugin", "-q", "-k", f"wrong and {ids[1]}", folder, "--junitxml", "j.xml"],
                             capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGES}, cwd=folder)
        expect("a wrong kernel fails with its finding and a replay",
               ran.returncode == 1 and "FALSIFIED" in ran.stdout and "assay replay assay-replays/" in ran.stdout and "Traceback" not in ran.stdout, ran.stdout)
        with open(f"{folder}/j.xml") as file:
            expect("JUnit names the obligation", ids[1] in file.read())


def overhead():
    """A call costs less than a millisecond beside the function's own time."""
    import ctypes
    import numpy as np
    from assay import _worker as w
    arrays = {"x": np.ones((4, 8), np.float32), "weight": np.ones(8, np.float32), "y": np.ones((4, 8), np.float32), "rrms": np.ones(4, np.float32)}
    strings = lambda names: (ctypes.c_char_p * len(names))(*[name.encode() for name in names])
    integers = lambda numbers: (ctypes.c_int64 * len(numbers))(*numbers)
    tensors = (w._Tensor * len(arrays))(*[w._Tensor(a.ctypes.data, w._Device(w.CPU, 0), a.ndim, w._Type(2, 32, 1), integers(a.shape),
                                                    integers([s // 4 for s in a.strides]), 0) for a in arrays.values()])
    message = (ctypes.c_char * 1024)()
    call = w._Call(1, 2, 1, len(arrays), b"rmsnorm", integers([4, 8]), strings(["rows", "n"]), (ctypes.c_double * 1)(1e-6), strings(["eps"]), tensors,
                   strings(list(arrays)), w._Device(w.CPU, 0), None, message, 1024)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/constant.py", "w") as file:
            file.write("import numpy as np\ny, rrms = np.zeros((4, 8), np.float32), np.zeros(4, np.float32)\n\n\ndef f(x, weight, eps):\n    return y, rrms\n")
        arguments = (f"{folder}/constant.py".encode(), b"f", b"x in\nweight in\ny out\nrrms out\nrows int\nn int\neps float\n", ctypes.pointer(call))
        expect("a call by hand", w._call(*arguments) == 0 and not arrays["y"].any(), message.value)
        times = []
        for _ in range(10):
            begin = time.perf_counter()
            for _ in range(200):
                w._call(*arguments)
            times.append((time.perf_counter() - begin) / 200)
        expect(f"a call costs {min(times) * 1e6:.0f} us beside the function's own time", min(times) < 1e-3)


parts = (overhead, right_kernels, limits, planted_faults, gradients, processes, wrong_uses, command_line, evidence, pytest_plugin)
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    for part in parts:
        begin = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - begin:.0f} s", flush=True)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
