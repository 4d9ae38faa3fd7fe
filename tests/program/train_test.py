#!/usr/bin/env python3
"""`assay train` as users call it: train_test.py ASSAY BACKEND..."""
import csv
import json
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

assay, backends = sys.argv[1], sys.argv[2:]
failed = 0
rng = random.Random(1)
tiny = {"model_type": "qwen2", "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1,
        "num_hidden_layers": 2, "vocab_size": 256, "tie_word_embeddings": False}
temporary = tempfile.TemporaryDirectory(prefix="assay-train-")
here = pathlib.Path(temporary.name)


def expect(holds, words):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", words, flush=True)


def write(name, text):
    (here / name).parent.mkdir(exist_ok=True)
    (here / name).write_text(text)
    return here / name


def configuration(name="train.yaml", model="", training="", rest=""):
    """A configuration whose class is told by a letter in the text."""
    return write(name, f"""model: {{config: ., weights: random{model}}}
classifier: {{labels: [a, b]}}
corpus: {{train: train.jsonl, held_out: held_out.jsonl, length: 12}}
training: {{epochs: 3, batch: 4, lr: 0.01, seed: 5{training}}}
output: out
{rest}""")


def train(config, *args, **kwargs):
    return subprocess.run([assay, "train", str(config), *map(str, args)], capture_output=True, text=True, **kwargs)


def trained(config, *args):
    shutil.rmtree(here / "out", ignore_errors=True)
    done = train(config, "--json", *args)
    expect(done.returncode == 0 and done.stderr == "", f"{config.read_text()} {args}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout or "{}")


def files(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def tensors(file):
    """Header and numbers of a safetensors file, without the program that wrote it."""
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    number = lambda h: struct.unpack(f"<{(h['data_offsets'][1] - h['data_offsets'][0]) // 4}f",
                                     data[8 + size + h["data_offsets"][0]:8 + size + h["data_offsets"][1]])
    return {name: (h["shape"], number(h)) for name, h in header.items() if name != "__metadata__"}


def lines(count):
    made = []
    for _ in range(count):
        label = rng.choice("ab")
        text = "".join(rng.choice("cdefgh ") for _ in range(rng.randint(1, 8)))
        at = rng.randint(0, len(text))
        made.append(json.dumps({"text": text[:at] + label * 2 + text[at:], "label": label}))
    return "\n".join(made) + "\n"


write("config.json", json.dumps(tiny))
write("train.jsonl", lines(120) + json.dumps({"text": "a" * 30, "label": "a"}) + "\n")
write("held_out.jsonl", lines(40))



def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


NF4 = list(map(f32, (-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
                     0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                     0.7229568362236023, 1)))


def nearest_nf4(block):
    """What the codes of a block of 64 columns or fewer mean (contracts/nf4_quantize.yaml)."""
    scale = max(map(abs, block))
    return [f32(NF4[sum(x > f32(f32((a + b) / 2) * scale) for a, b in zip(NF4, NF4[1:]))] * scale) for x in block]


def nearest_bf16(x):
    bits, = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000))[0]


