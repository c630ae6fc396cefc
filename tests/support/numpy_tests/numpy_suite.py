"""Run NumPy's own tests through `jit`: a pytest plugin, ``pytest -p numpy_suite <files of NumPy's tests>``.

The source of each test module is rewritten before it runs. ``np`` is a proxy whose functions call compiled
functions of the same signature, and so do operators, elements and methods on arrays. A test is applicable if at least
one of its calls ran compiled code; calls that fell back to NumPy are counted, with reasons.

``NUMPY_SUITE_REPORT`` names a file for the results, ``NUMPY_SUITE_PLAIN=1`` runs everything in NumPy, and after
``NUMPY_SUITE_SECONDS`` no more tests start.
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

from jitkernels.compiler.api import cold_call
from jitkernels.compiler.api.jit import JitFunction, jit
from jitkernels.compiler.capture.numpy.ufuncs import COMPOSED
from jitkernels.compiler.capture.override_registry import METHODS, TABLE
from jitkernels.compiler.ir.elementwise_ops import BY_UFUNC, DTYPES
from jitkernels.compiler.lowering import compiled_program, profile_counters

IS_PLAIN = os.environ.get("NUMPY_SUITE_PLAIN") == "1"
LONG = {"test_sort_degraded", "test_ufunc_at_inner_loops", "test_count_nonzero_all", "test_huge_vectordot"}
LONG.add("test_identityless_reduction_huge_array")
"""Tests that access hundreds of thousands of single elements, or gigabytes."""
SECONDS = float(os.environ.get("NUMPY_SUITE_SECONDS", "inf"))
OURS: set[Any] = {*BY_UFUNC, *COMPOSED, *(key for key in TABLE if callable(key))}
"""NumPy's functions that have graph operations."""
WAYS = ("reduce", "accumulate", "outer")
"""Methods of universal functions that run compiled code."""
_dtypes = {np.dtype(name) for name in DTYPES}
counts: Counter[str] = Counter()
reasons: Counter[str] = Counter()
_compiled: dict[str, JitFunction[Any, Any]] = {}
_standins: dict[Any, Any] = {}


def compiled(text: str, parameters: str = "*args, **kwargs") -> JitFunction[Any, Any]:
    """Return the compiled function of an expression of `np`."""
    if text not in _compiled:
        names: dict[str, Any] = {"np": np, "operator": operator}
        exec(f"def called({parameters}):\n    return {text}\n", names)
        _compiled[text] = jit(profile=True)(names["called"])  # compile for small arrays too
    return _compiled[text]


def through(text: str, parameters: str, *args: Any, **kwargs: Any) -> Any:
    """Call the compiled function of an expression, and count whether it ran compiled or as fallback."""
    function = compiled(text, parameters)
    before = counts["numpy"]
    try:
        return function(*args, **kwargs)
    finally:
        if counts["numpy"] == before:
            counts["compiled"] += 1


def _count_ways() -> None:
    plain, run = JitFunction._plain, compiled_program.CompiledProgram.run

    def counted_plain(self: Any, *args: Any) -> Any:
        counts["numpy"] += 1
        return plain(self, *args)

    def counted_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = [step for step in self.steps if getattr(step, "operation", "") == "call"]
        if called and not self.kernels:
            counts["numpy"] += 1
        return run(self, *args, **kwargs)

    JitFunction._plain, compiled_program.CompiledProgram.run = counted_plain, counted_run  # type: ignore[method-assign, assignment]

    def done(
        self: Any, taken: Any, arrays: Any, memory: Any = None
    ) -> None:  # arrays are not kept: tests count references
        taken.calls += 1

    profile_counters.Profile.done = done  # type: ignore[method-assign]
    specialize = vars(cold_call)["specialize"]

    def explained(*args: Any, **kwargs: Any) -> Any:
        result = specialize(*args, **kwargs)
        if result.graph is None:
            reasons[result.reason] += 1
        return result

    vars(cold_call)["specialize"] = explained


