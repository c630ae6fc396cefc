"""What tests of the choice share: what was picked, and records and tables to pick from."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels import shipped
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.tuning.store import Measured, Record


def chosen(attr: Any) -> Kernel:
    """The kernel behind what `at` gives, looked up anew."""
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
    """A record in which the named implementations came in this order."""
    found = [Measured(name, dict(variant or {}), (i + 1) * 1e-6, 1e-8) for i, name in enumerate(names)]
    return Record(tuple(found))


def ship(monkeypatch: pytest.MonkeyPatch, attr: Any, *names: str) -> None:
    found = (attr.tuning_class(), record(*names)) if names else None
    monkeypatch.setattr(shipped, "nearest", lambda *_: found)
