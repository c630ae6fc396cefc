"""jitkernels: the fastest CPU kernels for Python, chosen by measurement, called in tens of nanoseconds.

Attrs (``jk.VMulAttr``) and everyday functions (``jk.vmul``) are attributes of this package, one of each per
row of the registry.
"""

from typing import Any

from jitkernels import attrs as _attrs  # noqa: F401  # imports every row
from jitkernels import errors
from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.base import rows as _rows
from jitkernels.explanation import Explanation, explain
from jitkernels.functions import everyday as _everyday
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs, get_all_candidates, get_default_best, get_refer
from jitkernels.kernel_types import KernelType
from jitkernels.machine import version as _version
from jitkernels.measuring import tune
from jitkernels.native.threads import get_num_threads
from jitkernels.native.threads import set_num_threads as _set_num_threads
from jitkernels.pins import use
from jitkernels.registry import implements

__version__ = _version("jitkernels")

globals().update({row.__name__: row for row in _rows.values()})

__all__ = [
    "Explanation", "Kernel", "KernelAttr", "KernelFuncs", "KernelType", "errors", "explain", "get_all_candidates",
    "get_default_best", "get_num_threads", "get_refer", "implements", "set_num_threads", "tune", "use",
    *sorted(row.__name__ for row in _rows.values()),
]  # fmt: skip


def set_num_threads(threads: int) -> None:
    """Let kernels use at most so many threads. Picks made for another number are looked up again."""
    _set_num_threads(threads)
    KernelFuncs.cache().clear()


def __getattr__(name: str) -> Any:
    """Everyday functions are made when first asked for, since they load the compiled dispatcher."""
    if name in (kernel_type.name.lower() for kernel_type in _rows):
        globals()[name] = _everyday(name)
        return globals()[name]
    raise AttributeError(f"module 'jitkernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *(kernel_type.name.lower() for kernel_type in _rows)])
