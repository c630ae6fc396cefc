"""jitkernels: the fastest CPU kernels for Python, chosen by measurement, called in tens of nanoseconds.

Attrs (``jk.VMulAttr``) and everyday functions (``jk.vmul``) are attributes of this package, one of each per
row of the registry, those of other packages included. Type checkers read ``__init__.pyi``, which is generated.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

from jitkernels import attrs as _attrs  # noqa: F401  # imports every row
from jitkernels import earning as _earning  # noqa: F401  # watches the kernels that are picked
from jitkernels import errors
from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.base import rows as _rows
from jitkernels.errors import (
    ArgumentError,
    ArgumentTypeError,
    AttrError,
    BuildError,
    DataIndexError,
    DifferenceError,
    GraphError,
    JitKernelsError,
    NotUsableError,
    RegistrationError,
    TracingError,
    UnknownNameError,
    WorkspaceError,
)
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
from jitkernels.registry import all_rows as _all_rows
from jitkernels.registry import implements
from jitkernels.registry import known_row as _known_row

__version__ = _version("jitkernels")

_LATER = {"JitConfig": "jitkernels.graph.config", "jit": "jitkernels.frontends.jit"}
"""What is imported when it is first asked for, so that the package starts as quickly for those who do not."""

_own = frozenset(kernel_type.name.lower() for kernel_type in _rows)
globals().update({row.__name__: row for row in _rows.values()})

__all__ = [
    "ArgumentError", "ArgumentTypeError", "AttrError", "BuildError", "DataIndexError", "DifferenceError", "Explanation",
    "GraphError", "JitConfig", "JitKernelsError", "Kernel", "KernelAttr", "KernelFuncs", "KernelType", "NotUsableError",
    "RegistrationError", "TracingError", "UnknownNameError", "WorkspaceError", "errors", "explain",
    "get_all_candidates", "get_default_best", "get_num_threads", "get_refer", "implements", "jit",
    "set_num_threads", "tune", "use",
    *sorted(row.__name__ for row in _rows.values()),
    *sorted(kernel_type.name.lower() for kernel_type in _rows),
]  # fmt: skip


def set_num_threads(threads: int) -> None:
    """Let kernels use at most so many threads. Picks made for another number are looked up again."""
    _set_num_threads(threads)
    KernelFuncs.cache().clear()


def __getattr__(name: str) -> Any:
    """Everyday functions are made when first asked for, since they load the compiled dispatcher; so is `jit`.

    Other packages are looked through for names that are not ours, so that theirs are there whatever was called
    before.
    """
    found: Any = None
    if name in _LATER:
        found = getattr(_import_module(_LATER[name]), name)
    elif (
        name.islower()
        and not name.startswith("_")
        and (name in _own or _find_spec(f"jitkernels.{name}") is None)
    ):
        found = _everyday(name) if _known_row(name.upper()) else None
    elif name[:1].isupper():
        found = next((row for row in _all_rows() if row.__name__ == name), None)
    if found is None:
        raise AttributeError(f"module 'jitkernels' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    theirs = {name for row in _all_rows() for name in (row.__name__, row.kernel_type.name.lower())}
    return sorted({*globals(), *_LATER, *theirs})