# The files of a run, and the tensors of its adapters.
for base in ("f32", "nf4", "bf16"):
    config = configuration(model=f", base: {base}, norms: true, lora: {{rank: 3, alpha: 6, targets: [q_proj, down_proj], merge: true}}")
    done = trained(config)
    expect(done["updates"] == 3 * 31 and done["skipped"] == 0, f"{base}: {done['updates']} updates")
    expect(0 < done["median_update_seconds"] * 46 <= done["seconds"], f"46 of 91 updates take the median of their times or longer: {done}")
    expect("1 samples at 12 tokens; 18 tokens left out" == done["summary"]["cut"], f"what is cut is said: {done['summary']}")
    expect(done["held_out"]["accuracy"] >= 0.9, f"{base}: it learns: {done['held_out']}")
    rows = list(csv.DictReader((here / "out/curve.csv").open()))
    expect(len(rows) == 93 and float(rows[-1]["held_out_accuracy"]) == done["held_out"]["accuracy"] and rows[0]["held_out_loss"] == "", "the curve")
    expect(rows[30]["samples"] == "1", "the last update of an epoch has what is left")
    page = (here / "out/curve.html").read_text()
    expect(page.count("<svg") == 3 and not re.search(r"(src|href)=|url\(|@import|https?:|<script", page), "the page needs nothing else")
    judged = [json.loads(line) for line in (here / "out/probabilities.jsonl").read_text().splitlines()]
    right = sum(j["predicted"] == j["label"] for j in judged)
    expect(right / len(judged) == done["held_out"]["accuracy"] and all(abs(sum(j["probabilities"].values()) - 1) < 1e-12 for j in judged), "the probabilities")
    adapter = json.loads((here / "out/adapter/adapter_config.json").read_text())
    expect((adapter["peft_type"], adapter["r"], adapter["lora_alpha"], sorted(adapter["target_modules"])) == ("LORA", 3, 6, ["down_proj", "q_proj"]), adapter)
    held = tensors(here / "out/adapter/adapter_model.safetensors")
    layers = [f"base_model.model.model.layers.{n}." for n in (0, 1)]
    shapes = {"base_model.model.classifier.weight": [2, 16], "base_model.model.classifier.bias": [2], "base_model.model.model.norm.weight": [16]}
    for layer in layers:
        shapes |= {layer + "self_attn.q_proj.lora_A.weight": [3, 16], layer + "self_attn.q_proj.lora_B.weight": [16, 3],
                   layer + "mlp.down_proj.lora_A.weight": [3, 24], layer + "mlp.down_proj.lora_B.weight": [16, 3],
                   layer + "input_layernorm.weight": [16], layer + "post_attention_layernorm.weight": [16]}
    expect({k: v[0] for k, v in held.items()} == shapes, f"the adapter has {sorted(held)}")
    expect(all(adapter["modules_to_save"].count(m) == 1 for m in ("classifier", "norm", "input_layernorm", "post_attention_layernorm")), adapter)
    # Merged: W + alpha / r B A, with W as the base holds what the seed gives; three products and three sums of float32.
    merged, (_, a), (_, b) = tensors(here / "out/model/model.safetensors"), held[layers[0] + "self_attn.q_proj.lora_A.weight"], held[layers[0] + "self_attn.q_proj.lora_B.weight"]
    shutil.copytree(here / "out", here / "kept", dirs_exist_ok=True)
    trained(configuration("plain.yaml", model=", trains: false"))  # of the head alone: the base is as the seed gives it
    plain = tensors(here / "out/model/model.safetensors")["model.layers.0.self_attn.q_proj.weight"][1]
    for o in range(16):
        row = plain[o * 16:o * 16 + 16]
        row = nearest_nf4(row) if base == "nf4" else list(map(nearest_bf16, row)) if base == "bf16" else row
        for i in range(16):
            terms = [2 * b[o * 3 + r] * a[r * 16 + i] for r in range(3)]
            want = row[i] + sum(terms)
            bound = 8 * 2**-24 * (abs(row[i]) + sum(map(abs, terms)))
            expect(abs(merged["model.layers.0.self_attn.q_proj.weight"][1][o * 16 + i] - want) <= bound, f"{base}: merged {o} {i}")
    # Read back, the adapter judges with the same bits, and the merged model decides alike.
    once = write("once.yaml", re.sub(r"rank: 3.*?true", "from: kept/adapter", config.read_text().replace("epochs: 3", "epochs: 1").replace("lr: 0.01", "lr: 0")))
    again = trained(once)
    expect(again["held_out"] == done["held_out"] and again["summary"]["adapters"] == done["summary"]["adapters"], f"{base}: read back: {again}")
    trained(write("merged.yaml", once.read_text().replace(f"config: ., weights: random, base: {base}", "config: kept/model").replace(", lora: {from: kept/adapter}", "").replace("norms: true", "trains: false")))
    merged = [json.loads(line) for line in (here / "out/probabilities.jsonl").read_text().splitlines()]
    expect([j["predicted"] for j in merged] == [j["predicted"] for j in judged], f"{base}: the merged model decides otherwise")
