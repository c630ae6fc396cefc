"""Shared helpers of tests of the selection: the selected kernel, and records and tables to select from."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.selection import shipped_tables
from jitkernels.selection.records import Measured, Record


def chosen(attr: Any) -> Kernel:
    """Return the kernel of the callable that `at` returns, looked up again."""
    KernelFuncs.cache().clear()
    function: Any = KernelFuncs.cache().at(attr)
    kernel = function.__self__
    assert isinstance(kernel, Kernel)
    arrays, expected = attr.signature().sample(), attr.signature().sample()
    function(*arrays)
    jk.get_refer(attr)(*expected)
    assert np.array_equal(arrays[-1], expected[-1])
    return kernel


def record(*names: str, variant: Any = None, error: str | None = None) -> Record:
    """Return a record in which the named implementations have this order."""
    candidates = [Measured(name, dict(variant or {}), (i + 1) * 1e-6, 1e-8) for i, name in enumerate(names)]
    return Record(tuple(candidates))


def ship(monkeypatch: pytest.MonkeyPatch, attr: Any, *names: str) -> None:
    entry = (attr.size_class(), record(*names)) if names else None
    monkeypatch.setattr(shipped_tables, "nearest", lambda *_: entry)
