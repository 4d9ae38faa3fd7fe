"""Proves tensor kernels written in Python wrong, or shows how hard it tried.

    import assay

    def rmsnorm(x, weight, eps):            # tensors, params and dims of the contract, by name
        ...
        return y, rrms                      # its outputs, in the contract's order

    result = assay.falsify(rmsnorm, contract="rmsnorm")
    print(result)

A function takes the tensors, params and dims of a contract by their names (`python -m assay explain rmsnorm` lists
them) and returns the outputs, or takes these by name as well and writes them. Tensors are torch tensors or NumPy
arrays, as the annotations or the imports of the function's module say, else objects with `__dlpack__`. They may be
strided. The function runs in processes of its own: it must be reachable by its name in its file.
"""
import functools
import inspect
import json
import os
import subprocess
import sys
import tempfile

from ._worker import Refused, Tensor

__all__ = ["Falsified", "Finding", "Refused", "Result", "Tensor", "Trace", "Unavailable", "attest", "check", "falsifies",
           "falsify", "gate", "gradcheck", "obligations", "trace"]


class Unavailable(RuntimeError):
    """What was asked for is not available on this machine."""


def __getattr__(name):
    if name in ("attest", "gate"):
        from . import _evidence
        return getattr(_evidence, name)
    raise AttributeError(f"module 'assay' has no attribute '{name}'")


class Falsified(AssertionError):
    """Raised by check(). `result` is the Result."""

    def __init__(self, result):
        super().__init__(str(result))
        self.result = result


class Finding:
    """One failed obligation of a kernel.

    Attributes:
        obligation: its id in the contract.
        claim: what it claims, one sentence.
        kind: "value", "crash", "hang", "error", ...
        message: what is wrong, one sentence.
        dims, params: of the smallest failing call, dicts by name.
        inputs: its tensors by name as flat lists of numbers; None if they are given by the seed alone.
        replay: the file that `python -m assay replay FILE` runs again; None for a second finding of one fault.
    """

    def __init__(self, obligation):
        example = obligation["counterexample"]
        found = example["finding"]
        case = found.get("call", {}).get("case", example["case"])
        self.obligation, self.claim = obligation["id"], obligation.get("claim", "")
        self.kind, self.message = found.get("kind", ""), found.get("message", "")
        self.dims, self.params = dict(case["dims"]), dict(case.get("params", {}))
        values = case.get("values")
        self.inputs = values and {name: [float.fromhex(x) if isinstance(x, str) else x for x in numbers]
                                  for name, numbers in values.items()}
        self.replay = example.get("file")

    def __repr__(self):
        return f"<Finding {self.obligation}: {self.message}>"


class Result:
    """The verdict on a kernel.

    Attributes:
        verdict: "passed", "falsified", "mistrusted", "thin", "refused" or "unavailable".
        reason: why, where it is neither passed nor falsified.
        findings: list of Finding, the most specific first.
        cases, elements: calls, and elements compared with an expected value.
        seconds: wall-clock seconds.
        report: the kernel's part of the JSON report (assay falsify --json).
    str() is what the command line prints. A Result is true if the verdict is "passed".
    """

    def __init__(self, kernel, text, seconds):
        self.report, self._text, self.seconds = kernel, text, seconds
        self.verdict, self.reason = kernel["status"], kernel.get("reason", "")
        failed = [o for o in kernel["obligations"] if "counterexample" in o]
        explained = kernel.get("explanation", {}).get("obligation")
        self.findings = [Finding(o) for o in sorted(failed, key=lambda o: o["id"] != explained)]
        self.cases = sum(o["cases"] for o in kernel["obligations"])
        self.elements = sum(o["elements"] for o in kernel["obligations"])

    def __bool__(self):
        return self.verdict == "passed"

    def __str__(self):
        return self._text

    def __repr__(self):
        return f"<Result {self.verdict}, {self.cases} cases, {self.elements} elements>"


def _place_of(function):
    """Returns FILE.py:NAME, or raises ValueError with what to change."""
    function = inspect.unwrap(function)
    function = function.func if isinstance(function, functools.partial) else function
    name = getattr(function, "__qualname__", None) or getattr(getattr(function, "fn", None), "__qualname__", None)
    try:
        file = inspect.getsourcefile(getattr(function, "fn", function))
    except TypeError:
        file = None
    if name is None or file is None or not os.path.isfile(file):
        raise ValueError(f"{function!r} is not in a Python file, which other processes could import: write it to one")
    if "<" in name:
        raise ValueError(f"{name} cannot be reached from outside: define it at the level of its module")
    return f"{os.path.abspath(file)}:{name}"


def _command(*arguments, **options):
    return _python("from assay.__main__ import command; command()", *arguments, **options)


def _python(code, *arguments, **options):
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))
    # Not -m, which lets files of the current folder stand in for modules: a kernel's folder would reach its judge.
    return subprocess.run([sys.executable, "-c", f"import sys; del sys.path[0]; {code}", *arguments], env={**os.environ, "PYTHONPATH": path},
                          text=True, stdout=subprocess.PIPE, **options)


