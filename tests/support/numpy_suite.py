"""NumPy's own tests, run through `jit`: a plugin for pytest, ``pytest -p numpy_suite <files of NumPy's tests>``.

The text of each test module is changed before it is run. ``np`` is a stand-in whose functions go through compiled
functions of the same signature, and so do operators, elements and methods where an array takes part. A test is
applicable if one call of it at least ran as compiled code; calls that were left to NumPy are counted, with reasons.

``NUMPY_SUITE_REPORT`` names a file for the results, ``NUMPY_SUITE_PLAIN=1`` leaves everything to NumPy, and after
``NUMPY_SUITE_SECONDS`` no more tests are begun.
"""

import ast
import json
import operator
import os
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy._core.umath
import pytest
from borrowed import Borrower

from jitkernels.frontends import specialisation
from jitkernels.frontends.jit import JitFunction, jit
from jitkernels.frontends.tables import METHODS, TABLE
from jitkernels.frontends.universal import COMPOSED
from jitkernels.graph import profile, program
from jitkernels.graph.scalars import BY_UFUNC, DTYPES

IS_PLAIN = os.environ.get("NUMPY_SUITE_PLAIN") == "1"
LONG = {"test_sort_degraded", "test_ufunc_at_inner_loops", "test_count_nonzero_all", "test_huge_vectordot"}
LONG.add("test_identityless_reduction_huge_array")
"""Tests that look at arrays element by element, hundreds of thousands of times, or at gigabytes."""
SECONDS = float(os.environ.get("NUMPY_SUITE_SECONDS", "inf"))
OURS: set[Any] = {*BY_UFUNC, *COMPOSED, *(one for one in TABLE if callable(one))}
"""NumPy's functions that graphs know."""
WAYS = ("reduce", "accumulate", "outer")
"""Methods of universal functions that go through compiled code."""
_dtypes = {np.dtype(name) for name in DTYPES}
counts: Counter[str] = Counter()
reasons: Counter[str] = Counter()
_compiled: dict[str, JitFunction[Any, Any]] = {}
_standins: dict[Any, Any] = {}


def compiled(text: str, parameters: str = "*args, **kwargs") -> JitFunction[Any, Any]:
    """The compiled function of an expression of `np`."""
    if text not in _compiled:
        names: dict[str, Any] = {"np": np, "operator": operator}
        exec(f"def called({parameters}):\n    return {text}\n", names)
        _compiled[text] = jit(profile=True)(names["called"])  # which leaves no small arrays to NumPy
    return _compiled[text]


def through(text: str, parameters: str, *args: Any, **kwargs: Any) -> Any:
    """Call the compiled function of an expression, and count which way the call went."""
    function = compiled(text, parameters)
    before = counts["numpy"]
    try:
        return function(*args, **kwargs)
    finally:
        if counts["numpy"] == before:
            counts["compiled"] += 1


def _count_ways() -> None:
    plain, run = JitFunction._plain, program.Program.run

    def counted_plain(self: Any, *args: Any) -> Any:
        counts["numpy"] += 1
        return plain(self, *args)

    def counted_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = [step for step in self.steps if getattr(step, "operation", "") == "call"]
        if called and not self.kernels:
            counts["numpy"] += 1
        return run(self, *args, **kwargs)

    JitFunction._plain, program.Program.run = counted_plain, counted_run  # type: ignore[method-assign, assignment]

    def done(
        self: Any, taken: Any, arrays: Any
    ) -> None:  # which would keep the arrays, that tests count references to
        taken.calls += 1

    profile.Profile.done = done  # type: ignore[method-assign]
    made = specialisation.made

    def explained(*args: Any) -> Any:
        found = made(*args)
        if found.graph is None:
            reasons[found.reason] += 1
        return found

    specialisation.made = explained  # type: ignore[assignment]


def is_known(value: Any) -> bool:
    return type(value) is np.ndarray and bool(value.dtype in _dtypes)


class Function:
    """Stands for one of NumPy's functions."""

    def __init__(self, function: Any, text: str) -> None:
        self.function, self.text = function, text

    @property
    def __class__(self) -> Any:
        return type(self.function)

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("__class__")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return through(f"{self.text}(*args, **kwargs)", "*args, **kwargs", *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.function, name)
        if name in WAYS and isinstance(self.function, np.ufunc):
            return Function(found, f"{self.text}.{name}")
        return found

    def __repr__(self) -> str:
        return repr(self.function)

    def __eq__(self, other: object) -> bool:
        return bool(self.function == getattr(other, "function", other))

    def __hash__(self) -> int:
        return hash(self.function)

    def __reduce__(self) -> Any:
        return self.function.__reduce__()


