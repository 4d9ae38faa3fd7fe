#!/usr/bin/env python3
"""`mpirun -n N assay train`: ranks_test.py ASSAY. Ranks leave the files of a process that is alone, or those that differ by rounding;
a rank that fails, dies or has other settings ends all of them. Skipped (77) with the reason where this build has no MPI."""
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

assay = pathlib.Path(sys.argv[1]).resolve()
failed = 0
rng = random.Random(1)
temporary = tempfile.TemporaryDirectory(prefix="assay-ranks-")
here = pathlib.Path(temporary.name)
if not (assay.parent / "../lib/assay_ranks.so").exists() or shutil.which("mpirun") is None:
    print("skipped: this build has no MPI (ci/setup installs it)")
    sys.exit(77)
mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
environment = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OPENBLAS_NUM_THREADS": "1"}


def expect(holds, words):
    global failed
    if not holds:
        failed += 1
        print("FAILED:", words, flush=True)


def write(name, text):
    (here / name).write_text(text)
    return here / name


def configuration(name, training, rest="", output="out"):
    return write(name, f"""model: {{config: ., weights: random, lora: {{rank: 2, targets: [q_proj, down_proj]}}}}
classifier: {{labels: [a, b]}}
corpus: {{train: train.jsonl, held_out: held_out.jsonl, length: 12}}
training: {{epochs: 2, batch: 4, lr: 0.01, seed: 5{training}}}
output: {output}
{rest}""")


def lines(count):
    made = []
    for _ in range(count):
        label = rng.choice("ab")
        text = "".join(rng.choice("cdefgh ") for _ in range(rng.randint(1, 8)))
        at = rng.randint(0, len(text))
        made.append(json.dumps({"text": text[:at] + label * 2 + text[at:], "label": label}))
    return "\n".join(made) + "\n"


def train(ranks, config, *args, **kwargs):
    start = [*mpirun, "-n", str(ranks)] if ranks else []
    return subprocess.run([*start, assay, "train", str(config), *map(str, args)], capture_output=True, text=True, env=environment, timeout=300, **kwargs)


