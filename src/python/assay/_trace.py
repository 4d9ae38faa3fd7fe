"""Calls of a PyTorch program, forward and backward, with their operands and results: what assay.trace records."""
import bisect
import json
import os
import struct
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_STORED = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32"}
_STORAGE = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


def _rows(tensor):
    return tensor.reshape(-1, tensor.shape[-1])


class _Call:
    """A call of a contract. `independent` lists (dim, {tensor: axis}): problems along a dim of which some are enough."""

    def __init__(self, op, dims, inputs, outputs, params=None, independent=()):
        self.op, self.dims, self.params = op, dims, params or {}
        self.inputs, self.outputs, self.independent = inputs, outputs, independent

    def sampled(self, most, generator):
        """Keeps the first, the last and drawn problems along each independent dim, `most` of them."""
        for dim, axes in self.independent:
            size = self.dims[dim]
            if size <= most:
                continue
            drawn = torch.randint(size, (most - 2,), generator=generator)
            kept = torch.unique(torch.cat([torch.tensor([0, size - 1]), drawn]))
            for tensors in (self.inputs, self.outputs):
                for name, axis in axes.items():
                    if name in tensors:
                        tensors[name] = tensors[name].index_select(axis, kept.to(tensors[name].device))
            self.dims[dim] = len(kept)
        return self


def _product(a, b, out):
    (m, k), n = a.shape, b.shape[1]
    return _Call("matmul", {"m": m, "k": k, "n": n}, {"a": a, "b": b}, {"c": out},
                 independent=[("m", {"a": 0, "c": 0}), ("n", {"b": 1, "c": 1})])


def _mm(args, _, out):
    return _product(*args[:2], out)


def _addmm(args, kwargs, out):
    bias, x, transposed = args[:3]
    if kwargs.get("beta", 1) != 1 or kwargs.get("alpha", 1) != 1 or bias.dim() != 1 or bias.shape[0] != transposed.shape[1]:
        return None
    return _Call("linear", {"s": x.shape[0], "in": x.shape[1], "out": transposed.shape[1], "biases": 1},
                 {"x": x, "weight": transposed.t(), "bias": bias[None]}, {"y": out},
                 independent=[("s", {"x": 0, "y": 0}), ("out", {"weight": 0, "bias": 1, "y": 1})])


def _bmm(args, _, out):
    return [_product(a, b, c) for a, b, c in zip(args[0][:2], args[1][:2], out[:2])]


def _softmax(args, _, out):
    x, dim = args[:2]
    if dim % x.dim() != x.dim() - 1:
        return None
    rows = _rows(x)
    return _Call("softmax", {"rows": rows.shape[0], "n": rows.shape[1]}, {"x": rows}, {"y": _rows(out)},
                 independent=[("rows", {"x": 0, "y": 0})])


def _softmax_backward(args, _, out):
    dy, y, dim = args[:3]
    if dim % y.dim() != y.dim() - 1:
        return None
    rows = _rows(y)
    return _Call("softmax_backward", {"rows": rows.shape[0], "n": rows.shape[1]}, {"y": rows, "dy": _rows(dy)}, {"dx": _rows(out)},
                 independent=[("rows", {"y": 0, "dy": 0, "dx": 0})])


def _silu(args, _, out):
    x = _rows(args[0])
    return _Call("silu", {"m": x.shape[0], "n": x.shape[1]}, {"x": x}, {"y": _rows(out)}, independent=[("m", {"x": 0, "y": 0})])


def _silu_backward(args, _, out):
    dy, x = _rows(args[0]), _rows(args[1])
    return _Call("silu_backward", {"m": x.shape[0], "n": x.shape[1]}, {"x": x, "dy": dy}, {"dx": _rows(out)},
                 independent=[("m", {"x": 0, "dy": 0, "dx": 0})])


