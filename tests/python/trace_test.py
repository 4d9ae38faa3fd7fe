#!/usr/bin/env python3
"""Traces of a PyTorch program and gradients: right ones, planted wrong results, and files that are no traces.

trace_test.py PACKAGES. Prints a line a check; exits with 1 if one fails, with 77 without torch.
"""
import json
import os
import sys
import tempfile

PACKAGES = os.path.abspath(sys.argv[1])
sys.path[:0] = [PACKAGES, os.path.dirname(os.path.abspath(__file__))]
try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:
    print("skipped: torch is not installed")
    sys.exit(77)
import assay  # noqa: E402
import differentiable  # noqa: E402

failures = []


def expect(what, holds, seen=""):
    print("ok  " if holds else "FAIL", what, flush=True)
    if not holds:
        failures.append(what)
        print("     ", str(seen)[:2000])


class RMSNorm(torch.nn.Module):
    def __init__(self, n, factor=1.0):
        super().__init__()
        self.weight, self.eps, self.factor = torch.nn.Parameter(torch.rand(n) + 0.5), 1e-6, factor

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps * self.factor) * self.weight


class Layer(torch.nn.Module):
    def __init__(self, h, inner):
        super().__init__()
        self.norm = RMSNorm(h)
        self.q, self.k = torch.nn.Linear(h, h), torch.nn.Linear(h, h)
        self.v, self.gate, self.up = (torch.nn.Linear(h, n, bias=False) for n in (h, inner, inner))
        self.down = torch.nn.Linear(inner, h, bias=False)

    def forward(self, x):
        y = self.norm(x)
        weights = torch.softmax(self.q(y) @ self.k(y).transpose(-1, -2) / 8, -1)
        x = x + weights @ self.v(y)
        y = self.norm(x)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


class Model(torch.nn.Module):
    def __init__(self, h=64, inner=150, entries=101):
        super().__init__()
        self.embed = torch.nn.Embedding(entries, h)
        self.layers = torch.nn.ModuleList([Layer(h, inner) for _ in range(2)])
        self.head = torch.nn.Linear(h, entries)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Wrong(TorchDispatchMode):
    """Changes the result of the n-th call of an operation: an optimized kernel that errs."""

    def __init__(self, name, number, change):
        super().__init__()
        self.name, self.left, self.change = name, number, change

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.name().split(".")[0] == self.name:
            self.left -= 1
            if self.left == 0:
                self.change(result, args)
        return result


def step(model, ids, wrong=None):
    def run():
        with assay.trace(model) as traced:
            logits = model(ids)
            torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), ids.reshape(-1)).backward()
        return traced.check()
    if wrong is None:
        return run()
    with wrong:
        return run()


torch.manual_seed(0)
ids = torch.randint(101, (3, 37))
checked = step(Model(), ids)
print(checked)
expect("a right step is right", checked and not checked.wrong, checked)
expected = {"cross_entropy", "embedding", "embedding_backward", "linear", "matmul", "residual_add", "rmsnorm", "silu", "silu_backward", "softmax", "softmax_backward"}
expect("each operation is judged", set(checked.operations) == expected, checked.operations)
expect("forward and backward", checked.operations["softmax"]["calls"] == 2 == checked.operations["softmax_backward"]["calls"])
expect("what no contract judges is counted", sum(checked.skipped.values()) > 0, checked.skipped)

last = lambda rows: rows.reshape(-1, rows.shape[-1])[-1]
for name, number, op, place, change in (
        ("aten::_softmax", 2, "softmax", "layers.1", lambda y, _: y.mul_(1 + 2.0 ** -18)),
        ("aten::_softmax", 1, "softmax", "layers.0", lambda y, _: last(y).copy_(last(y).flip(0))),
        ("aten::embedding", 1, "embedding", "embed", lambda y, _: last(y)[-1:].add_(2.0 ** -10)),
        ("aten::silu", 1, "silu", "layers.0", lambda y, args: y.copy_(args[0] * torch.sigmoid(1.702 * args[0]))),
        ("aten::addmm", 5, "linear", "head", lambda y, args: y.sub_(torch.outer(args[1][:, -1], args[2][-1]))),
        ("aten::addmm", 1, "linear", "layers.0.q", lambda y, args: y.sub_(args[0])),
        ("aten::add", 6, "residual_add", "layers.1", lambda y, args: last(y).copy_(last(args[0]))),
        ("aten::silu_backward", 1, "silu_backward", "backward", lambda dx, args: dx.copy_(args[0] * torch.sigmoid(args[1]))),
        ("aten::_softmax_backward_data", 2, "softmax_backward", "backward", lambda dx, args: dx.copy_(args[0] * args[1])),
        ("aten::embedding_dense_backward", 1, "embedding_backward", "backward", lambda d, _: d.mul_(0.5))):
    found = step(Model(), ids, Wrong(name, number, change)).wrong
    expect(f"{name}: {found[0]['label'] if found else 'nothing'}: {found[0]['message'] if found else ''}",
           len(found) == 1 and found[0]["op"] == op and place in found[0]["label"], found)

