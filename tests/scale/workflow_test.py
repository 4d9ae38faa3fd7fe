#!/usr/bin/env python3
"""Runs every `run:` step of ci/github/falsify.yml in the order of its jobs, once for each number of the matrix; this
script performs the actions (checkout, artifacts). A smaller campaign replaces CAMPAIGN.

workflow_test.py ASSAY SOURCE
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from checks import Checks, Command
from same_report import compare

checks = Checks()
check = checks.check
assay, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
preset = assay.parents[1].name
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-workflow-"))
workflow = yaml.safe_load((source / "ci/github/falsify.yml").read_text())
SMALL = "transpose gemv --backend cpu --seed 1"


def substitute(text, values):
    """Evaluates GitHub expressions; an unknown one is an error."""
    def value(match):
        check(match[1] in values, f"unknown expression {match[0]}")
        return values.get(match[1], "")
    return re.sub(r"\$\{\{ *(.*?) *\}\}", value, text)


def copy(here, there):
    there.mkdir(parents=True, exist_ok=True)
    if here.is_dir():
        shutil.copytree(here, there, dirs_exist_ok=True)
    else:
        shutil.copy(here, there)
        (there / here.name).chmod(0o644)  # artifacts lose the executable bit


class Job:
    """One job for one number of the matrix, in its own folder."""

    def __init__(self, name, artifacts, values):
        self.name, self.artifacts, self.values = name, artifacts, values
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
        self.steps_run = 0

    def path(self, text):
        return self.folder / text.replace("build/release", f"build/{preset}")

    def act(self, step):
        action, _, version = step["uses"].partition("@")
        given = {k: substitute(v, self.values) for k, v in step.get("with", {}).items()}
        check(re.fullmatch(r"v\d+", version), f"{step['uses']} has no version")
        if action == "actions/checkout":
            for entry in source.iterdir():
                if entry.name not in ("build", ".git", "assay-report", "shards"):
                    (self.folder / entry.name).symlink_to(entry)
            if self.name == "build":
                (self.folder / "build").symlink_to(source / "build")
        elif action == "actions/upload-artifact":
            if not self.path(given["path"]).exists():  # the action warns
                return check(self.status, f"{self.name} uploads {given['path']}, which is not there")
            check(given["name"] not in os.listdir(self.artifacts), f"two artifacts are called {given['name']}")
            copy(self.path(given["path"]), self.artifacts / given["name"])
        elif action == "actions/download-artifact" and "name" in given:
            copy(self.artifacts / given["name"], self.path(given["path"]))
        elif action == "actions/download-artifact":
            for artifact in self.artifacts.glob(given["pattern"]):
                copy(artifact, self.path(given["path"]) / artifact.name)
        else:
            check(False, f"unknown action {step['uses']}")

    def run(self, step):
        """Runs a step as GitHub's runner does in a container: sh -e."""
        script = substitute(step["run"], self.values).replace("--preset release", f"--preset {preset}").replace("build/release", f"build/{preset}")
        where = source if self.name == "build" else self.folder
        environment = {k: v for k, v in os.environ.items() if k != "GITHUB_STEP_SUMMARY"} | {"CAMPAIGN": SMALL, "GITHUB_ACTIONS": "true"}
        done = subprocess.run(["sh", "-e", "-c", script], cwd=where, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.steps_run += 1
        self.said = done.stdout + done.stderr
        return done.returncode

    def run_all(self, steps):
        """Returns the exit code of the first step that fails; later steps run only if: always()."""
        self.status = status = 0
        for step in steps:
            self.status = status
            if status and step.get("if") != "always()":
                continue
            if "uses" in step:
                self.act(step)
            else:
                status = self.run(step) or status
        return status


def jobs_in_order():
    done, order = set(), []
    while len(order) < len(workflow["jobs"]):
        ready = [n for n, j in workflow["jobs"].items() if n not in done and set([j["needs"]] if isinstance(j.get("needs"), str) else j.get("needs", [])) <= done]
        check(ready, f"jobs wait for each other: {workflow['jobs'].keys() - done}")
        order += ready
        done |= set(ready)
    return order


def run_workflow(artifacts, leave_out=()):
    """Returns the exit codes of all jobs, and the report."""
    artifacts.mkdir()
    codes, steps_run = {}, 0
    for name in jobs_in_order():
        job = workflow["jobs"][name]
        numbers = job.get("strategy", {}).get("matrix", {}).get("shard", [None])
        for number in numbers:
            if (name, number) in leave_out:
                continue
            one = Job(name, artifacts, {"matrix.shard": str(number), "strategy.job-total": str(len(numbers)), "github.run_number": "1"})
            codes[name, number] = one.run_all(job["steps"])
            steps_run += one.steps_run
            if name == "shard":
                check("::" not in one.said, f"a shard annotates what the whole will: {one.said}")
            if codes[name, number] != 0 and not leave_out:
                check(False, f"job {name} {number or ''} ended with {codes[name, number]}: {one.said[-2000:]}")
    return codes, artifacts / "assay-report" / "report.json", steps_run


check(workflow["name"] == "falsify" and workflow[True], "a workflow has a name and events")  # YAML 1.1 reads `on` so
runs = [step for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
check(len(runs) == 3 and all(job["runs-on"] and job["container"] == "debian:12" for job in workflow["jobs"].values()), "three jobs with a command each")

command = Command(str(assay), folder, checks)
campaign = substitute(workflow["env"]["CAMPAIGN"], {"github.run_number": "1"}).split()
check(command.run("falsify", *campaign, "--shard", "100000/100000", "--quiet")[0] == 0, f"assay takes no {campaign}")

codes, report, steps_run = run_workflow(folder / "artifacts")
shards = workflow["jobs"]["shard"]["strategy"]["matrix"]["shard"]
check(shards == list(range(1, len(shards) + 1)), f"shards are numbered from 1: {shards}")
check(steps_run == 2 + len(shards), f"{steps_run} steps were run")
whole = command.report("falsify", *SMALL.split())
check(compare(whole, json.loads(report.read_text())) == [], "the workflow's report is that of a run without shards")

codes, report, _ = run_workflow(folder / "without-one", leave_out={("shard", 2)})
check(codes["merge", None] == 2, f"a shard that is missing: merge ends with {codes['merge', None]}")
shutil.rmtree(folder)
sys.exit(checks.result())
