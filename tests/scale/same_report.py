#!/usr/bin/env python3
"""Compares two reports except for times and the places of replay files: same_report.py REPORT REPORT"""
import json
import sys

TIMES = {"seconds", "file"}


def timeless(document):
    if isinstance(document, dict):
        return {key: timeless(value) for key, value in document.items() if key not in TIMES}
    return [timeless(value) for value in document] if isinstance(document, list) else document


def differences(first, second, place="report"):
    """Yields the paths at which two documents differ, with both values."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            if key not in first or key not in second:
                yield f"{place}.{key} is only in the {'second' if key not in first else 'first'}"
            else:
                yield from differences(first[key], second[key], f"{place}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for i, pair in enumerate(zip(first, second)):
            yield from differences(*pair, f"{place}[{i}]")
    elif first != second:
        yield f"{place}: {str(first)[:200]} and {str(second)[:200]}"


def compare(first, second):
    return list(differences(timeless(first), timeless(second)))


if __name__ == "__main__":
    first, second = (json.load(open(path)) for path in sys.argv[1:3])
    found = compare(first, second)
    print("\n".join(found[:10]) or f"the same: {first['totals']['kernels']} kernels, {first['totals']['cases']} cases, "
          f"{first['totals']['elements']} elements")
    sys.exit(1 if found or not first["totals"]["cases"] else 0)
