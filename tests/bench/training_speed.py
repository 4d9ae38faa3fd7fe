#!/usr/bin/env python3
"""Times updates of a classifier, LoRA of rank 16 on q and v of Qwen2-0.5B's shape, by `assay train` and by PyTorch with
peft, eager: one JSON line each, with the median of the updates behind the first two.

    tests/bench/training_speed.py build/release/bin/assay [--ranks 2] [--base f32|nf4|f16|bf16] [--backend cuda|cpu] [--small]

Weights and tokens are random. An update is 8 samples of 512 tokens on each rank. The program gives each rank a GPU of
its own among those that CUDA_VISIBLE_DEVICES names. `scale` is tokens a second beside those of one rank, and `link` says
what moved gradients: NCCL or the host. PyTorch runs on one GPU, in float32 without TF32, and with a base in bfloat16 under
LoRA in float32; its attention is that which transformers chooses. Exit code 1: a run of Assay has failed.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("assay", type=lambda path: pathlib.Path(path).resolve())
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--base", choices=("f32", "nf4", "f16", "bf16"), default="f32", help="of Assay")
parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
parser.add_argument("--updates", type=int, default=12)
parser.add_argument("--small", action="store_true", help="a model of two layers, which trains anywhere in seconds")
options = parser.parse_args()
if options.updates < 3 or options.ranks < 1:
    parser.error("the median leaves two updates out: give 3 or more --updates, and 1 or more --ranks")

SHAPE = {"hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2,
         "num_hidden_layers": 24, "vocab_size": 151936, "rope_theta": 1000000.0, "rms_norm_eps": 1e-6,
         "tie_word_embeddings": True}
BATCH, LENGTH, CLASSES, RANK, ALPHA, LR, CLIP = 8, 512, 4, 16, 32, 1e-4, 1.0
if options.small:
    SHAPE |= {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 256}
    BATCH, LENGTH = 2, 32
NAME = "small" if options.small else "qwen2-0.5b"
rng = random.Random(1)


def samples(count):
    """Whole ones: no token is padding, which is 0."""
    return [([rng.randrange(1, SHAPE["vocab_size"]) for _ in range(LENGTH)], rng.randrange(CLASSES)) for _ in range(count)]


def show(row, tokens, seconds, **rest):
    print(json.dumps({**row, "shape": NAME, "tokens_an_update": tokens, "ms": round(seconds * 1e3, 3),
                      "tokens_per_s": round(tokens / seconds, 1), **rest}), flush=True)


def assay(ranks, folder):
    """Returns what ran, tokens of an update, and the median of an update in seconds."""
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "hidden_act": "silu", **SHAPE}))
    (folder / "train.jsonl").write_text("".join(json.dumps({"tokens": tokens, "label": label}) + "\n"
                                                for tokens, label in samples(options.updates * ranks * BATCH)))
    (folder / "train.yaml").write_text(f"""model: {{config: ., weights: random, base: {options.base}, lora: {{rank: {RANK}, alpha: {ALPHA}, targets: [q_proj, v_proj]}}}}
classifier: {{labels: [{', '.join(f'c{n}' for n in range(CLASSES))}]}}
corpus: {{train: train.jsonl, length: {LENGTH}}}
training: {{epochs: 1, batch: {BATCH}, micro_batches: {ranks}, lr: {LR}, clip: {CLIP}, seed: 1}}
backend: {options.backend}
output: out
""")
    command = [options.assay, "train", folder / "train.yaml", "--json"]
    if ranks > 1:  # mpirun would bind each rank to one processor
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    made = json.loads(done.stdout or "{}") if done.returncode == 0 else {}
    if made.get("updates") != options.updates or made["skipped"] or "median_update_seconds" not in made:
        sys.exit(f"assay train on {ranks} ranks: exit {done.returncode}: {done.stdout or 'no figures'}")
    row = {"assay": made["device"], "base": options.base, "ranks": ranks}
    if ranks > 1:
        row["link"] = "NCCL" if "NCCL moves gradients" in made["summary"]["ranks"] else "host"
    return row, ranks * BATCH * LENGTH, made["median_update_seconds"]


def pytorch(dtype):
    import peft
    import torch
    import transformers

    if options.backend == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config = transformers.Qwen2Config(**SHAPE, num_labels=CLASSES, pad_token_id=0, use_cache=False)
    model = transformers.Qwen2ForSequenceClassification(config).to(options.backend, getattr(torch, dtype))
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", r=RANK, lora_alpha=ALPHA, target_modules=["q_proj", "v_proj"]))
    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.data = p.data.float()
    for name, module in model.named_modules():  # peft casts what its adapters read, and not what the head reads
        if name.endswith("score"):
            module.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))
    optimizer = torch.optim.AdamW(trained, lr=LR)
    batches = []
    for _ in range(options.updates):
        tokens, labels = zip(*samples(BATCH))
        batches.append([torch.tensor(t, device=options.backend) for t in (tokens, labels)])
    times = []
    wait = torch.cuda.synchronize if options.backend == "cuda" else lambda: None
    for ids, labels in batches:
        wait()
        begin = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(input_ids=ids).logits.float(), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, CLIP)
        optimizer.step()
        optimizer.zero_grad()
        wait()
        times.append(time.perf_counter() - begin)
    on = torch.cuda.get_device_name() if options.backend == "cuda" else "cpu"
    peak = {"peak_mib": round(torch.cuda.max_memory_allocated() / 2**20, 1)} if options.backend == "cuda" else {}
    show({"torch": torch.__version__, "device": on, "base": dtype, "attention": config._attn_implementation,
          "trained": sum(p.numel() for p in trained)}, BATCH * LENGTH, statistics.median(times[2:]), **peak)


one = None
for ranks in sorted({1, options.ranks}):
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        row, tokens, seconds = assay(ranks, pathlib.Path(folder))
        one = one or tokens / seconds
        show(row, tokens, seconds, **({"scale": round(tokens / seconds / one, 3)} if ranks > 1 else {}))
for dtype in ("float32", "bfloat16"):
    try:
        pytorch(dtype)
    except ImportError as error:
        print(json.dumps({"torch": None, "base": dtype, "skipped": str(error)}), flush=True)
