"""Evidence of kernels in Python: `assay attest --python` and `assay gate --python`.

A line of evidence holds a campaign's result and hashes of the code that it judged: the function's file and each module
of its folder that it imports, as syntax trees, in which comments and layout do not count.
"""
import argparse
import ast
import datetime
import hashlib
import importlib.metadata
import json
import os
import sys

import assay

_SCHEMA = "assay-python-evidence/1"
_DEFAULT = "assay-evidence.jsonl"
_DRAWS = 100  # fewer cases for each obligation are no evidence


def _tree(node):
    """Returns a syntax tree as text, the same in every version of Python: without places and without empty fields."""
    if isinstance(node, list):
        return "[" + ",".join(map(_tree, node)) + "]"
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
        return f"{type(node).__name__}(" + ",".join(f"{name}={_tree(value)}" for name, value in fields) + ")"
    return repr(node)


class Code:
    """The code of a file and of the modules of its folder that it imports.

    Attributes:
        files: hash of each syntax tree, by path relative to the folder.
        packages: version of each package outside of the folder, by name; of the standard library none.
        unknown: imports that cannot be followed.
    """

    def __init__(self, file):
        self.folder = os.path.dirname(os.path.abspath(file))
        self.files, self.packages, self.unknown = {}, {}, []
        self._add(os.path.abspath(file))

    def hash(self):
        return hashlib.sha256(json.dumps([self.files, self.packages], sort_keys=True).encode()).hexdigest()

    def _add(self, path):
        name = os.path.relpath(path, self.folder)
        if name in self.files:
            return
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(), path)
        except (OSError, SyntaxError) as error:
            raise ValueError(f"{path} cannot be read as Python: {error}") from None
        self.files[name] = hashlib.sha256(_tree(tree).encode()).hexdigest()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._follow(alias.name, self.folder)
            elif isinstance(node, ast.ImportFrom):
                base = self.folder
                if node.level:
                    base = os.path.dirname(path)
                    for _ in range(node.level - 1):
                        base = os.path.dirname(base)
                self._follow(node.module or "", base)
                for alias in node.names:  # a name may be a module
                    self._follow(".".join(filter(None, [node.module, alias.name])), base, certain=False)
            elif isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in ("__import__", "import_module", "exec", "eval", "spec_from_file_location"):
                    self.unknown.append(f"{name}:{node.lineno} calls {called}()")

    def _follow(self, module, base, certain=True):
        found, at = False, base
        for part in filter(None, module.split(".")):
            at = os.path.join(at, part)
            for path in (at + ".py", os.path.join(at, "__init__.py")):
                if os.path.isfile(path):
                    found = True
                    self._add(path)
        top = module.split(".")[0]
        if found or not certain or not top or top in getattr(sys, "stdlib_module_names", ()) or top == "assay":
            return
        try:
            distributions = getattr(importlib.metadata, "packages_distributions", dict)()  # from Python 3.10 on
            names = distributions.get(top, [top])
            self.packages[top] = importlib.metadata.version(names[0])
        except importlib.metadata.PackageNotFoundError:
            self.packages[top] = ""


def _contract_hash(contract):
    return hashlib.sha256(json.dumps(assay._explained(contract), sort_keys=True).encode()).hexdigest()


def _digest(line):
    return hashlib.sha256(json.dumps({key: value for key, value in line.items() if key != "digest"}, sort_keys=True).encode()).hexdigest()


def _lines(path):
    """Returns the lines of a file of evidence; raises ValueError for what is no evidence."""
    try:
        with open(path, encoding="utf-8") as file:
            texts = file.read().splitlines()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
            good = line["schema"] == _SCHEMA and all(key in line for key in ("kernel", "contract", "files", "digest"))
        except (ValueError, TypeError, KeyError):
            good = False
        if not good:
            raise ValueError(f"{path}:{number}: is no evidence: remove the line")
        lines.append(line)
    return lines


