#!/usr/bin/env python3
"""A run with a journal may be ended at any moment; resuming it gives the report of an uninterrupted run.

resume_test.py ASSAY SEED KILLS [PART...]
"""
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from checks import Checks, Command
from same_report import compare

KILLS = int(sys.argv[3])  # kills per campaign
checks = Checks()
check = checks.check
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-resume-"))
assay = Command(sys.argv[1], folder, checks)
moments = random.Random(int(sys.argv[2]))
print("seed", sys.argv[2])


def processes(journal):
    """Returns the processes of this journal, including drivers and workers."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                running = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                if running and str(journal).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:  # exited meanwhile
                pass
    return found


def left_over(journal):
    end = time.time() + 20
    while processes(journal) and time.time() < end:
        time.sleep(0.05)
    return processes(journal)


def lines(journal):
    """Returns the journal's lines after the head, without an incomplete last line."""
    text = journal.read_text() if journal.exists() else ""
    return [json.loads(line) for line in text.split("\n")[1:-1]]


def finished(journal):
    return [line["kernel"] for line in lines(journal) if "result" in line]


def under_way(journal):
    """Returns the number of kernels with a checkpoint and no result."""
    return len({line["kernel"] for line in lines(journal)} - set(finished(journal)))


def await_line(process, journal, before):
    """Waits until the journal grows beyond `before` lines or the process ends; a minute at most."""
    end = time.time() + 60
    while time.time() < end and process.poll() is None and len(lines(journal)) <= before:
        time.sleep(0.01)


def killed(name, campaign, code):
    """Kills the run KILLS times at random moments and resumes it; every second kill waits for a new record."""
    begin = time.time()
    whole = assay.report("falsify", *campaign, code=code)
    longest = (time.time() - begin) / 5
    kills, taken_up, runs = 0, 0, 0
    while kills < KILLS:
        journal = folder / f"{name}{runs}.jsonl"
        runs += 1
        said = None
        while said is None and kills < KILLS:
            taken_up += under_way(journal)
            before = len(lines(journal))
            process = assay.start("falsify", *campaign, "--journal", journal, "--json")
            if kills % 2 == 0:
                await_line(process, journal, before)
            moment = moments.uniform(0, longest)
            try:
                said, _ = process.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                check(left_over(journal) == [], f"killed after {moment:.3f} s it leaves processes: {left_over(journal)}")
        taken_up += 0 if said else under_way(journal)
        resumed = json.loads(said) if said else assay.report("falsify", *campaign, "--journal", journal, code=code)
        check(compare(whole, resumed) == [], f"{name}, resumed: {compare(whole, resumed)[:5]}")
        check(sorted(finished(journal)) == [k["kernel"] for k in whole["kernels"]], f"each kernel is finished once: {finished(journal)}")
        longest /= 1 if kills else 2
    print(f"{name}: killed {kills} times in {runs} runs of {whole['totals']['kernels']} kernels and {whole['totals']['cases']} cases; "
          f"{taken_up} campaigns were taken up in their middle")
    return taken_up


def kill_minus_nine():
    several = ("transpose", "softmax", "gemv", "--backend", "cpu", "--cases", "20")
    deep = ("--kernel", "transpose/cpu/naive", "--cases", "800")
    wrong = ("--kernel", "mutant/cpu/transpose/zero_sign_lost", "--cases", "600")
    killed("several", several, 0)
    check(killed("deep", deep, 0) > 0, "no campaign was taken up in its middle")
    killed("wrong", wrong, 1)


def torn():
    """Cuts the journal at any byte, as an interrupted write would."""
    campaign = ("--kernel", "transpose/cpu/naive", "--cases", "400", "--seed", "7")
    journal = folder / "torn.jsonl"
    whole = assay.report("falsify", *campaign, "--journal", journal)
    text = journal.read_bytes()
    head = text.index(b"\n")
    check(any("checkpoint" in line for line in lines(journal)), "the journal holds no checkpoint")
    for cut in [0, 1, head - 1, head, head + 1, len(text) - 1] + [moments.randrange(head, len(text)) for _ in range(KILLS)]:
        journal.write_bytes(text[:cut])
        resumed = assay.report("falsify", *campaign, "--journal", journal)
        check(compare(whole, resumed) == [], f"cut after {cut} of {len(text)} bytes: {compare(whole, resumed)[:5]}")
    before = journal.read_bytes()
    began = time.time()
    again = assay.report("falsify", *campaign, "--journal", journal)
    check(compare(whole, again) == [] and journal.read_bytes() == before, f"a finished run is only reported again: {time.time() - began} s")
    _, _, said = assay.run("falsify", *campaign, "--journal", journal)
    check("are finished, and are not run again" in said, f"and says so: {said}")