def _embedding(args, _, out):
    table, ids = args[:2]
    return _Call("embedding", {"t": ids.numel(), "v": table.shape[0], "h": table.shape[1]},
                 {"ids": ids.reshape(-1).to(torch.int32), "table": table}, {"y": _rows(out)}, independent=[("h", {"table": 1, "y": 1})])


def _embedding_backward(args, _, out):
    dy, ids, rows, padding, by_frequency = args[:5]
    if padding >= 0 or by_frequency:
        return None
    dy = _rows(dy)
    return _Call("embedding_backward", {"t": ids.numel(), "v": rows, "h": dy.shape[1]},
                 {"ids": ids.reshape(-1).to(torch.int32), "dy": dy}, {"dtable": out}, independent=[("h", {"dy": 1, "dtable": 1})])


def _add(args, kwargs, out):
    x, r = args[:2]
    if not torch.is_tensor(r) or x.shape != r.shape or x.dim() < 2:
        return None
    return _Call("residual_add", {"m": _rows(x).shape[0], "n": x.shape[-1]}, {"x": _rows(x), "r": _rows(r)}, {"y": _rows(out)},
                 {"alpha": kwargs.get("alpha", 1)}, independent=[("m", {"x": 0, "r": 0, "y": 0})])


def _rms_norm(args, _, out):
    x, shape, weight, eps = args[:4]
    if weight is None or eps is None or len(shape) != 1:
        return None
    y, rrms = out
    return _Call("rmsnorm", {"rows": _rows(x).shape[0], "n": shape[0]}, {"x": _rows(x), "weight": weight.float()},
                 {"y": _rows(y), "rrms": rrms.reshape(-1)}, {"eps": eps}, independent=[("rows", {"x": 0, "y": 0, "rrms": 0})])


def _attention(causal_at, lse_at):
    """Arguments: q, k, v, dropout, causal; or q, k, v, bias, whether there is a logsumexp, dropout, causal."""
    def convert(args, kwargs, out):
        q, k, v = args[:3]
        causal = kwargs.get("is_causal", args[causal_at] if len(args) > causal_at else False)
        bias = args[3] if causal_at == 6 and len(args) > 3 else kwargs.get("attn_mask", kwargs.get("attn_bias"))
        if bias is not None or (causal and q.shape[2] != k.shape[2]):
            return None
        dropout = args[causal_at - 1] if len(args) > causal_at - 1 else kwargs.get("dropout_p", 0)
        if dropout:
            return None
        batch, heads, s, d = q.shape
        t, scale = k.shape[2], kwargs.get("scale")
        places = lambda x: x.transpose(1, 2)
        some = slice(0, 1)
        outputs = {"y": places(out[0])[some]}
        if lse_at is not None and out[lse_at].numel() == batch * heads * s:
            outputs["logsumexp"] = out[lse_at].reshape(batch, heads, s)[some]
        return _Call("attention", {"batch": 1, "s": s, "t": t, "kv_heads": k.shape[1], "heads": heads, "d": d},
                     {"q": places(q)[some], "k": places(k)[some], "v": places(v)[some],
                      "lengths": torch.full((1,), t, dtype=torch.int32), "starts": torch.zeros(1, dtype=torch.int32)},
                     outputs, {"scale": float(d ** -0.5 if scale is None else scale), "causal": int(bool(causal))})
    return convert


_CONVERT = {
    "aten::mm": _mm, "aten::addmm": _addmm, "aten::bmm": _bmm, "aten::_softmax": _softmax,
    "aten::_softmax_backward_data": _softmax_backward, "aten::silu": _silu, "aten::silu_backward": _silu_backward,
    "aten::embedding": _embedding, "aten::embedding_dense_backward": _embedding_backward, "aten::add": _add,
    "aten::_fused_rms_norm": _rms_norm, "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(4, 1),
    "aten::_scaled_dot_product_flash_attention": _attention(4, 1), "aten::_scaled_dot_product_cudnn_attention": _attention(6, 1),
    "aten::_scaled_dot_product_efficient_attention": _attention(6, None),
}