# Beside adapters, what names say trains.
named = configuration("named.yaml", model=", trains: ['*.bias', '*.k_proj.weight'], lora: {rank: 2, targets: [q_proj]}")
trained(named)
held = {name.removeprefix("base_model.model."): numbers for name, (_, numbers) in tensors(here / "out/adapter/adapter_model.safetensors").items()}
for n in (0, 1):
    for p in ("q_proj.base_layer", "k_proj", "v_proj"):
        expect(any(held[f"model.layers.{n}.self_attn.{p}.bias"]), f"{n} {p}: its bias, which begins as zeros, has not moved")
    expect(f"model.layers.{n}.self_attn.k_proj.weight" in held and f"model.layers.{n}.self_attn.v_proj.weight" not in held, f"weights of {sorted(held)}")
adapter = json.loads((here / "out/adapter/adapter_config.json").read_text())
expect(adapter["bias"] == "all" and sorted(adapter["modules_to_save"]) == ["classifier", "k_proj"], adapter)
wrong = train(write("wrong.yaml", named.read_text().replace("'*.bias'", "'*.biases'")))
expect(wrong.returncode == 2 and "trained: '*.biases' names no parameter of the model" in wrong.stderr, f"a name of nothing: {wrong.stderr}")
for base in ("f16", "bf16"):
    refused = train(write("narrow.yaml", named.read_text().replace("trains:", f"base: {base}, trains:")))
    expect(refused.returncode == 2 and f"k_proj.weight is in {base}, which does not train" in refused.stderr, f"{base}: {refused.stderr}")
packed = train(write("packed.yaml", named.read_text().replace("trains:", "base: nf4, trains:")))
expect(packed.returncode == 2 and "k_proj.weight is in nf4, which does not train" in packed.stderr, f"packed: {packed.stderr}")
broken = json.loads((here / "kept/adapter/adapter_config.json").read_text())
for change, sentence in (({"use_dora": True}, "has use_dora; take a plain LoRA adapter"), ({"use_rslora": True}, "has use_rslora; take a plain LoRA adapter"),
                         ({"rank_pattern": {"q_proj": 4}}, "has a rank_pattern; take a plain LoRA adapter"), ({"bias": "lora_only"}, 'has the bias "lora_only"; take a plain LoRA adapter'),
                         ({"target_modules": ["lm_head"]}, 'has the target "lm_head"; take projections alone, such as q_proj'), ({"peft_type": "IA3"}, "is no configuration of a LoRA adapter; take a plain LoRA adapter")):
    (here / "kept/adapter/adapter_config.json").write_text(json.dumps(broken | change))
    expect(train(once).stderr.strip().endswith("adapter_config.json: " + sentence), f"{change}: {train(once).stderr}")
(here / "kept/adapter/adapter_config.json").write_text(json.dumps(broken | {"target_modules": ["q_proj"]}))
expect("which the model has not; take an adapter of this model" in train(once).stderr, "an adapter that nothing takes is no part of the model")