def signals():
    campaign = ("transpose", "softmax", "gemv", "--backend", "cpu", "--cases", "40")
    whole = assay.report("falsify", *campaign)
    for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
        journal = folder / f"{name}.jsonl"
        process = assay.start("falsify", *campaign, "--journal", journal, "--report", folder / name)
        while not finished(journal) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate()
        check(process.returncode == 128 + number, f"{name}: exit {process.returncode}")
        check(f"assay: interrupted by {name} after " in said and f"the same command goes on from {journal}" in said, f"{name}: {said}")
        check(left_over(journal) == [], f"{name} leaves processes")
        check(not (folder / name / "report.json").exists(), "what was interrupted has no report")
        told = int(said.split("interrupted by")[1].split("after ")[1].split()[0])
        check(told == len(finished(journal)), f"{told} kernels are told of, {len(finished(journal))} recorded")
        resumed = assay.report("falsify", *campaign, "--journal", journal)
        check(compare(whole, resumed) == [], f"after {name}: {compare(whole, resumed)[:5]}")
    process = assay.start("falsify", *campaign, "--cases", "100000", "--quiet")
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    check(process.returncode == 143 and "nothing of it is kept" in said, f"without a journal: {process.returncode}, {said}")


def refusals():
    campaign = ("transpose", "--backend", "cpu", "--cases", "400")
    journal = folder / "refuse.jsonl"
    assay.report("falsify", *campaign, "--journal", journal)
    text = journal.read_text()
    rows = text.splitlines(keepends=True)

    def refused(words, changed, *options):
        journal.write_text(changed)
        assay.refused(words, "falsify", *(options or campaign), "--journal", journal, "--quiet")
        check(journal.read_text() == changed, f"a journal that is refused ({words}) is left as it is")

    refused('is the journal of another campaign (seed "1" there, "2" here)', text, *campaign, "--seed", "2")
    refused("(cases 400 there, 401 here)", text, *campaign[:-1], "401")
    refused('(limit "10s" there, "9s" here)', text, *campaign, "--limit", "9s")
    refused("is the journal of another campaign", text, "gemv", *campaign[1:])
    refused("is the journal of another campaign", text, *campaign, "--shard", "1/2")
    program = json.loads(rows[0])["campaign"]["program"]
    refused("(program ", text.replace(program, "0" * 64))
    refused("is no journal", "# A text\nof another kind\n")
    refused("is no journal", "a text without an end")
    first = next(i for i, row in enumerate(rows) if '"result"' in row)
    refused("was finished before", text + rows[first])
    refused("is none of the campaign's kernels", text + rows[first].replace("transpose/cpu", "transpose/gpu"))
    refused("the line is damaged", "".join(rows[:1] + ["{}\n"] + rows[1:]))
    refused("the line is damaged", "".join(rows[:1] + [rows[1][:50] + "\n"] + rows[2:]))
    at = next(i for i, row in enumerate(rows) if '"checkpoint"' in row)
    checkpoint = json.loads(rows[at])
    refused("does not follow what was recorded", "".join(rows[:at + 1] + [rows[at]] + rows[at + 1:]))
    checkpoint["checkpoint"]["after"] = 100
    refused("does not follow what was recorded", rows[0] + json.dumps(checkpoint) + "\n")
    checkpoint["checkpoint"]["after"] = 0
    checkpoint["checkpoint"]["obligations"].pop()
    refused("holds no checkpoint of transpose", rows[0] + json.dumps(checkpoint) + "\n")
    checkpoint["checkpoint"] = {"rounds": 100, "after": 0}
    refused("holds no checkpoint of transpose", rows[0] + json.dumps(checkpoint) + "\n")
    assay.refused("cannot be opened", "falsify", *campaign, "--journal", "/proc/none/journal")

    journal.write_text(rows[0])
    process = assay.start("falsify", "transpose", "--backend", "cpu", "--cases", "1000000", "--journal", folder / "held.jsonl")
    while not (folder / "held.jsonl").exists() or not (folder / "held.jsonl").read_text():
        time.sleep(0.02)
    assay.refused("is being written by another run", "falsify", "transpose", "--backend", "cpu", "--cases", "1000000", "--journal",
                  folder / "held.jsonl", "--quiet")
    process.terminate()
    process.communicate()


parts = {"killed": kill_minus_nine, "torn": torn, "signals": signals, "refusals": refusals}
for part in sys.argv[4:] or parts:
    parts[part]()
shutil.rmtree(folder)
sys.exit(checks.result())
