"""Mutation tests: kernels in plain NumPy, and mutants of them: one file per family.

Such a module has for each kernel a function of its name, and in `MISTAKES` by that name text replacements in the
function's source. The functions resemble compiled kernels where that matters: a main loop and an epilogue, the
dtype's own range and rounding, sums in a wider type, and outputs that may alias inputs.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

WIDE = np.longdouble


def sigmoid(x: AnyArray) -> AnyArray:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, np.ones_like(x)) / (1 + small))


def relu(x: AnyArray) -> AnyArray:
    return np.asarray(np.maximum(x, 0))


def identity(x: AnyArray) -> AnyArray:
    return x


def flushed(x: Any) -> Any:
    """Flush subnormal numbers to zero."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)


def clipped(x: Any) -> Any:
    """Clip infinities to the largest number."""
    return np.clip(x, -np.finfo(x.dtype).max, np.finfo(x.dtype).max)


def families() -> dict[str, ModuleType]:
    """Return by kernel the module with its function and mutants."""
    modules = [importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__)]
    return {kernel: module for module in modules for kernel in module.MISTAKES}
