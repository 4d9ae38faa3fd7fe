"""Helpers shared by the tests of this folder."""
import json
import os
import subprocess


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def check(self, condition, text):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", text, flush=True)

    def result(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


class Command:
    """The assay under test, run in one folder."""

    def __init__(self, assay, folder, checks):
        self.assay, self.folder, self.checks = os.path.abspath(assay), folder, checks
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}

    def run(self, *arguments):
        done = subprocess.run([self.assay, *map(str, arguments)], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments):
        return subprocess.Popen([self.assay, *map(str, arguments)], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def report(self, *arguments, code=0):
        """Returns the document that --json prints."""
        status, said, complaint = self.run(*arguments, "--json")
        right = status in (0, 4) if code == 0 else status == code  # campaigns of few cases are thin
        self.checks.check(right, f"{' '.join(map(str, arguments))}: exit {status} (want {code}): {complaint}")
        return json.loads(said)

    def refused(self, words, *arguments):
        """Expects exit code 2, and one sentence that contains the words."""
        status, _, said = self.run(*arguments)
        self.checks.check(status == 2 and words in said and said.count("\n") == 1,
                          f"{' '.join(map(str, arguments))}: exit {status} (want 2): {said!r} (want: {words})")
