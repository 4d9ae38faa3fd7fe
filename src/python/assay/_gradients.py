"""Gradients of a differentiable function at drawn calls: what assay.gradcheck records, in a process of its own."""
import importlib
import json
import math
import mmap
import os
import struct
import sys
import zlib

from . import _worker

_FORMATS = {"F32": "f", "I32": "i", "F16": "e", "BF16": "H"}


class Tensors:
    """A safetensors file: https://github.com/huggingface/safetensors, "Format"."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            self.entries, self.begin = json.loads(file.read(size)), 8 + size
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def raw(self, name):
        """Returns type, shape and bytes."""
        entry = self.entries[name]
        first, last = entry["data_offsets"]
        return entry["dtype"], entry["shape"], self.bytes[self.begin + first:self.begin + last]


def write(path, tensors):
    """Writes {name: (type, shape, bytes)}."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


class _Torch:
    """Arrays of torch: gradients by torch.autograd, or by a function."""

    def __init__(self, device):
        self.torch, self.device = importlib.import_module("torch"), device
        self.types = {"F32": self.torch.float32, "F16": self.torch.float16, "BF16": self.torch.bfloat16, "I32": self.torch.int32}

    def array(self, dtype, shape, data):
        if not data:
            return self.torch.empty(shape, dtype=self.types[dtype], device=self.device)
        return self.torch.frombuffer(bytearray(data), dtype=self.types[dtype]).reshape(shape).to(self.device)

    def stored(self, array):
        array = self.torch.empty(tuple(array.shape), dtype=array.dtype).copy_(array.detach())  # dense, whatever its strides
        names = {kind: name for name, kind in self.types.items()}
        if array.dtype not in names:
            raise _worker._Misused(f"a gradient is of {array.dtype}")
        return names[array.dtype], tuple(array.shape), bytes(array.reshape(-1).view(self.torch.uint8).numpy()) if array.numel() else b""

    def normal(self, like, seed):
        generator = self.torch.Generator().manual_seed(seed)
        return self.torch.randn(tuple(like.shape), generator=generator).to(like.dtype).to(self.device)


class _Numpy:
    """Arrays of NumPy: gradients by a function."""

    def __init__(self):
        self.numpy = importlib.import_module("numpy")
        self.types = {"F32": "<f4", "F16": "<f2", "I32": "<i4"}

    def array(self, dtype, shape, data):
        if dtype not in self.types:
            raise _worker._Misused("NumPy has no bfloat16: take torch tensors")
        return self.numpy.frombuffer(data, self.types[dtype]).reshape(shape)

    def stored(self, array):
        array = self.numpy.ascontiguousarray(array)
        names = {self.numpy.dtype(kind): name for name, kind in self.types.items()}
        if array.dtype not in names:
            raise _worker._Misused(f"a gradient is of {array.dtype}")
        return names[array.dtype], array.shape, array.tobytes()

    def normal(self, like, seed):
        return self.numpy.random.default_rng(seed).standard_normal(like.shape).astype(like.dtype)


def _moderate(dtype, data):
    """Returns whether all numbers of a tensor are finite and those of float32's range between 2^-40 and 2^40, or 0: elsewhere
    squares and cubes overflow, which a gradient by another formula may form."""
    if dtype == "F16":
        return all(bits & 0x7c00 != 0x7c00 for (bits,) in struct.iter_unpack("<H", data))
    if dtype == "BF16":
        return all(87 <= bits >> 7 & 0xff <= 167 or not bits & 0x7fff for (bits,) in struct.iter_unpack("<H", data))
    return dtype != "F32" or all(2.0 ** -40 <= abs(x) <= 2.0 ** 40 or x == 0 for x in struct.unpack(f"<{len(data) // 4}f", data))


def _listed(value, names, what):
    """Returns outputs or gradients by name."""
    if isinstance(value, dict):
        missing = [name for name in names if name not in value]
        if missing:
            raise _worker._Misused(f"{what} returned a dict without {', '.join(missing)}")
        return value
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(given) != len(names) or given[0] is None:
        raise _worker._Misused(f"{what} returned {len([g for g in given if g is not None])} values where {', '.join(names)} are expected")
    return dict(zip(names, given))