def is_known(value: Any) -> bool:
    return type(value) is np.ndarray and bool(value.dtype in _dtypes)


class Function:
    """Proxy of a NumPy function."""

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
        attribute = getattr(self.function, name)
        if name in WAYS and isinstance(self.function, np.ufunc):
            return Function(attribute, f"{self.text}.{name}")
        return attribute

    def __repr__(self) -> str:
        return repr(self.function)

    def __eq__(self, other: object) -> bool:
        return bool(self.function == getattr(other, "function", other))

    def __hash__(self) -> int:
        return hash(self.function)

    def __reduce__(self) -> Any:
        return self.function.__reduce__()


class Module(types.ModuleType):
    """Proxy of a NumPy module."""

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
    """Return the proxy of a NumPy object; other values unchanged."""
    try:
        is_package_file = not IS_PLAIN and value in OURS
    except (TypeError, ValueError):
        return value
    if not is_package_file or isinstance(value, type):
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
    """The functions that rewritten source calls for operators, elements and methods."""

    @staticmethod
    def module(name: str) -> Any:
        return MODULES.get(name) or sys.modules[name]

    @staticmethod
    def standin(value: Any) -> Any:
        return standin(value)

    @staticmethod
    def binary(name: str, first: Any, second: Any) -> Any:
        if is_known(first) or is_known(second):
            return through(f"operator.{name}(one, other)", "one, other", first, second)
        return getattr(operator, name)(first, second)

    @staticmethod
    def unary(name: str, operand: Any) -> Any:
        if is_known(operand):
            return through(f"operator.{name}(one)", "one", operand)
        return getattr(operator, name)(operand)

    @staticmethod
    def get(array: Any, index: Any) -> Any:
        if is_known(array):
            return through("one[index]", "one, index", array, index)
        return array[index]

    @staticmethod
    def set(array: Any, index: Any, value: Any) -> None:
        if is_known(array):
            through("one.__setitem__(index, value)", "one, index, value", array, index, value)
        else:
            array[index] = value

    @staticmethod
    def method(array: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if is_known(array):
            return through(f"one.{name}(*args, **kwargs)", "one, *args, **kwargs", array, *args, **kwargs)
        return getattr(array, name)(*args, **kwargs)


class Plugin:
    """Collects NumPy's test modules with rewritten source, and reports how their calls ran."""

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
        outcome = yield
        seconds = round(time.perf_counter() - began, 2)
        result |= {"compiled": counts["compiled"], "numpy": counts["numpy"], "seconds": seconds}
        if time.perf_counter() - self.began > SECONDS:
            item.session.shouldstop = "the time is over"
        return outcome

    def pytest_runtest_logreport(self, report: Any) -> None:
        result = self.results[report.nodeid]
        if report.skipped:
            result["outcome"] = "skipped"
        elif report.failed:
            result |= {"outcome": "failed", "why": str(report.longrepr)[-3000:]}

    def pytest_sessionfinish(self) -> None:
        path = os.environ.get("NUMPY_SUITE_REPORT")
        if path:
            report = {"tests": self.results, "reasons": dict(reasons.most_common())}
            Path(path).write_text(json.dumps(report, indent=1))


class Borrowed(pytest.Module):
    """A test module of NumPy."""

    def _getobj(self) -> Any:
        tree = ast.parse(self.path.read_text(), str(self.path))
        module = types.ModuleType(self.path.stem)
        module.__file__ = str(self.path)
        parts = self.path.parts
        module.__package__ = ".".join(parts[len(parts) - 1 - parts[::-1].index("numpy") : -1])
        module.__dict__["__suite__"] = Operations
        sys.modules[module.__name__] = module
        changed = tree if IS_PLAIN else Borrower(tuple(METHODS), tuple(MODULES)).visit(tree)
        exec(compile(ast.fix_missing_locations(changed), str(self.path), "exec"), module.__dict__)
        return module


def pytest_configure(config: Any) -> None:
    if not IS_PLAIN:
        _count_ways()
    config.pluginmanager.register(Plugin())