def _fail(ran):
    said = (ran.stderr or "").strip().splitlines()
    text = next((line for line in reversed(said) if line.startswith("assay")), said[-1] if said else "assay gave no reason")
    text = text[len("assay: "):] if text.startswith("assay: ") else text
    raise (Unavailable if ran.returncode == 3 else ValueError)(text)


def _declarations(declare, device):
    if isinstance(declare, dict):
        declare = ",".join(f"{key}={value}" for key, value in declare.items())
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}: it is \"cpu\" or \"cuda\"")
    return ",".join(filter(None, [declare, "backend=cuda" if device == "cuda" else None]))


def falsify(function, contract=None, *, device="cpu", declare=None, cases=None, only=None, seed=None, dims=None,
            first=False, requires=None, absent=None):
    """Tries to prove a function wrong, and returns a Result. Raises nothing on a finding.

    Args:
        function: the kernel, defined at the level of a module; or "FILE.py:NAME".
        contract: the operation that it computes; its own name if None.
        device: "cpu" or "cuda", where its tensors are.
        declare: what it promises about its arithmetic, as a dict or text of `assay explain OP`, for instance
            {"accumulator": "f32", "inputs": "tf32"}. Bounds follow from it.
        cases: calls for each obligation (100).
        only: the id of one obligation.
        seed: seed of the campaign (1).
        dims: dims of every case, as {"rows": 4}; those not named are drawn.
        first: end at the first obligation that fails.
        requires: conditions on calls, a text or a list as in ["causal == 0", "d % 8 == 0", "lengths == t"]: cases are
            drawn so. src/plugin/README.md lists the forms.
        absent: outputs that the function does not give, as in ["rrms"].

    Raises:
        ValueError: the function, the contract or an argument cannot be used; one sentence says what to change.
        Unavailable: there is no such device here.
    """
    place = function if isinstance(function, str) else _place_of(function)
    arguments = ["falsify", "--python", place, "--contract", contract or place.rsplit(":", 1)[1].split(".")[-1], "--quiet"]
    declared = _declarations(declare, device)
    if declared:
        arguments += ["--declare", declared]
    for option, value in (("--cases", cases), ("--obligation", only), ("--seed", seed)):
        if value is not None:
            arguments += [option, str(value)]
    if dims:
        arguments += ["--dims", ",".join(f"{name}={value}" for name, value in dims.items())]
    if first:
        arguments.append("--first")
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        limits = {key: [value] if isinstance(value, str) else list(value)
                  for key, value in (("requires", requires), ("absent", absent)) if value}
        if limits:
            path = os.path.join(folder, "limits.yaml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(limits, file)
            arguments += ["--shim", path]
        ran = _command(*arguments, "--report", folder, stderr=subprocess.PIPE)
        try:
            with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
                report = json.load(file)
        except OSError:
            _fail(ran)
        kernel, text = report["kernels"][0], ran.stdout
        for obligation in kernel["obligations"]:
            example = obligation.get("counterexample", {})
            if not example.get("file"):
                continue
            kept = os.path.join("assay-replays", os.path.basename(example["file"]))
            os.makedirs("assay-replays", exist_ok=True)
            with open(example["file"], encoding="utf-8") as stored, open(kept, "w", encoding="utf-8") as file:
                file.write(stored.read())
            text = text.replace(f"assay replay {example['file']}", f"python -m assay replay {kept}")
            example["file"] = kept
    return Result(kernel, text.replace(f"\nreport   {folder}", "").rstrip("\n"), report["seconds"])


def check(function, contract=None, **options):
    """Raises Falsified unless the verdict is "passed"; returns the Result. Takes what falsify() takes."""
    result = falsify(function, contract, **options)
    if not result:
        raise Falsified(result)
    return result


def gradcheck(function, contract=None, *, backward=None, device="cpu", declare=None, absent=None, calls=100, largest=100000, seed=None):
    """Holds a function's gradients to the backward formula of its contract, and returns a CheckedTrace.

    Inputs and upstream gradients are drawn, of moderate size. Values that the forward pass saves for the backward pass may be anywhere
    within the forward bounds; everything else is held to the bounds of the backward formula.

    Args:
        function: a differentiable function of torch tensors, as in falsify(); or of any tensors, with `backward`.
        contract: the operation that it computes; its own name if None.
        backward: a function that takes inputs, outputs, params and dims by name, the upstream gradient of an output y as
            dy, and returns the gradients of the inputs in the contract's order, or as a dict with dx, dweight, ...;
            None: torch.autograd.
        device, declare, absent, seed: as in falsify(). Outputs that are saved for the backward pass alone may be left out.
        calls: that many of the calls that the contract draws, the smallest first.
        largest: elements of a call's tensors together.
    """
    place = function if isinstance(function, str) else _place_of(function)
    contract = contract or place.rsplit(":", 1)[1].split(".")[-1]
    explained = _explained(contract)
    if not explained.get("gradients"):
        raise ValueError(f"{contract} has no gradients")
    declared = _declarations(declare, "cpu")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}: it is \"cpu\" or \"cuda\"")
    storage = dict(item.partition("=")[::2] for item in declared.split(",")).get("storage", "f32")
    with tempfile.TemporaryDirectory(prefix="assay-gradients-") as folder:
        cases = os.path.join(folder, "cases")
        arguments = ["cases", contract, "--out", cases, "--cases", "8", *(["--declare", declared] if declared else []),
                     *(["--seed", str(seed)] if seed is not None else [])]
        ran = _command(*arguments, "--quiet", stderr=subprocess.PIPE)
        if ran.returncode != 0:
            _fail(ran)
        plan = {"forward": place, "backward": backward if backward is None or isinstance(backward, str) else _place_of(backward),
                "contract": contract, "explained": explained, "device": device, "declare": declared, "storage": storage,
                "absent": [absent] if isinstance(absent, str) else list(absent or []), "cases": cases, "calls": calls, "largest": largest, "output": folder}
        with open(os.path.join(folder, "plan.json"), "w", encoding="utf-8") as file:
            json.dump(plan, file)
        ran = _python("from assay._gradients import main; sys.exit(main(sys.argv[1]))", file.name, stderr=subprocess.PIPE)
        if ran.returncode != 0:
            if ran.returncode != 2:
                raise ValueError(f"the process of {place.rsplit(':', 1)[1]} ended with {ran.returncode}")
            _fail(ran)
        return _checked(folder)