class _AdamW:
    """Some elements of each parameter before a fused step, which overwrites them."""

    def __init__(self, args, kwargs, most, generator):
        self.kwargs, self.steps = kwargs, args[5]
        self.tensors = [dict(zip(("p", "g", "m", "v"), tensors)) for tensors in zip(*args[:4])]
        self.some = [torch.unique(torch.cat([torch.tensor([0, t["p"].numel() - 1]), torch.randint(t["p"].numel(), (16 * most,), generator=generator)]))
                     if t["p"].numel() else torch.empty(0, dtype=torch.int64) for t in self.tensors]
        self.before = [self._take(number) for number in range(len(self.tensors))]

    def _take(self, number):
        return {name: t.detach().reshape(-1)[self.some[number].to(t.device)] for name, t in self.tensors[number].items()}

    def calls(self):
        """Returns the calls, or None for what no contract has."""
        named = self.kwargs
        if named.get("amsgrad") or named.get("maximize") or named.get("grad_scale") is not None or named.get("found_inf") is not None:
            return None
        params = {name: float(named[name]) for name in ("lr", "beta1", "beta2", "eps", "weight_decay")}
        found = []
        for number, before in enumerate(self.before):
            after = self._take(number)
            found.append(_Call("adamw_step", {"n": len(self.some[number]), "copies": 0}, before, {name: after[name] for name in ("p", "m", "v")},
                               {**params, "step": int(self.steps[number])}))
        return found


def _nll_loss(logits, args, out):
    """cross_entropy, which PyTorch computes as log_softmax and nll_loss."""
    _, targets, weights, reduction, ignored = args[:5]
    if logits is None or logits.dim() != 2 or logits.numel() > 1 << 24:
        return None
    kept = targets != ignored
    weights = torch.ones(logits.shape[1]) if weights is None else weights
    outputs = {"loss": out[0][kept]} if reduction == 0 else {"total": out[0].reshape(1)}
    if reduction == 1:
        outputs["normalizer"] = out[1].reshape(1)
    logits, targets = logits[kept], targets[kept].to(torch.int32)
    return None if not len(targets) else _Call("cross_entropy", {"rows": len(targets), "classes": logits.shape[1]},
                                               {"logits": logits, "targets": targets, "weights": weights}, outputs, {"reduction": max(reduction, 1)})


_NORMS = ("RMSNorm", "LlamaRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm", "MistralRMSNorm")


