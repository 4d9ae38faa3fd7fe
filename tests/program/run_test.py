#!/usr/bin/env python3
"""`assay run` as users call it: run_test.py ASSAY BACKEND..."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

assay, backends = sys.argv[1], sys.argv[2:]
here = pathlib.Path(__file__).resolve().parent
tiny = here / "tiny_qwen2.json"
failed = 0


def run(*args):
    return subprocess.run([assay, "run", *map(str, args)], capture_output=True, text=True)


def expect(holds, words):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", words)


def decoded(*args):
    done = run(tiny, "--random", "--json", *args)
    expect(done.returncode == 0, f"{args}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout or "{}")


prompt = ["--tokens", "1,7,49,3,3"]
for backend in backends:
    for weights in ("f32", "nf4", "q4_k", "f16", "bf16"):
        args = [*prompt, "--backend", backend, "--weights", weights, "--count", 3]
        once, again = decoded(*args), decoded(*args, "--check", "--profile")
        expect(len(once.get("tokens", [])) == 3 and once["tokens"] == again["tokens"], f"{args}: tokens differ from run to run")
        if weights == "q4_k":
            expect(decoded(*args, "--chunk", 2, "--check")["tokens"] == once["tokens"], f"{args}: tokens differ where the prompt comes in chunks")
        expect(again["checked"]["elements"] > 400, f"{args}: {again['checked']} compares next to nothing")
        passes = again["profile"]["passes"]
        expect(sum(p["steps"] for p in passes) == again["checked"]["steps"], f"{args}: the profile leaves steps out")
        expect(all(p["seconds"] > 0 for p in passes), f"{args}: a pass takes no time")
        expect(again["memory"]["caches"] == 2 * 2 * (5 + 3 + 1) * 2 * 8 * (2 if "f16" in weights else 4), f"{args}: caches take {again['memory']}")
one, every = decoded(*prompt, "--count", 3, "--check"), decoded(*prompt, "--count", 3, "--check-every", 2)
expect(every["tokens"] == one["tokens"] and every["checked"]["steps"] == 3 * one["checked"]["steps"],
       f"of 5 tokens of a prompt and 2 more, three are checked: {every['checked']} against {one['checked']}")
# Models in GGUF: the most likely token is that of transformers (tests/golden/gguf_models.py), by chunks or one by one.
golden = here.parent / "golden"
stored = (golden / "gguf.safetensors").read_bytes()
data = 8 + struct.unpack("<Q", stored[:8])[0]
for name in ("llama", "qwen2"):
    begin, end = json.loads(stored[8:data])[name]["data_offsets"]
    last = struct.unpack("<16d", stored[data + end - 16 * 8:data + end])
    for backend in backends:
        for chunk in (0, 3):
            options = ["--tokens", "3,1,4,1,5,9,2,6", "--count", 1, "--backend", backend, "--check", *(["--chunk", chunk] if chunk else [])]
            done = run(golden / f"{name}.gguf", "--json", *options)
            expect(done.returncode == 0 and not done.stderr and json.loads(done.stdout)["tokens"] == [last.index(max(last))], f"{name} {options}: {done}")
# Checkpoints in the model's format, in shards and with every bias.
for folder, weights in (("qwen3", "bf16"), ("llama", "f16"), ("qwen2", "bf16")):
    done = run(golden / "checkpoints" / folder, "--weights", weights, "--tokens", "3,1,4", "--count", 2, "--chunk", 2, "--check", "--json")
    expect(done.returncode == 0 and not done.stderr and json.loads(done.stdout)["checked"]["elements"] > 300, f"{folder} in {weights}: {done}")
wide, narrow = decoded(*prompt), decoded(*prompt, "--weights", "bf16")
expect(narrow["memory"]["weights"] < 0.6 * wide["memory"]["weights"], f"weights take {narrow['memory']} beside {wide['memory']}")
hot = [decoded(*prompt, "--count", 12, "--temperature", "2", "--seed", seed)["tokens"] for seed in (1, 1, 2)]
expect(hot[0] == hot[1] and hot[0] != hot[2], f"the seed decides the sampling: {hot}")

for fault, step in (("attention_decode/never_appended", "self_attn.attention_decode"), ("rope/position_ignored", "self_attn.rope"),
                    ("silu_mul/exchanged", "mlp.silu_mul")):
    done = run(tiny, "--random", *prompt, "--count", 2, "--check", "--kernel", "mutant/cpu/" + fault)
    expect(done.returncode == 1 and f"model.layers.0.{step}" in done.stdout, f"{fault}: exit {done.returncode}: {done.stdout}{done.stderr}")
    done = run(tiny, "--random", *prompt, "--count", 2, "--check-every", 2, "--json", "--kernel", "mutant/cpu/" + fault)
    expect(done.returncode == 1 and f"model.layers.0.{step}" in json.loads(done.stdout)["checked"]["fault"] and not json.loads(done.stdout)["tokens"],
           f"{fault}, every second token: exit {done.returncode}: {done.stdout}{done.stderr}")

if "vulkan" in backends:
    for weights, fault in (("bf16", "pairs_exchanged"), ("f16", "weights_in_storage")):
        done = run(tiny, "--random", *prompt, "--count", 2, "--check", "--backend", "vulkan", "--weights", weights, "--kernel", "mutant/vulkan/attention_decode/" + fault)
        expect(done.returncode == 1 and "self_attn.attention_decode" in done.stdout, f"{fault} in {weights}: exit {done.returncode}: {done.stdout}{done.stderr}")

for system in json.loads(subprocess.run([assay, "list", "--json"], capture_output=True, text=True).stdout)["systems"]:
    done = subprocess.run([assay, "explain", system["system"], "--json"], capture_output=True, text=True)
    expect(done.returncode == 0 and json.loads(done.stdout)["parameters"], f"explain {system['system']}: exit {done.returncode}: {done.stderr}")

plain = json.loads(tiny.read_text())
with tempfile.TemporaryDirectory() as folder:
    config = pathlib.Path(folder) / "config.json"
    for change, sentence in (
            ({"model_type": "mamba"}, "model_type: is mamba; take a llama, qwen2 or qwen3 model"),
            ({"hidden_act": "gelu"}, "hidden_act: is gelu; take a model with silu"),
            ({"rope_scaling": {"rope_type": "llama3"}}, 'rope_scaling: scales the rotation ("llama3"); take a model whose rotation is plain'),
            ({"use_sliding_window": True}, "use_sliding_window: is true; take a model that sees its whole context"),
            ({"hidden_size": None}, "hidden_size: is missing; see the model's documentation for its value"),
            ({"vocab_size": -3}, "vocab_size: is -3; see the model's documentation for its value"),
            ({"num_key_value_heads": 4}, "transformer: heads: 6 heads cannot share 4 key-value heads evenly; make heads a multiple of kv_heads")):
        config.write_text(json.dumps(plain | change))
        done = run(folder, "--random")
        expect(done.returncode == 2 and done.stderr.strip().endswith(sentence) and done.stderr.count("\n") == 1, f"{change}: {done.stderr}")
    config.write_text(json.dumps(plain | {"model_type": "llama", "attention_bias": True, "mlp_bias": True}))
    done = run(folder, "--random", "--check")
    expect(done.returncode == 0, f"every bias: {done.stderr}")
    config.write_text("[1")
    expect(run(folder, "--random").stderr.strip().endswith("is no JSON object; name a model's config.json"), "no JSON object")
    config.write_text(json.dumps(plain))
    expect(run(folder).returncode == 2, "a folder without weights")
for args, sentence in ((["--tokens", "1,,2"], "--tokens 1,,2: '' is no token; give ids with commas between them, as in --tokens 1,15043"),
                       (["--tokens", "50"], "token 50: the vocabulary has 50; tokenize with the model's own tokenizer"),
                       (["--weights", "int8"], "--weights int8: is no format of weights; use f32, f16, bf16, q4_k or nf4"),
                       (["--temperature", "-1"], "--temperature -1: is no temperature; use 0, which is greedy, or more"),
                       (["--capacity", "3"], "sequence 0: its cache holds 0 of 3 tokens, and 5 more do not fit; reset it, or give the decoder more capacity"),
                       (["--kernel", "rmsnorm/cpu/naive_bf16"], "--kernel rmsnorm/cpu/naive_bf16: it stores bf16, which no rmsnorm of the model does; name a kernel of their format"),
                       (["--kernel", "softmax/cpu/naive"], "--kernel softmax/cpu/naive: no step of the model is softmax; `assay run --profile` lists its steps")):
    done = run(tiny, "--random", *(prompt if "--tokens" not in args else []), *args)
    expect(done.returncode == 2 and done.stderr.strip() == "assay: " + sentence, f"{args}: exit {done.returncode}: {done.stderr}")
print(f"run: {failed} failures")
sys.exit(failed != 0)