model = Model()
model.layers[1].norm = RMSNorm(64, factor=1000.0)
with torch.no_grad():
    model.embed.weight.mul_(0.01)
found = step(model, ids).wrong
expect("a wrong eps is named with its layer", found and all(f["label"].startswith("layers.1.norm") for f in found), found)


def raised(run):
    try:
        return f"nothing was said: {run()}"
    except ValueError as error:
        return str(error)


def doubles():
    with assay.trace() as traced:
        torch.softmax(torch.rand(3, 5, dtype=torch.float64), -1)
    return traced.check()


said = raised(doubles)
expect(f"a trace of which nothing can be judged: {said}", "no call that could be judged" in said and "float64" in said, said)


def refused(change):
    with tempfile.TemporaryDirectory() as folder:
        traced = assay.trace(Model(8, 12, 9), folder=folder)
        with traced:
            traced_model = torch.softmax(torch.rand(3, 5), -1)
        assert traced_model is not None
        change(folder)
        return raised(traced.check)


def edit(**changes):
    def change(folder):
        with open(f"{folder}/trace.json") as file:
            index = json.load(file)
        index["calls"][0].update(changes)
        with open(f"{folder}/trace.json", "w") as file:
            json.dump(index, file)
    return change


def cut(name, size):
    return lambda folder: os.truncate(f"{folder}/{name}", size)


for what, words, change in (("no file of tensors", "trace-0001", lambda folder: os.remove(f"{folder}/trace-0001.safetensors")),
                            ("a torn file of tensors", "safetensors", cut("trace-0001.safetensors", 40)),
                            ("a torn list", "trace.json", cut("trace.json", 60)),
                            ("other dims", "dims of the call", edit(dims={"rows": 4, "n": 5})),
                            ("no contract of that name", "softmaxx", edit(op="softmaxx")),
                            ("dims left out", "cannot be read", edit(dims={"rows": 3})),
                            ("dims of another kind", "cannot be read", edit(dims={"rows": "x", "n": 5}))):
    said = refused(change)
    expect(f"{what}: {said}", words in said and "\n" not in said and not said.startswith("nothing"), said)

for name, contract, options in (("softmax", "softmax", {}), ("composed_softmax", "softmax", {}), ("by_formula", "softmax", {}), ("rmsnorm", "rmsnorm", {}),
                                ("rmsnorm", "rmsnorm", {"declare": {"storage": "bf16"}}), ("silu", "silu", {}), ("matmul", "matmul", {}),
                                ("cross_entropy", "cross_entropy", {}), ("embedding", "embedding", {})):
    checked = assay.gradcheck(getattr(differentiable, name), contract, **options)
    judged = checked.operations[contract]
    expect(f"gradients of {name} {options or ''}: {judged['calls']} calls, {judged['elements']} elements, {judged['worst']:.2g} of the bound",
           checked and judged["calls"] >= 15 and judged["elements"] > 1000, checked)
found = assay.gradcheck(differentiable.wrong_sum_in_bfloat16, "rmsnorm", declare={"storage": "bf16"}).wrong
expect(f"a sum in bfloat16: {found[0]['message'] if found else 'nothing'}", found and found[0]["tensor"] == "dx", found)
for name, contract, tensor in (("wrong_projection", "softmax", "dx"), ("wrong_by_a_little", "softmax", "dx"), ("wrong_detached", "rmsnorm", "dx"),
                               ("wrong_weight", "rmsnorm", "dweight"), ("wrong_hook", "matmul", "db"), ("wrong_mean", "cross_entropy", "dlogits")):
    found = assay.gradcheck(getattr(differentiable, name), contract).wrong
    expect(f"{name}: {found[0]['message'] if found else 'nothing'}", found and found[0]["tensor"] == tensor, found)
for name, contract, words in (("wrong_values", "silu", "nothing that torch can differentiate"), ("raises", "silu", "ArithmeticError: out of ideas"),
                              ("silu", "global_grad_norm", "has no gradients")):
    said = raised(lambda name=name, contract=contract: assay.gradcheck(getattr(differentiable, name), contract))
    expect(f"{name}: {said}", words in said and "\n" not in said, said)

print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