class _Recorder:
    """Calls the function, and keeps inputs, upstream gradients and gradients."""

    def __init__(self, plan):
        self.plan = plan
        explained = {key: [] for key in ("dims", "params", "gradients")}
        self.explained = explained = {**explained, **plan["explained"]}
        roles = {t["name"]: t["role"] for t in explained["tensors"]}
        self.saved = {t["name"] for t in explained["tensors"] if t["saved"]}
        self.roles = {name: "absent" if name in plan["absent"] else role for name, role in roles.items()}
        self.outputs = [name for name, role in self.roles.items() if role == "out"]
        self.wanted = [g["input"] for g in self.explained["gradients"]]
        names = [*roles, *(d["name"] for d in self.explained["dims"]), *(p["name"] for p in self.explained["params"])]
        self.forward, self.parameters = self._function(plan["forward"], names)
        self.backward = None
        if plan["backward"]:
            self.backward, self.taken = self._function(plan["backward"], [*names, *(f"d{name}" for name in self.outputs)])
        library = _worker._converter(self.forward, self.parameters)
        self.arrays = _Numpy() if library is _worker._as_numpy else _Torch(plan["device"])
        if isinstance(self.arrays, _Numpy) and self.backward is None:
            raise _worker._Misused(f"{plan['forward'].rsplit(':', 1)[1]} takes NumPy arrays, which have no gradients of their own: give backward=")

    @staticmethod
    def _function(place, names):
        import inspect
        file, name = place.rsplit(":", 1)
        function = _worker._Kernel._load(file, name)
        parameters = list(inspect.signature(function).parameters.values())
        unknown = [p.name for p in parameters if p.name not in names and p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if unknown:
            raise _worker._Misused(f"{name} takes {', '.join(unknown)}; it may take {', '.join(names)}")
        return function, parameters

    @staticmethod
    def _arguments(parameters, values):
        if any(p.kind == p.VAR_KEYWORD for p in parameters):
            return values
        return {p.name: values[p.name] for p in parameters if p.name in values}

    def record(self, call, stored):
        """Returns the tensors of a call for the trace: inputs, upstream gradients, gradients."""
        kept = {f"{call['id']}.in.{name}": stored[name] for name in call["inputs"]}
        values = {**call["params"], **call["dims"]}
        for param in self.explained["params"]:
            if "choices" in param or param["integer"]:
                values[param["name"]] = int(values[param["name"]])
        inputs = {name: self.arrays.array(*stored[name]) for name in call["inputs"]}
        if self.backward is None:
            for name in self.wanted:
                inputs[name].requires_grad_(True)
        returned = self.forward(**self._arguments(self.parameters, {**values, **inputs}))
        unsaved = [name for name in self.outputs if name not in self.saved]
        alone = not isinstance(returned, dict) and (len(returned) if isinstance(returned, (tuple, list)) else 1) == len(unsaved)
        outputs = _listed(returned, unsaved if alone else self.outputs, self.plan["forward"].rsplit(":", 1)[1])
        reached = [name for name in unsaved if (self.backward is not None or outputs[name].requires_grad)]
        if not reached:
            raise _worker._Misused(f"{self.plan['forward'].rsplit(':', 1)[1]} returns nothing that torch can differentiate")
        upstream = {name: self.arrays.normal(outputs[name], zlib.crc32(f"{call['id']}.{name}".encode())) for name in reached}
        kept.update((f"{call['id']}.upstream.{name}", self.arrays.stored(value)) for name, value in upstream.items())
        if self.backward is None:
            found = self.arrays.torch.autograd.grad([outputs[n] for n in upstream], [inputs[n] for n in self.wanted], list(upstream.values()), allow_unused=True)
            gradients = {n: self.arrays.torch.zeros_like(inputs[n]) if g is None else g for n, g in zip(self.wanted, found)}
        else:
            given = {**values, **inputs, **outputs, **{f"d{n}": v for n, v in upstream.items()}}
            wanted = [f"d{name}" for name in self.wanted]
            gradients = _listed(self.backward(**self._arguments(self.taken, given)), wanted, self.plan["backward"].rsplit(":", 1)[1])
            gradients = {name: gradients[f"d{name}"] for name in self.wanted}
        kept.update((f"{call['id']}.gradient.{name}", self.arrays.stored(value)) for name, value in gradients.items())
        return kept


def main(plan_file):
    """Records the calls of a plan; prints what is wrong with the function, and exits with 2."""
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    try:
        recorder = _Recorder(plan)
        with open(os.path.join(plan["cases"], "cases.json"), encoding="utf-8") as file:
            index = json.load(file)
        files = {name: Tensors(os.path.join(plan["cases"], name)) for name in index["files"]}
        size = lambda call: sum(math.prod(t["shape"]) for t in [*call["inputs"].values(), *call["outputs"].values()])
        calls, tensors, skipped = [], {}, 0
        for call in sorted(index["calls"], key=size):  # the smallest first: what fails there is reported
            stored = {name: files[call["file"]].raw(f"{call['id']}.{name}") for name in call["inputs"]}
            if len(calls) == plan["calls"] or size(call) > plan["largest"] or not size(call):
                continue
            if not all(_moderate(dtype, data) for dtype, _, data in stored.values()):
                skipped += 1
                continue
            try:
                tensors.update(recorder.record(call, stored))
            except _worker.Refused:
                skipped += 1
                continue
            calls.append({"id": call["id"], "label": f"gradients of {plan['forward'].rsplit(':', 1)[1]}", "op": plan["contract"], "gradients": True,
                          "dims": call["dims"], "params": call["params"], "storage": plan["storage"]})
    except _worker._Misused as why:
        print(f"assay: {why}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"assay: {plan['forward'].rsplit(':', 1)[1]} raised {_worker._describe(error, plan['forward'].rsplit(':', 1)[0])}", file=sys.stderr)
        return 2
    write(os.path.join(plan["output"], "trace-0001.safetensors"), tensors)
    with open(os.path.join(plan["output"], "trace.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "assay-trace/1", "declare": plan["declare"], "files": ["trace-0001.safetensors"], "calls": calls,
                   "skipped": {"calls refused, or with numbers beyond 2^40 or below 2^-40": skipped} if skipped else {}}, file, indent=1)
    return 0
