#!/usr/bin/env python3
"""Validates report files of real runs against their schemas; checks bad report folders and the output for GitHub.

formats_test.py ASSAY LIBRARIES TOP
"""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml_tree

import jsonschema

assay, libraries, top = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-formats-"))
schemas = top / "tests/reports"
REPORT = jsonschema.Draft7Validator(json.loads((top / "falsify/report.schema.json").read_text()))
SARIF = jsonschema.Draft7Validator(json.loads((schemas / "sarif.schema.json").read_text()))
passed, failed = 0, 0


def check(condition, text):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print("FAILED:", text, flush=True)


def run(*arguments, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")} | more.pop("environment", {})
    return subprocess.run([assay, *map(str, arguments)], capture_output=True, text=True, errors="replace", env=environment,
                          stdin=subprocess.DEVNULL, **{"cwd": top, **more})


def xml_valid(text):
    return subprocess.run(["xmllint", "--noout", "--schema", schemas / "junit.xsd", "-"], input=text, text=True, capture_output=True).returncode == 0


# name: (exit code, status of the kernel, arguments)
RUNS = {
    "passing": (0, "passed", ["--kernel", "matmul/cpu/naive"]),
    "thin": (4, "thin", ["--kernel", "matmul/cpu/naive", "--cases", 5]),
    "failing": (1, "falsified", ["--kernel", "mutant/cpu/matmul/wrong_tail_row", "--cases", 30]),
    "crashing": (1, "falsified", ["--lib", libraries / "hostile.so", "--symbol", "aborts", "--contract", "scale", "--cases", 2]),
    "mistrusted": (1, "mistrusted", ["matmul", "--kernel", "matmul/cpu/naive", "--obligation", "FALSIFY-MM-002", "--cases", 1,
                                   "--dims", "k=0"]),  # compares only zeros
    "refused": (3, "refused", ["--lib", libraries / "hostile.so", "--symbol", "refuses_all", "--contract", "scale", "--cases", 3]),
    "foreign": (1, "falsified", ["--lib", libraries / "faults.so", "--symbol", "matmul_dropped_last_k", "--contract", "matmul", "--cases", 20]),
}
FAILING_ONCE = ["--kernel", "mutant/cpu/matmul/wrong_tail_row", "--obligation", "FALSIFY-MM-002", "--cases", 30]


def every_run_is_valid():
    for name, (code, status, arguments) in RUNS.items():
        to = folder / name
        done = run("falsify", "--quiet", "--json", "--report", to, *arguments)
        check(done.returncode == code, f"{name}: exit code {done.returncode}, not {code}: {done.stderr}")
        report, sarif = (json.loads((to / file).read_text()) for file in ("report.json", "assay.sarif"))
        check(report["kernels"][0]["status"] == status, f"{name}: {report['kernels'][0]['status']}")
        check(json.loads(done.stdout) == report, f"{name}: standard output is the report")
        check(report["exit_code"] == code, f"{name}: the report says exit code {report['exit_code']}")
        for validator, document, kind in ((REPORT, report, "report.json"), (SARIF, sarif, "assay.sarif")):
            errors = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]
            check(errors == [], f"{name}: {kind}: {errors[:3]}")
        check(xml_valid((to / "junit.xml").read_text()), f"{name}: junit.xml is not valid")
        check((to / "report.html").stat().st_size > 10_000, f"{name}: report.html")