def attest(function, contract=None, *, evidence=_DEFAULT, device="cpu", declare=None, cases=2 * _DRAWS, seed=None, requires=None, absent=None):
    """Falsifies a function and, if it passes, writes its line of evidence. Returns the Result."""
    place = function if isinstance(function, str) else assay._place_of(function)
    file, name = place.rsplit(":", 1)
    contract = contract or name.split(".")[-1]
    if cases < _DRAWS:
        raise ValueError(f"{cases} cases for each obligation are too few for evidence: take {_DRAWS} or more")
    code = Code(file)
    if code.unknown:
        raise ValueError(f"what {code.unknown[0]} runs has no hash, so nothing can vouch for it: import modules by name")
    result = assay.falsify(place, contract, device=device, declare=declare, cases=cases, seed=seed, requires=requires, absent=absent)
    if not result:
        return result
    relative = os.path.relpath(os.path.abspath(file), os.path.dirname(os.path.abspath(evidence)))
    line = {"schema": _SCHEMA, "kernel": f"{relative}:{name}", "contract": contract, "contract_hash": _contract_hash(contract),
            "device": device, "declare": assay._declarations(declare, "cpu"), "requires": requires or [], "absent": absent or [],
            "files": code.files, "packages": code.packages, "draws": cases, "seed": 1 if seed is None else seed, "cases": result.cases,
            "elements": result.elements, "made": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}
    line["digest"] = _digest(line)
    kept = [old for old in (_lines(evidence) if os.path.exists(evidence) else []) if (old["kernel"], old["contract"]) != (line["kernel"], contract)]
    rows = sorted([*kept, line], key=lambda one: (one["kernel"], one["contract"]))
    with open(evidence, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    return result


def gate(evidence=_DEFAULT):
    """Returns a dict by kernel: None where its evidence is of the code as it is, else why not, in one sentence."""
    verdicts = {}
    for line in _lines(evidence):
        verdicts[line["kernel"]] = _staleness(line, os.path.dirname(os.path.abspath(evidence)))
    return verdicts


def _staleness(line, folder):
    if line["digest"] != _digest(line):
        return "its figures were edited"
    if line["draws"] < _DRAWS:
        return f"it rests on {line['draws']} cases for each obligation"
    try:
        code = Code(os.path.join(folder, line["kernel"].rsplit(":", 1)[0]))
        contract = _contract_hash(line["contract"])
    except ValueError as error:
        return str(error)
    changed = sorted(name for name in {*code.files, *line["files"]} if code.files.get(name) != line["files"].get(name))
    if changed:
        return f"{', '.join(changed)} {'is' if len(changed) == 1 else 'are'} not what was judged"
    other = sorted(name for name in {*code.packages, *line["packages"]} if code.packages.get(name) != line["packages"].get(name))
    if other:
        return "; ".join(f"{name} is {code.packages.get(name) or 'missing'}, and was {line['packages'].get(name) or 'missing'}" for name in other)
    if contract != line["contract_hash"]:
        return f"the contract {line['contract']} has changed"
    return code.unknown[0] if code.unknown else None


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"assay: {message}; `assay {self.prog.split()[-1]} --help` lists options", file=sys.stderr)
        sys.exit(2)


def command(arguments):
    """`assay attest --python` and `assay gate --python`. Returns the exit code."""
    verb, *rest = arguments
    parser = _Parser(prog=f"assay {verb}", add_help=False, allow_abbrev=False)
    parser.add_argument("--python", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    if verb == "attest":
        parser.add_argument("--contract")
        parser.add_argument("--declare")
        parser.add_argument("--cases", type=int, default=2 * _DRAWS)
        parser.add_argument("--seed")
        parser.add_argument("--out", default=_DEFAULT)
    options = parser.parse_args(rest)
    try:
        if verb == "gate":
            verdicts = gate(options.python)
            stale = {kernel: why for kernel, why in verdicts.items() if why}
            if options.json:
                print(json.dumps({"schema": "assay-python-gate/1", "kernels": verdicts}, indent=1))
            else:
                for kernel, why in verdicts.items():
                    print(f"{kernel}  {'accepted' if why is None else 'stale: ' + why + '; attest it again'}")
                print(f"{len(verdicts)} kernels: {len(verdicts) - len(stale)} accepted, {len(stale)} refused")
            return 1 if stale or not verdicts else 0
        items = [item for item in (options.declare or "").split(",") if item]
        device = "cuda" if "backend=cuda" in items else "cpu"
        result = attest(options.python, options.contract, evidence=options.out, device=device, cases=options.cases, seed=options.seed,
                        declare=",".join(item for item in items if item != "backend=cuda"))
        print(json.dumps(result.report, indent=1) if options.json else f"{result}\n{'attested in ' + options.out if result else 'not attested'}")
        return 0 if result else 1 if result.verdict in ("falsified", "mistrusted") else 4 if result.verdict == "thin" else 3
    except assay.Unavailable as why:
        print(f"assay: {why}", file=sys.stderr)
        return 3
    except ValueError as why:
        print(f"assay: {why}", file=sys.stderr)
        return 2
