"""Kernels once more, right and in plain NumPy, and mistakes to plant in them: one file per family.

Such a module has for each kernel a function of its name, and in `MISTAKES` by that name what is replaced in the text
of the function, and by what. The functions work like compiled kernels where that matters: a main loop and a tail, the
dtype's own range and rounding, sums in a wider type, and outputs that may be inputs.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import numpy as np

from jitkernels.signature import AnyArray

WIDE = np.longdouble


def sigmoid(x: AnyArray) -> AnyArray:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, np.ones_like(x)) / (1 + small))


def relu(x: AnyArray) -> AnyArray:
    return np.asarray(np.maximum(x, 0))


def identity(x: AnyArray) -> AnyArray:
    return x


def flushed(x: Any) -> Any:
    """Without subnormal numbers."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)


def clipped(x: Any) -> Any:
    """Without infinities."""
    return np.clip(x, -np.finfo(x.dtype).max, np.finfo(x.dtype).max)


def families() -> dict[str, ModuleType]:
    """For each kernel the module that has it and its mistakes."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    ]
    return {kernel: module for module in modules for kernel in module.MISTAKES}