class Recorder(TorchDispatchMode):
    """Records the calls of known operations, with samples of their problems, and the modules that made them."""

    def __init__(self, model, most, seed):
        super().__init__()
        self.names = {id(module): name for name, module in model.named_modules()} if model is not None else {}
        self.most, self.generator = most, torch.Generator().manual_seed(seed)
        self.calls, self.skipped, self.modules, self.ends, self.hooks = [], {}, [], [], []
        self.logits = {}  # of the last log_softmax, by the place of its result

    def __enter__(self):
        hooks = torch.nn.modules.module
        self.hooks = [hooks.register_module_forward_pre_hook(self._begin), hooks.register_module_forward_hook(self._end)]
        return super().__enter__()

    def __exit__(self, *failure):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*failure)

    def _begin(self, module, _):
        self.modules.append(self.names.get(id(module)) or type(module).__name__)

    def _end(self, module, inputs, output):
        self._take_norm(module, inputs, output)
        name = self.modules.pop()
        for value in output if isinstance(output, (tuple, list)) else [output]:
            node = getattr(value, "grad_fn", None)
            if node is not None and hasattr(node, "_sequence_nr"):
                self.ends.append((node._sequence_nr(), name))

    def _take_norm(self, module, inputs, output):
        """Records a module of the kind of LlamaRMSNorm, whose parts no contract has."""
        eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
        weight = getattr(module, "weight", None)
        if type(module).__name__ not in _NORMS or eps is None or weight is None or not torch.is_tensor(output):
            return
        x, y = _rows(inputs[0]), _rows(output)
        if x.dtype != torch.float32:  # rounded again before the product with the weight
            return self._skip(f"{type(module).__name__} of {x.dtype}")
        self._take(_Call("rmsnorm", {"rows": x.shape[0], "n": x.shape[1]}, {"x": x, "weight": weight}, {"y": y}, {"eps": float(eps)},
                         independent=[("rows", {"x": 0, "y": 0})]), type(module).__name__)

    def _place(self):
        if self.modules:
            return self.modules[-1]
        current = getattr(torch._C, "_current_autograd_node", lambda: None)()
        if current is None:
            return ""
        if not hasattr(current, "_sequence_nr"):
            return "backward"
        at = bisect.bisect_left(self.ends, (current._sequence_nr(), ""))
        return "backward of " + (self.ends[at][1] if at < len(self.ends) else current.name())

    def _skip(self, why):
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.name().split(".")[0]
        step = _AdamW(args, kwargs, self.most, self.generator) if name == "aten::_fused_adamw_" else None
        result = function(*args, **kwargs)
        if name == "aten::_log_softmax" and args[1] % args[0].dim() == args[0].dim() - 1:
            self.logits = {result.data_ptr(): args[0]}
        if step is not None:
            calls = step.calls()
        elif name == "aten::nll_loss_forward":
            calls = _nll_loss(self.logits.pop(args[0].data_ptr(), None), args, result)
        elif name in _CONVERT:
            calls = _CONVERT[name](args, kwargs, result)
        else:
            return result
        if calls is None:
            self._skip(f"{name} with arguments that no contract has")
            return result
        for call in calls if isinstance(calls, list) else [calls]:
            self._take(call, name)
        return result

    def _take(self, call, name):
        tensors = [t for t in [*call.inputs.values(), *call.outputs.values()] if t.is_floating_point()]
        if any(t.dtype not in _STORED for t in tensors):
            return self._skip(f"{name} of {tensors[0].dtype}")
        call.sampled(self.most, self.generator)
        keep = lambda tensors: {n: t.detach().to("cpu", copy=True).contiguous() for n, t in tensors.items()}
        call.inputs, call.outputs = keep(call.inputs), keep(call.outputs)
        place = self._place()
        call.label = f"{place}: {name}" if place else name
        self.calls.append(call)

    def write(self, folder, contracts, declare):
        """Writes trace.json and trace-0001.safetensors. `contracts` gives the tensors of an operation by name."""
        tensors, index = {}, []
        for number, call in enumerate(self.calls):
            types = contracts(call.op)
            formats = {t.dtype for n, t in [*call.inputs.items(), *call.outputs.items()] if types[n] == "storage"}
            alone = {t.dtype for n, t in [*call.inputs.items(), *call.outputs.items()] if types[n] == "f32"}
            if alone - {torch.float32} or len(formats) > 1:
                self._skip(f"{call.op} of {', '.join(sorted(str(t) for t in (alone | formats) - {torch.float32}))}: "
                           "its contract takes float32 alone")
                continue
            identity = f"c{number:06}"
            for kind, some in (("in", call.inputs), ("out", call.outputs)):
                tensors.update((f"{identity}.{kind}.{name}", tensor) for name, tensor in some.items())
            index.append({"id": identity, "label": call.label, "op": call.op, "dims": call.dims, "params": call.params,
                          "storage": _STORAGE[formats.pop()] if formats else "f32"})
        _save(os.path.join(folder, "trace-0001.safetensors"), tensors)
        with open(os.path.join(folder, "trace.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "assay-trace/1", "declare": declare, "files": ["trace-0001.safetensors"], "calls": index,
                       "skipped": self.skipped}, file, indent=1)


def _save(path, tensors):
    """Writes a safetensors file: https://github.com/huggingface/safetensors, "Format"."""
    header, at = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _STORED[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            if tensor.numel():
                file.write(bytes(tensor.reshape(-1).view(torch.uint8).numpy()))
