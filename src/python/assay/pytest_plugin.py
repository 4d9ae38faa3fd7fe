"""pytest: each obligation of a function marked by `@assay.falsifies(...)` is a test."""
import pytest

import assay


def pytest_configure(config):
    config.addinivalue_line("markers", "assay: obligations of kernels, by @assay.falsifies")


def pytest_pycollect_makeitem(collector, name, obj):
    if isinstance(getattr(obj, "__assay__", None), dict):
        return Kernel.from_parent(collector, name=name, function=obj)
    return None


class Kernel(pytest.Collector):
    """A function marked by @assay.falsifies."""

    def __init__(self, *, function, **rest):
        super().__init__(**rest)
        self.function = function
        self.add_marker("assay")

    def collect(self):
        try:
            ids = assay.obligations(self.function.__assay__["contract"])
        except ValueError as error:
            raise self.CollectError(str(error)) from None
        return [Obligation.from_parent(self, name=id) for id in ids]


class Obligation(pytest.Item):
    """One obligation of a kernel."""

    def runtest(self):
        function = self.parent.function
        try:
            result = assay.falsify(function, only=self.name, **function.__assay__)
        except assay.Unavailable as why:
            pytest.skip(str(why))
        if not result:
            raise assay.Falsified(result)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (assay.Falsified, ValueError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, self.parent.function.__code__.co_firstlineno - 1, f"{self.parent.name}[{self.name}]"