def schemas_refuse():
    """Checks that the validators above reject invalid documents."""
    report, sarif = (json.loads((folder / "failing" / file).read_text()) for file in ("report.json", "assay.sarif"))

    def objects(document, path=()):
        if isinstance(document, dict):
            yield path
        for key, value in document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ():
            yield from objects(value, path + (key,))

    def at(document, path):
        for step in path:
            document = document[step]
        return document

    free = ("dims", "params", "prelude", "values")  # these have the operation's names as keys
    unknown = missing = 0
    for path in objects(report):
        if path and path[-1] in free:
            continue
        changed = copy.deepcopy(report)
        at(changed, path)["planted"] = 1
        unknown += not REPORT.is_valid(changed)
        missing += REPORT.is_valid(changed)
    check(unknown > 20 and missing == 0, f"{missing} of {unknown + missing} planted unknown keys were accepted")
    for path in ((), ("totals",), ("kernels", 0), ("kernels", 0, "obligations", 0), ("clauses", 0)):
        for key in at(report, path):
            changed = copy.deepcopy(report)
            del at(changed, path)[key]
            if key not in ("fault", "foreign", "reason", "explanation", "depth", "floor_seconds"):
                check(not REPORT.is_valid(changed), f"without {key} of {path} it was accepted")
    wrong = next(i for i, o in enumerate(report["kernels"][0]["obligations"]) if o["verdict"] == "falsified")
    changed = copy.deepcopy(report)
    del changed["kernels"][0]["obligations"][wrong]["counterexample"]
    check(not REPORT.is_valid(changed), "falsified without a counterexample was accepted")
    for change in (lambda s: s.update(version="2.0.0"), lambda s: s["runs"][0]["results"][0].update(level="fatal"),
                   lambda s: s["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0)):
        changed = copy.deepcopy(sarif)
        change(changed)
        check(not SARIF.is_valid(changed), "a wrong SARIF log was accepted")
    # Each property outside of property bags and fingerprints, whose names are free: removed, renamed, of another type, and one more.
    driver = sarif["runs"][0]["tool"]["driver"]
    driver["rules"] = driver["rules"][:1]
    edits = 0
    for path in objects(sarif):
        if "properties" in path or "partialFingerprints" in path:
            continue
        for key, value in [*at(sarif, path).items(), ("planted", None)]:
            for edit in ("removed", "renamed", "retyped") if key != "planted" else ("added",):
                changed = copy.deepcopy(sarif)
                within = at(changed, path)
                within.pop(key, None)
                within |= {"removed": {}, "renamed": {f"{key}_": value}, "retyped": {key: None}, "added": {key: 1}}[edit]
                edits += 1
                check(not SARIF.is_valid(changed), f"a SARIF log with {key} of {path} {edit} was accepted")
    check(edits > 100, f"{edits} edits of a SARIF log")
    xml = (folder / "failing/junit.xml").read_text()
    check(xml_valid(xml) and not xml_valid(xml.replace("<testsuites ", '<testsuites skipped="0" ', 1)), "testsuites with the attribute skipped")
    root = xml_tree.fromstring(xml)
    places = {element.tag: element for element in root.iter()}  # one of each tag
    for tag, element in places.items():
        for attribute, value in list(element.attrib.items()):
            for name in ("", f"{attribute}_"):
                element.attrib.pop(attribute)
                element.attrib |= {name: value} if name else {}
                check(not xml_valid(xml_tree.tostring(root, "unicode")), f"{tag} without {attribute} was accepted")
                element.attrib.pop(name, None)
                element.set(attribute, value)
            if attribute in ("tests", "failures", "errors", "skipped", "time"):
                element.set(attribute, "-1")
                check(not xml_valid(xml_tree.tostring(root, "unicode")), f"{tag} with {attribute}=-1 was accepted")
                element.set(attribute, value)
        element.tag = f"{tag}_"
        check(not xml_valid(xml_tree.tostring(root, "unicode")), f"an element {tag}_ was accepted")
        element.tag = tag
    check({"testsuites", "testsuite", "testcase", "failure"} <= places.keys(), f"elements of junit.xml: {sorted(places)}")


def sarif_places_findings():
    report, sarif = (json.loads((folder / "failing" / file).read_text()) for file in ("report.json", "assay.sarif"))
    only = sarif["runs"][0]
    falsified = [o for o in report["kernels"][0]["obligations"] if o["verdict"] == "falsified"]
    explanation = report["kernels"][0]["explanation"]
    wrong = [o for o in falsified if o["id"] == explanation["obligation"]]
    others = [o["id"] for o in falsified if o not in wrong]
    check(len(only["results"]) == len(wrong) == 1, "a result for each kernel that is wrong: of the finding that says most")
    check(others and others == explanation["also_fails"] and f"Also fails: {', '.join(others)}\n" in only["results"][0]["message"]["text"],
          "which names what else fails")
    check(only["invocations"][0]["exitCode"] == 1 and only["invocations"][0]["executionSuccessful"], "the exit code is there")
    for result, o in zip(only["results"], wrong):
        rule = only["tool"]["driver"]["rules"][result["ruleIndex"]]
        check(rule["id"] == result["ruleId"] == o["id"] and rule["shortDescription"]["text"] == o["claim"], "the rule is the obligation")
        check(o["if_fails"] in rule["help"]["text"], "its help is what to suspect")
        for part in (o["counterexample"]["says"], "assay replay " + o["counterexample"]["file"]):
            check(part in result["message"]["text"], f"the message lacks {part}")
        place = result["locations"][0]["physicalLocation"]
        line = (top / place["artifactLocation"]["uri"]).read_text().splitlines()[place["region"]["startLine"] - 1]
        check("wrong_tail_row" in line, f"line {place['region']['startLine']} of {place['artifactLocation']['uri']} says: {line}")
    # Another case of the same kernel and obligation is the same finding.
    again = folder / "again"
    run("falsify", "--quiet", "--report", again, "--kernel", "mutant/cpu/matmul/wrong_tail_row", "--cases", 30, "--seed", 9)
    prints = [{r["ruleId"]: r["partialFingerprints"] for r in s["runs"][0]["results"]} for s in (sarif, json.loads((again / "assay.sarif").read_text()))]
    common = prints[0].keys() & prints[1].keys()
    check(common and all(prints[0][i] == prints[1][i] for i in common), "fingerprints are stable")
    check(len({json.dumps(p) for p in prints[0].values()}) == len(prints[0]), "and tell findings apart")
    levels = [r["level"] for r in json.loads((folder / "mistrusted/assay.sarif").read_text())["runs"][0]["results"]]
    check(levels == ["warning"], f"what is mistrusted is a warning: {levels}")
    notes = json.loads((folder / "refused/assay.sarif").read_text())["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    check(notes and "not today" in notes[0]["message"]["text"], f"what was refused is a note with the reason: {notes}")


def github():
    arguments = ["falsify", "--quiet", *FAILING_ONCE]
    summary = folder / "summary.md"
    summary.write_text("of the step before\n")
    told = run(*arguments, environment={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}, cwd=folder)
    lines = [line for line in told.stderr.splitlines() if line.startswith("::")]
    check(told.returncode == 1 and lines and all(line.startswith("::error file=falsify/mutation/faults/matmul.yaml,line=") for line in lines), f"annotations: {lines}")
    check(all("title=falsified FALSIFY-" in line and f"%0Areplay: {assay} replay " in line for line in lines), "with title and replay on one line each")
    check("::error" not in told.stdout, "standard output is left alone")
    text = summary.read_text()
    check(text.startswith("of the step before\n") and "1 falsified" in text and "wrong\\_tail\\_row" in text, f"the summary is added: {text[:200]}")
    for environment in ({}, {"GITHUB_ACTIONS": "false", "GITHUB_STEP_SUMMARY": str(summary)}):
        untold = run(*arguments, environment=environment, cwd=folder)
        check("::" not in untold.stderr and summary.read_text() == text, "elsewhere nothing is said")
    mistrusted = run("falsify", "--quiet", *RUNS["mistrusted"][2], environment={"GITHUB_ACTIONS": "true"}, cwd=folder)
    check("::warning file=kernels/cpu/naive/matmul.cpp,line=" in mistrusted.stderr, f"what is mistrusted is a warning: {mistrusted.stderr}")
    bad = run(*arguments, environment={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/proc/none/summary"}, cwd=folder)
    check(bad.returncode == 2 and "FALSIFIED" in bad.stdout and "GITHUB_STEP_SUMMARY" in bad.stderr, "a summary that cannot be written")


def bad_folders():
    arguments = ["falsify", "--quiet", *FAILING_ONCE, "--report"]
    file = folder / "a_file"
    file.write_text("")
    before = [("a file in its way", file), ("a file above it", file / "below"), ("a place that takes no files", "/proc/none")]
    if os.geteuid() != 0:  # root may write anywhere
        closed = folder / "closed"
        closed.mkdir(mode=0o555)
        before.append(("a folder without permission", closed))
    for what, to in before:
        done = run(*arguments, to)
        check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "the folder cannot be created" in done.stderr, f"{what}: {done.stderr}")
        check(done.stdout == "", f"{what}: nothing was run first")
    # If the disk fills up later, findings are still printed.
    for name in ("report.json", "junit.xml", "assay.sarif", "report.html"):
        full = folder / f"full-{name}"
        full.mkdir()
        (full / name).symlink_to("/dev/full")
        done = run(*arguments, full)
        check(done.returncode == 2 and "No space left" in done.stderr and len(done.stderr.splitlines()) == 1, f"a full disk: {done.stderr}")
        check("FALSIFIED mutant/cpu/matmul/wrong_tail_row" in done.stdout, "a full disk: the findings are printed")


try:
    for part in (every_run_is_valid, schemas_refuse, sarif_places_findings, github, bad_folders):
        part()
finally:
    shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
