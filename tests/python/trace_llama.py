"""Three steps of a small Llama of transformers, audited by assay.trace: right, and with a planted fault."""
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import assay

DECLARED = {"cpu": {"f32": {"loses": "confident"}, "bf16": {"inputs": "bf16", "online_tile": 1}},
            "cuda": {"f32": {"functions": "cuda_exp2", "inputs": "tf32x3", "accumulation": "toward_zero", "block": 16, "online_tile": 32, "loses": "confident"},
                     "bf16": {"functions": "cuda_exp2", "inputs": "bf16", "accumulation": "toward_zero", "block": 16, "online_tile": 32, "merges_parts": "yes",
                              "loses": "confident"}}}


class ScaleLeftOut(TorchDispatchMode):
    """An attention kernel that leaves out the scale, the second time that it is called."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function.name().startswith("aten::_scaled_dot_product") and "backward" not in function.name():
            self.calls += 1
            if self.calls == 2:
                kwargs["scale"] = 1.0
        return function(*args, **kwargs)


def line(name, device):
    from transformers import LlamaConfig, LlamaForCausalLM
    storage, _, fault = name.partition("/")
    begin = time.monotonic()
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=503, hidden_size=128, intermediate_size=344, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=256, rms_norm_eps=1e-5, attn_implementation="sdpa")
    model = LlamaForCausalLM(config).to(device, torch.float32 if storage == "f32" else torch.bfloat16)
    if fault == "wrong_eps":
        norm = model.model.layers[1].post_attention_layernorm
        kept = norm.variance_epsilon
        forward = norm.forward

        def forgotten(x):
            norm.variance_epsilon = 1e-2
            y = forward(x)
            norm.variance_epsilon = kept
            return y
        norm.forward = forgotten
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    mode = ScaleLeftOut() if fault == "scale_left_out" else None
    calls, wrong, skipped, operations = 0, [], {}, {}
    for step in range(3):
        ids = torch.randint(config.vocab_size, (2, 64), device=device)
        with mode if mode is not None and step == 0 else torch.enable_grad():
            with assay.trace(model, declare=DECLARED[device][storage]) as traced:
                model(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        checked = traced.check()
        wrong += [{"step": step, **finding} for finding in checked.wrong]
        for op, judged in checked.operations.items():
            total = operations.setdefault(op, {"calls": 0, "wrong": 0, "elements": 0, "worst": 0})
            for key in ("calls", "wrong", "elements"):
                total[key] += judged[key]
            total["worst"] = max(total["worst"], judged["worst"])
        for why, count in checked.skipped.items():
            skipped[why] = skipped.get(why, 0) + count
        calls = sum(judged["calls"] for judged in operations.values())
    where = {"wrong_eps": "layers.1.post_attention_layernorm", "scale_left_out": "layers.1.self_attn"}.get(fault)
    good = not wrong if where is None else bool(wrong) and all(where in finding["label"] for finding in wrong)
    return {"name": f"trace/{name}", "verdict": "falsified" if wrong else "passed", "good": good, "cases": calls,
            "elements": sum(judged["elements"] for judged in operations.values()), "seconds": round(time.monotonic() - begin, 1),
            "declare": DECLARED[device][storage], "operations": operations, "skipped": skipped, "wrong": wrong[:20], "reason": str(wrong[:3]) if wrong else ""}