def trained(ranks, config, *args):
    shutil.rmtree(here / "out", ignore_errors=True)
    done = train(ranks, config, "--json", *args)
    expect(done.returncode == 0 and done.stderr == "", f"{ranks} ranks, {config.name}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout or "{}"), {str(f.relative_to(here / "out")): f.read_bytes() for f in sorted((here / "out").rglob("*")) if f.is_file()}


write("config.json", json.dumps({"model_type": "qwen2", "hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1,
                                 "num_hidden_layers": 2, "vocab_size": 256, "tie_word_embeddings": False}))
write("train.jsonl", lines(57))  # the last update of an epoch is smaller: its shards are uneven, and some are empty
write("held_out.jsonl", lines(21))


def bodies(files):
    """Files without what they say of the ranks."""
    return {name: re.sub(rb"<tr><td>ranks</td>.*?</tr>\n", b"", data) for name, data in files.items()}


# One run a rank at most: the files of a process that is alone, bit by bit.
for runs, counts in ((4, (4,)), (2, (2, 3))):
    config = configuration(f"runs{runs}.yaml", f", micro_batches: {runs}")
    alone, files = trained(0, config)
    for ranks in counts:
        made, of_ranks = trained(ranks, config)
        expect(of_ranks.keys() == files.keys(), f"{ranks} ranks leave {sorted(of_ranks)}")
        for name in files:
            expect(bodies(of_ranks)[name] == bodies(files)[name], f"{runs} runs on {ranks} ranks: {name} differs from that of one process")
        expect(made["held_out"] == alone["held_out"] and made["summary"]["ranks"].startswith(f"{ranks}; each computes"), f"{ranks} ranks: {made}")
    if runs == 2:
        expect("1 of them are idle: an update is 2 runs (micro_batches)" in made["summary"]["ranks"], f"idle ranks: {made['summary']}")
# Several runs a rank: sums of sums, which ranks_test.cpp holds to bounds. The first losses are of the same parameters, and a second
# run has the bits of the first.
config = configuration("uneven.yaml", ", micro_batches: 5")
alone, files = trained(0, config)
of_one = list(csv.DictReader(files["curve.csv"].decode().splitlines()))
for ranks in (2, 4):
    made, of_ranks = trained(ranks, config)
    rows = list(csv.DictReader(of_ranks["curve.csv"].decode().splitlines()))
    expect(rows[0]["loss"] == of_one[0]["loss"] and [r["samples"] for r in rows] == [r["samples"] for r in of_one], f"{ranks}: {rows[0]} {of_one[0]}")
    expect(trained(ranks, config)[1] == of_ranks, f"{ranks} ranks leave other files the second time")

# Every rank checks its own steps, and one that finds a fault ends all.
done = train(2, configuration("check.yaml", ", micro_batches: 2"), "--check", "1/2", "--kernel", "mutant/cpu/lora_linear/scale_left_out")
expect(done.returncode == 1 and done.stdout.startswith("wrong      rank 0: update 2, gradients: model.layers.0.self_attn.q_proj") and done.stdout.count("\n") == 1, f"a wrong step: {done}")

# Ranks that differ, and ranks that fail: one sentence, one exit code.
good, other = configuration("good.yaml", ", micro_batches: 2"), configuration("other.yaml", ", micro_batches: 2, clip: 2")
own = 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec "$0" train "$2"; else exec "$0" train "$1"; fi'


def two(first, second, end=own):
    return subprocess.run([*mpirun, "-n", "3", "bash", "-c", end, assay, first, second], capture_output=True, text=True, env=environment, timeout=300)


def sentences(done):
    return [line for line in done.stderr.splitlines() if line.startswith("assay: ")]


for second, code, sentence in ((other, 2, "assay: rank 1: has another training.clip than rank 0; start all ranks with the same program, configuration and files"),
                               (write("more.yaml", good.read_text().replace("epochs: 2", "epochs: 3")), 2, "assay: rank 1: has another training.epochs than rank 0; start all ranks with the same program, configuration and files"),
                               (here / "none.yaml", 2, "assay: rank 1: "),
                               (write("ranked.yaml", good.read_text().replace("rank: 2", "rank: 3")), 2, "assay: rank 1: has another model.lora.rank than rank 0; start all ranks with the same program, configuration and files")):
    shutil.rmtree(here / "out", ignore_errors=True)
    done = two(good, second)
    expect(done.returncode == code and len(sentences(done)) == 1 and sentences(done)[0].startswith(sentence), f"{second}: exit {done.returncode}: {done.stderr}")
    expect(not (here / "out").exists(), "ranks that differ leave files")
done = train(3, write("absent.yaml", good.read_text().replace("train.jsonl", "absent.jsonl")))
expect(done.returncode == 2 and len(sentences(done)) == 1 and not sentences(done)[0].startswith("assay: rank "), f"all fail alike: exit {done.returncode}: {done.stderr}")

# A rank is killed: the others end, and the run goes on from its checkpoint with the bits of the whole one.
long = configuration("long.yaml", ", micro_batches: 3", "checkpoints: {folder: checkpoints, every: 2}\n")
long = write("long.yaml", long.read_text().replace("epochs: 2", "epochs: 40"))
whole = trained(3, long)[1]
for victim in (0, 1):
    shutil.rmtree(here / "checkpoints"), shutil.rmtree(here / "out", ignore_errors=True)
    end = f'trap : TERM; if [ $OMPI_COMM_WORLD_RANK = {victim} ]; then echo $$ > {here}/pid; exec "$0" train "$1"; else "$0" train "$1"; echo $? >> {here}/codes; fi'
    (here / "codes").unlink(missing_ok=True), (here / "pid").unlink(missing_ok=True)
    patient = ["--mca", "odls_base_sigkill_timeout", "10"]  # SIGKILL a second after SIGTERM is too early for a busy machine
    process = subprocess.Popen([*mpirun, *patient, "-n", "3", "bash", "-c", end, assay, long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    while not (here / "checkpoints/checkpoint").exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(int((here / "pid").read_text()), signal.SIGKILL)
    said = process.communicate(timeout=120)[1]
    codes = (here / "codes").read_text().split() if (here / "codes").exists() else []
    found = [line for line in said.splitlines() if line.startswith("assay: ")]
    expect(process.returncode == 128 + 9 and codes == ["3", "3"], f"rank {victim} killed: mpirun ends with {process.returncode}, the others with {codes}: {said}")
    expect(len(found) == 1 and re.fullmatch(rf"assay: rank {victim}: process \d+ has ended; no rank goes on: start them again with --resume", found[0]), f"rank {victim} killed: {said}")
    done = train(3, long, "--resume", "--quiet")
    files = {str(f.relative_to(here / "out")): f.read_bytes() for f in sorted((here / "out").rglob("*")) if f.is_file()}
    expect(done.returncode == 0 and files == whole, f"rank {victim} killed: the run goes on to other files: {done.stderr}")
# A signal to one rank ends all behind one checkpoint.
shutil.rmtree(here / "checkpoints"), shutil.rmtree(here / "out")
end = f'[ $OMPI_COMM_WORLD_RANK = 1 ] && echo $$ > {here}/pid; exec "$0" train "$1"'
process = subprocess.Popen([*mpirun, "-n", "3", "bash", "-c", end, assay, long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
while not (here / "checkpoints/checkpoint").exists() and process.poll() is None:
    time.sleep(0.01)
os.kill(int((here / "pid").read_text()), signal.SIGTERM)
process.communicate(timeout=120)
expect(process.returncode == 128 + 15, f"SIGTERM to one rank: exit {process.returncode}")
done = train(3, long, "--resume", "--quiet")
files = {str(f.relative_to(here / "out")): f.read_bytes() for f in sorted((here / "out").rglob("*")) if f.is_file()}
expect(done.returncode == 0 and files == whole, f"behind a signal the run goes on to other files: {done.stderr}")
print(f"ranks: {failed} failures")
sys.exit(failed != 0)