# Several labels, early stopping, accumulation.
write("several.jsonl", '{"text": "a", "labels": ["a"]}\n{"text": "b", "labels": ["b"]}\n{"text": "ab", "labels": [1, 1]}\n{"text": "c", "labels": []}\n' * 10)
several = write("several.yaml", """model: {config: ., weights: random}
classifier: {labels: [a, b], multi_label: true, weights: [1, 2]}
corpus: {train: several.jsonl, held_out: several.jsonl, length: 12}
training: {epochs: 60, batch: 4, micro_batches: 2, lr: 0.01, warmup: 10, patience: 3}
output: out
""")
done = trained(several)
rows = list(csv.DictReader((here / "out/curve.csv").open()))
expect(done["held_out"]["accuracy"] == 1 and rows[0]["samples"] == "8" and len(rows) == done["epochs"] * 5, f"several labels: {done}")
expect([round(float(r["lr"]), 12) for r in rows[:11]] == [round(0.001 * min(n, 10), 12) for n in range(1, 12)], "the warm-up")
losses = [float(r["held_out_loss"]) for r in rows if r["held_out_loss"]]
stopped = trained(write("patient.yaml", several.read_text().replace("lr: 0.01", "lr: 0.5")))
rows = [float(r["held_out_loss"]) for r in csv.DictReader((here / "out/curve.csv").open()) if r["held_out_loss"]]
best = rows.index(min(rows))
expect(stopped["epochs"] < 60 and len(rows) == best + 1 + 3 and stopped["held_out"]["loss"] == rows[best], f"patience: {rows} {stopped}")

# Words by a tokenizer.json, and ids as they are.
words = json.loads((pathlib.Path(__file__).resolve().parents[1] / "golden/tokenizers.json").read_text())["qwen2"]
write("tokenizer.json", json.dumps(words["tokenizer"]))
write("wide/config.json", json.dumps(tiny | {"vocab_size": 341}))
bpe = write("bpe.yaml", configuration().read_text().replace("config: .", "config: wide").replace("length: 12", "length: 12, tokenizer: tokenizer.json").replace("epochs: 3", "epochs: 1"))
done, first = trained(bpe), files(here / "out")
expect(done["summary"]["tokenizer"] == "BPE (341)", f"the tokenizer: {done}")
texts = {case[0]: case[1] for case in words["cases"]}
for name, of in (("texts", lambda text: {"text": text}), ("ids", lambda text: {"tokens": texts[text]})):
    write(name + ".jsonl", "".join(json.dumps(of(text) | {"label": "ab"[len(text) % 2]}) + "\n" for text in texts if text))
    trained(write("bpe.yaml", re.sub(r"train: \S+, held_out: \S+,", f"train: {name}.jsonl, held_out: {name}.jsonl,", bpe.read_text())))
    expect(name == "texts" or files(here / "out") == first, "ids of the tokenizer train another model than its texts")
    first = files(here / "out")
write("texts.jsonl", '{"text": "a", "label": "a"}\n{"text": "e\\u0301", "label": "a"}\n')
done = train(write("bpe.yaml", bpe.read_text().replace("ids.jsonl", "texts.jsonl")))
expect(done.stderr.strip().endswith("texts.jsonl:2: has U+0301 where normalization may change it; bring the text into Unicode's form C"), done.stderr)
done = train(write("bpe.yaml", bpe.read_text().replace("config: wide", "config: .").replace("texts.jsonl", "train.jsonl").replace("ids.jsonl", "train.jsonl")))
expect(re.search(r"train.jsonl:\d+: has the token \d+, and the model has 256; take the model's own tokenizer, or a model with a larger vocabulary$", done.stderr.strip()), done.stderr)

# Every step of every update within its bound, on every back end; a wrong one is named, and nothing else runs.
for backend in backends:
    config = configuration("checked.yaml", model=", lora: {rank: 2, alpha: 4, targets: [q_proj, v_proj]}", rest=f"backend: {backend}\n")
    short = write("short.yaml", config.read_text().replace("epochs: 3", "epochs: 1").replace("train: train.jsonl", "train: held_out.jsonl"))
    plain, checked = trained(short), trained(short, "--check", "1/4")
    expect(checked["checked"]["steps"] > 100 and checked["checked"]["elements"] > 10000, f"{backend}: {checked}")
    expect(plain["held_out"] == checked["held_out"] and plain["norm"] == checked["norm"], f"{backend}: a checked run has other bits")
    narrow = write("narrow.yaml", short.read_text().replace("lora:", "base: bf16, lora:"))
    checked = trained(narrow, "--check", "1/4")
    expect(checked["checked"]["steps"] > 100 and checked["checked"]["elements"] > 10000, f"{backend} in bf16: {checked}")