def obligations(contract):
    """Returns the ids of a contract's obligations."""
    return [obligation["id"] for obligation in _explained(contract)["obligations"]]


def falsifies(contract, **options):
    """Marks a function as a kernel of a contract: with the pytest plugin each of its obligations is a test.

    Takes what falsify() takes, but for `only`.
    """
    def mark(function):
        function.__assay__ = {"contract": contract, **options}
        return function
    return mark


class Trace:
    """Calls of a PyTorch program while it is entered, as a context manager.

    Attributes:
        folder: holds trace.json and the tensors after the program has run; `python -m assay check FOLDER` judges it.
    """

    def __init__(self, model=None, *, folder=None, declare=None, most=16, seed=1):
        from . import _trace
        self._recorder = _trace.Recorder(model, most, seed)
        self._declare = _declarations(declare, "cpu")
        self._scratch = None if folder else tempfile.TemporaryDirectory(prefix="assay-trace-")
        self.folder = folder or self._scratch.name

    def __enter__(self):
        self._recorder.__enter__()
        return self

    def __exit__(self, *failure):
        self._recorder.__exit__(*failure)
        os.makedirs(self.folder, exist_ok=True)
        self._recorder.write(self.folder, _tensors_of, self._declare)

    def check(self):
        """Holds every recorded call to its contract's bounds, and returns a CheckedTrace."""
        return _checked(self.folder)


class CheckedTrace:
    """The verdict on a trace. It is true if no call is wrong; str() lists operations, wrong calls, and what was not judged.

    Attributes:
        wrong: a dict for each wrong call: label (module and ATen operation), op, dims, params, tensor, index, message.
        operations: by contract, a dict of calls, wrong, elements and worst (error in bounds).
        skipped: calls that no contract judges, by reason.
    """

    def __init__(self, report, text):
        self.wrong, self.operations, self.skipped, self._text = report["findings"], report["ops"], report["skipped"], text

    def __bool__(self):
        return not self.wrong

    def __str__(self):
        return self._text


def trace(model=None, *, folder=None, declare=None, most=16, seed=1):
    """Records the calls of known operations that a PyTorch program makes, forward and backward, with their operands.

        with assay.trace(model) as traced:
            loss(model(ids)).backward()
        print(traced.check())

    Args:
        model: the torch module whose parts name the calls.
        folder: where to keep the trace; a temporary folder if None.
        declare: what the program's arithmetic promises, as in falsify().
        most: of independent problems in a call, such as rows, this many are recorded: the first, the last, and others
            drawn by `seed`.
    """
    return Trace(model, folder=folder, declare=declare, most=most, seed=seed)


@functools.lru_cache(maxsize=None)
def _explained(contract):
    """Returns what `assay explain` says of a contract."""
    ran = _command("explain", contract, "--json", stderr=subprocess.PIPE)
    if ran.returncode != 0:
        _fail(ran)
    return json.loads(ran.stdout)


def _tensors_of(contract):
    """Returns the types of a contract's tensors by name."""
    return {tensor["name"]: tensor["dtype"] for tensor in _explained(contract)["tensors"]}


def _checked(folder):
    """Judges a trace, and returns a CheckedTrace."""
    ran = _command("check", folder, "--json", stderr=subprocess.PIPE)
    if ran.returncode not in (0, 1) or not ran.stdout:
        _fail(ran)
    report = json.loads(ran.stdout)
    return CheckedTrace(report, report["text"].rstrip("\n"))
