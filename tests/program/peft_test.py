#!/usr/bin/env python3
"""Adapters between `assay train` and peft: each reads what the other wrote, bit for bit, and the model decides alike.

peft_test.py ASSAY. Skipped (77) with the reason where torch, transformers or peft is missing.
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

failed = 0
classes, length = ["a", "b", "c"], 8


def expect(holds, words):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", words, flush=True)


def train(folder, name, lora, lr, model=""):
    (folder / f"{name}.yaml").write_text(f"""model: {{config: base, lora: {lora}{model}}}
classifier: {{labels: [{', '.join(classes)}]}}
corpus: {{train: corpus.jsonl, held_out: corpus.jsonl, length: {length}}}
training: {{batch: 4, lr: {lr}}}
output: {name}
""")
    done = subprocess.run([sys.argv[1], "train", folder / f"{name}.yaml", "--quiet"], capture_output=True, text=True)
    expect(done.returncode == 0, f"{name}: exit {done.returncode}: {done.stderr}")
    judged = [json.loads(line) for line in (folder / name / "probabilities.jsonl").read_text().splitlines()]
    return load_file(folder / name / "adapter/adapter_model.safetensors"), judged


def expect_alike(model, judged, texts, name):
    worst = 0
    for line, text in zip(judged, texts):
        with torch.no_grad():
            p = torch.softmax(model(torch.tensor([list(text.encode())]))[0], -1).tolist()
        expect(classes[p.index(max(p))] == line["predicted"], f"{name}: {text}: {p} and {line}")
        worst = max(worst, *(abs(p[c] - line["probabilities"][classes[c]]) for c in range(3)))
    print(f"{name}: probabilities differ by {worst:.2g} at most")


torch.manual_seed(0)
shape = transformers.Qwen2Config(hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
                                 vocab_size=256, rope_theta=10000.0, rms_norm_eps=1e-6, initializer_range=0.2, tie_word_embeddings=False)
causal = transformers.Qwen2ForCausalLM(shape).eval()


class Classifier(torch.nn.Module):
    """The mean of the hidden states, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.model, self.classifier = copy.deepcopy(causal.model), torch.nn.Linear(32, 3)

    def forward(self, ids):
        return self.classifier(self.model(input_ids=ids).last_hidden_state.mean(1))


with tempfile.TemporaryDirectory(prefix="assay-peft-") as made:
    folder = pathlib.Path(made)
    causal.save_pretrained(folder / "base", safe_serialization=True)
    texts = [c * n + other for c in classes for other in "defg" for n in range(1, length)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": t, "label": t[0]}) + "\n" for t in texts))
    ours, judged = train(folder, "ours", "{rank: 4, alpha: 16, targets: [q_proj, k_proj, down_proj]}", 0.01)
    read = peft.PeftModel.from_pretrained(Classifier(), folder / "ours/adapter").eval()
    state = peft.get_peft_model_state_dict(read)
    expect(state.keys() == ours.keys() and all(torch.equal(state[k], ours[k]) for k in ours), f"peft reads {sorted(state)} of {sorted(ours)}")
    expect_alike(read, judged, texts, "read by peft")
    biased, judged = train(folder, "biased", "{rank: 4, alpha: 16, targets: [q_proj, down_proj]}", 0.01, ", trains: ['*_proj.bias', '*.input_layernorm.weight']")
    read = peft.PeftModel.from_pretrained(Classifier(), folder / "biased/adapter").eval()
    state = peft.get_peft_model_state_dict(read)
    first = causal.model.layers[0].self_attn
    more = [k for k in state if ".modules_to_save." not in k and ".original_module." not in k]
    expect(set(more) == biased.keys() and all(torch.equal(state[k], biased[k]) for k in biased), f"peft reads {sorted(state)} of {sorted(biased)}")
    for key, base in (("q_proj.base_layer", first.q_proj), ("k_proj", first.k_proj)):
        expect(not torch.equal(biased[f"base_model.model.model.layers.0.self_attn.{key}.bias"], base.bias), f"{key}: its bias stays")
    expect_alike(read, judged, texts, "biases read by peft")
    theirs = peft.get_peft_model(Classifier(), peft.LoraConfig(r=3, lora_alpha=6, target_modules=["v_proj", "gate_proj"], modules_to_save=["classifier"])).eval()
    for name, parameter in theirs.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    theirs.create_or_update_model_card = lambda *_: None  # needs a template engine
    theirs.save_pretrained(folder / "theirs", safe_serialization=True)
    again, judged = train(folder, "again", "{from: theirs}", 0)
    wanted = load_file(folder / "theirs/adapter_model.safetensors")
    expect(again.keys() == wanted.keys() and all(torch.equal(again[k], wanted[k]) for k in wanted), f"we read {sorted(again)} of {sorted(wanted)}")
    expect_alike(theirs, judged, texts, "read from peft")
    theirs = peft.get_peft_model(Classifier(), peft.LoraConfig(r=3, lora_alpha=6, target_modules=["v_proj"], modules_to_save=["classifier"], bias="all")).eval()
    for name, parameter in theirs.named_parameters():
        if "lora_B" in name or name.endswith("_proj.bias") or name.endswith("base_layer.bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    theirs.create_or_update_model_card = lambda *_: None
    theirs.save_pretrained(folder / "theirs_biased", safe_serialization=True)
    expect(any(k.endswith("v_proj.base_layer.bias") for k in load_file(folder / "theirs_biased/adapter_model.safetensors")), "peft saves biases")
    _, judged = train(folder, "biased_again", "{from: theirs_biased}", 0)
    expect_alike(theirs, judged, texts, "biases read from peft")
print(f"peft {peft.__version__}: {failed} failures")
sys.exit(failed != 0)