config = configuration("checked.yaml", model=", lora: {rank: 2, alpha: 4, targets: [q_proj, v_proj]}")
for fault, place in (("rope/position_ignored", "gradients: model.layers.0.self_attn.rope"), ("silu_mul/exchanged", "gradients: model.layers.0.mlp.silu_mul"),
                     ("adamw_step/not_corrected", "update: adamw_step"), ("lora_linear/scale_left_out", "gradients: model.layers.0.self_attn.q_proj")):
    done = train(config, "--check", "1/2", "--kernel", "mutant/cpu/" + fault)
    expect(done.returncode == 1 and f"wrong      update 2, {place}" in done.stdout, f"{fault}: exit {done.returncode}: {done.stdout}{done.stderr}")

# A killed run goes on with the bits of the whole one.
long = configuration("long.yaml", training=", micro_batches: 2, patience: 50", rest="checkpoints: {folder: checkpoints, every: 3}\n")
long = write("long.yaml", long.read_text().replace("epochs: 3", "epochs: 12").replace("lr: 0.01", "lr: 0.5"))  # so the best epoch is hardly the last
trained(long)
whole = files(here / "out")
shutil.rmtree(here / "checkpoints"), shutil.rmtree(here / "out")
checkpoint, killed, went_on = here / "checkpoints/checkpoint", 0, 0
for n, left in enumerate((3, 6, 1, 6, 2, 8, 3, 5)):  # of 64 checkpoints, a few later than the last time; 1 is at once
    process = subprocess.Popen([assay, "train", long, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen = None
    while left and process.poll() is None:
        now = checkpoint.stat().st_ino if checkpoint.exists() else None
        left, seen = left - (now != seen), now
    time.sleep(rng.uniform(0, 0.01))
    process.send_signal(signal.SIGTERM if n == 5 else signal.SIGKILL)
    went_on += "goes on behind update" in process.communicate()[1]
    killed += process.returncode in (-9, 128 + 15)
done = train(long, "--resume")
expect(done.returncode == 0 and killed == 8 and went_on >= 5, f"killed {killed} times, went on {went_on} times: {done.stderr}")
expect(files(here / "out") == whole, f"a resumed run leaves other files: {[k for k, v in files(here / 'out').items() if v != whole.get(k)]}")
expect(train(long).stderr.strip().endswith("is the checkpoint of an earlier run; go on with --resume, or name another folder"), train(long).stderr)
other = write("other.yaml", long.read_text().replace("lr: 0.5", "lr: 0.02"))
expect("was written under another training.lr" in train(other, "--resume").stderr, train(other, "--resume").stderr)

# A full disk: the checkpoint before stays, and the run goes on from it.
shutil.rmtree(here / "checkpoints")
short = write("short.yaml", long.read_text().replace("epochs: 12", "epochs: 1"))
train(short)
before = files(here / "checkpoints")
size = len(before["checkpoint"])
done = train(long, "--resume", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2)))
expect(done.returncode == 2 and "could not be written: File too large" in done.stderr, f"full: exit {done.returncode}: {done.stderr}")
expect(files(here / "checkpoints") == before, "a full disk costs the earlier checkpoint")
done = train(long, "--resume")
expect(done.returncode == 0 and files(here / "out") == whole, "the run does not go on from what a full disk left")
(here / "checkpoints/checkpoint").write_bytes(before["checkpoint"][:-1])
expect("is damaged: its digest is another one" in train(long, "--resume").stderr, "a torn checkpoint")

