#!/usr/bin/env python3
"""Compares the figures of assay_bench with their requirements.

    assay_bench --benchmark_out=bench.json --benchmark_repetitions=3 && tests/bench/bars.py bench.json

A benchmark states the requirement on its counter x by another counter, at_least:x or at_most:x. Repetitions count by
their median. Exit code: 0 every bar is met, 1 one is missed, 2 the file holds no bar or is no report of assay_bench.
"""
import json
import statistics
import sys


def bars(report):
    """Returns (benchmark, counter, median, "at_least" or "at_most", required) of every bar, in the report's order."""
    figures = {}
    for run in report["benchmarks"]:
        if run.get("run_type", "iteration") != "iteration":
            continue
        for counter, required in run.items():
            direction, _, name = counter.partition(":")
            if direction in ("at_least", "at_most") and name in run:
                key = (run["run_name"].split("/iterations:")[0], name, direction, required)
                figures.setdefault(key, []).append(run[name])
    return [(benchmark, name, statistics.median(values), direction, required)
            for (benchmark, name, direction, required), values in figures.items()]


def main(arguments):
    if len(arguments) != 2:
        sys.stderr.write("usage: bars.py REPORT.json\n")
        return 2
    try:
        with open(arguments[1], encoding="utf-8") as file:
            rows = bars(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"{arguments[1]}: not a JSON report of assay_bench ({error!r}): write one with --benchmark_out\n")
        return 2
    if not rows:
        sys.stderr.write(f"{arguments[1]}: no benchmark in it has a bar: check --benchmark_filter\n")
        return 2
    missed = 0
    for benchmark, name, value, direction, required in rows:
        met = value >= required if direction == "at_least" else value <= required
        missed += not met
        sign = ">=" if direction == "at_least" else "<="
        print(f"{'met   ' if met else 'MISSED'}  {benchmark:<42} {name:<25} {value:10.3f} {sign} {required:g}")
    print(f"{len(rows) - missed} of {len(rows)} bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