class Module(types.ModuleType):
    """Stands for a module of NumPy."""

    def __init__(self, module: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        return standin(getattr(self.__dict__["_module"], name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_module"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_module"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])


def standin(value: Any) -> Any:
    """What stands for something of NumPy's; itself where nothing does."""
    try:
        is_ours = not IS_PLAIN and value in OURS
    except (TypeError, ValueError):
        return value
    if not is_ours or isinstance(value, type):
        return value
    name = value.__name__
    if getattr(np, name, None) is not value:
        return value
    if value not in _standins:
        _standins[value] = Function(value, f"np.{name}")
    return _standins[value]


NUMPY = Module(np)
MODULES = {"numpy": NUMPY, "numpy._core.umath": Module(numpy._core.umath)}


class Operations:
    """What the changed text calls in place of operators, elements and methods."""

    @staticmethod
    def module(name: str) -> Any:
        return MODULES.get(name) or sys.modules[name]

    @staticmethod
    def standin(value: Any) -> Any:
        return standin(value)

    @staticmethod
    def binary(name: str, one: Any, other: Any) -> Any:
        if is_known(one) or is_known(other):
            return through(f"operator.{name}(one, other)", "one, other", one, other)
        return getattr(operator, name)(one, other)

    @staticmethod
    def unary(name: str, one: Any) -> Any:
        if is_known(one):
            return through(f"operator.{name}(one)", "one", one)
        return getattr(operator, name)(one)

    @staticmethod
    def get(one: Any, index: Any) -> Any:
        if is_known(one):
            return through("one[index]", "one, index", one, index)
        return one[index]

    @staticmethod
    def set(one: Any, index: Any, value: Any) -> None:
        if is_known(one):
            through("one.__setitem__(index, value)", "one, index, value", one, index, value)
        else:
            one[index] = value

    @staticmethod
    def method(one: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if is_known(one):
            return through(f"one.{name}(*args, **kwargs)", "one, *args, **kwargs", one, *args, **kwargs)
        return getattr(one, name)(*args, **kwargs)


class Plugin:
    """Collects NumPy's test modules with their text changed, and reports which way their calls went."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, Any]] = {}
        self.began = time.perf_counter()

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> Any:
        return Borrowed.from_parent(parent, path=module_path)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if getattr(item, "originalname", "") not in LONG]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        counts.clear()
        began = time.perf_counter()
        result = self.results[item.nodeid] = {"outcome": "passed"}
        found = yield
        seconds = round(time.perf_counter() - began, 2)
        result |= {"compiled": counts["compiled"], "numpy": counts["numpy"], "seconds": seconds}
        if time.perf_counter() - self.began > SECONDS:
            item.session.shouldstop = "the time is over"
        return found

    def pytest_runtest_logreport(self, report: Any) -> None:
        result = self.results[report.nodeid]
        if report.skipped:
            result["outcome"] = "skipped"
        elif report.failed:
            result |= {"outcome": "failed", "why": str(report.longrepr)[-3000:]}

    def pytest_sessionfinish(self) -> None:
        place = os.environ.get("NUMPY_SUITE_REPORT")
        if place:
            found = {"tests": self.results, "reasons": dict(reasons.most_common())}
            Path(place).write_text(json.dumps(found, indent=1))


class Borrowed(pytest.Module):
    """A test module of NumPy."""

    def _getobj(self) -> Any:
        tree = ast.parse(self.path.read_text(), str(self.path))
        made = types.ModuleType(self.path.stem)
        made.__file__ = str(self.path)
        parts = self.path.parts
        made.__package__ = ".".join(parts[len(parts) - 1 - parts[::-1].index("numpy") : -1])
        made.__dict__["__suite__"] = Operations
        sys.modules[made.__name__] = made
        changed = tree if IS_PLAIN else Borrower(tuple(METHODS), tuple(MODULES)).visit(tree)
        exec(compile(ast.fix_missing_locations(changed), str(self.path), "exec"), made.__dict__)
        return made


def pytest_configure(config: Any) -> None:
    if not IS_PLAIN:
        _count_ways()
    config.pluginmanager.register(Plugin())