# Errors name the place in the configuration.
text = configuration().read_text()
for old, new, sentence in (
        ("batch: 4", "bach: 4", "train.yaml:4:23: unknown key 'bach' in training; did you mean 'batch'?"),
        ("batch: 4", "batch: 0", "train.yaml:4:30: 'batch' is 0; write an integer from 1 to 1073741824"),
        ("lr: 0.01", "lr: 2", "'lr' is 2; write a number from 0 to 1"),
        ("labels: [a, b]", "labels: [a]", "'labels' has one class; give two or more"),
        ("labels: [a, b]", "labels: [a, a]", "'a' is given twice; keep one"),
        ("labels: [a, b]", "labels: [a, b], weights: [1]", "'weights' has 1 for 2 classes; give one for each"),
        ("labels: [a, b]", "labels: [a, c]", 'held_out.jsonl:1: has the label "b"; use one of the 2 classes: a, c'),
        ("weights: random", "weights: random, base: nf4", "nf4 does not train; add 'lora: {rank: 8, alpha: 16}'"),
        ("weights: random", "weights: random, base: bf16", "bf16 does not train; add 'lora: {rank: 8, alpha: 16}'"),
        ("weights: random", "weights: random, lora: {targets: [k]}", "'k' is no projection; use one of: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"),
        (", held_out: held_out.jsonl", "", None),
        ("output: out", "", "the configuration lacks 'output'; add 'output: ...'"),
        (", weights: random", "", "holds neither model.safetensors nor model.safetensors.index.json; name a folder or a file with weights")):
    config = write("train.yaml", text.replace(old, new))
    done = train(config, "--quiet")
    if sentence is None:
        expect(done.returncode == 0 and done.stderr == "" and "held out" not in done.stdout, f"{new}: {done.stdout}{done.stderr}")
        continue
    if "held_out.jsonl:1" in sentence:
        sentence = re.sub(r"held_out.jsonl:1", "train.jsonl:" + str(1 + next(n for n, line in enumerate((here / "train.jsonl").read_text().splitlines()) if '"label": "b"' in line)), sentence)
    expect(done.returncode == 2 and done.stderr.strip().endswith(sentence) and done.stderr.count("\n") == 1, f"{new}: exit {done.returncode}: {done.stderr}")
config = configuration()
log = train(config).stderr
expect("cut        1 samples at 12 tokens; 18 tokens left out\n" in log and re.search(r"epoch 3/3  updates 93  loss [\d.]+  accuracy [\d.]+  held out: loss", log), f"progress: {log}")
expect(train(config, "--quiet").stderr == "", "--quiet shows progress")
for args, sentence in ((["--check", "3"], "--check 3: is no share of the updates; give 1/N for every N-th, as in --check 1/100"),
                       (["--check", "1/0"], "--check 1/0: is no share of the updates; give 1/N for every N-th, as in --check 1/100"),
                       (["--kernel", "softmax/cpu/naive"], "--kernel softmax/cpu/naive: no step of the training is softmax; name a kernel of an operation that it has"),
                       (["--kernel", "matmul_nt/cpu/naive_bf16"], "--kernel matmul_nt/cpu/naive_bf16: it stores bf16, which no matmul_nt of the training does; name a kernel of their format"),
                       (["--resume"], f"--resume: {config} names no folder of checkpoints; add 'checkpoints: {{folder: ...}}'")):
    done = train(config, *args)
    expect(done.returncode == 2 and done.stderr.strip().endswith("assay: " + sentence), f"{args}: exit {done.returncode}: {done.stderr}")
# A kernel that writes elsewhere would end the process while it is prepared.
one = write("one.yaml", config.read_text().replace("batch: 4", "batch: 1"))
done = train(one, "--kernel", "mutant/cpu/matmul/column_major_store")
expect(done.returncode == 1 and re.search(r"^wrong      .*\(matmul\): c: it writes outside of its results", done.stdout), f"elsewhere: exit {done.returncode}: {done.stdout}{done.stderr}")
print(f"train: {failed} failures")
sys.exit(failed != 0)
