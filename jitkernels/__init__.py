"""jitkernels: the fastest CPU kernels for Python, chosen by measurement, called in tens of nanoseconds.

Attrs (``jk.VMulAttr``) and everyday functions (``jk.vmul``) are attributes of this package, one of each per
row of the registry, those of other packages included. Type checkers read ``__init__.pyi``, which is generated.
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

from jitkernels import errors  # noqa: F401  # a public name
from jitkernels.locks import making as _making

_ERRORS = (
    "ArgumentError", "ArgumentTypeError", "AttrError", "BuildError", "BundleError", "DataIndexError", "DerivativeError",
    "DifferenceError", "GraphError", "JitKernelsError", "MemoryLimitError", "NotUsableError", "RegistrationError",
    "TracingError", "UnknownNameError", "WorkspaceError",
)  # fmt: skip
_LATER = {
    **dict.fromkeys(_ERRORS, "jitkernels.errors"),
    "Explanation": "jitkernels.explanation",
    "JitConfig": "jitkernels.graph.config",
    "Kernel": "jitkernels.kernel",
    "KernelAttr": "jitkernels.attrs.base",
    "KernelFuncs": "jitkernels.kernel_funcs",
    "KernelType": "jitkernels.kernel_types",
    **dict.fromkeys(("cond", "fori_loop", "scan", "switch", "while_loop"), "jitkernels.frontends.explicit"),
    "explain": "jitkernels.explanation",
    "get_all_candidates": "jitkernels.kernel_funcs",
    "get_default_best": "jitkernels.kernel_funcs",
    "get_num_threads": "jitkernels.native.threads",
    "get_refer": "jitkernels.kernel_funcs",
    "grad": "jitkernels.frontends.derivatives",
    "implements": "jitkernels.registry",
    "jit": "jitkernels.frontends.jit",
    "jvp": "jitkernels.frontends.derivatives",
    "tune": "jitkernels.measuring",
    "use": "jitkernels.pins",
    "value_and_grad": "jitkernels.frontends.derivatives",
    "vjp": "jitkernels.frontends.derivatives",
}
"""What is imported when it is first asked for: a process that calls kernels alone, or expressions alone, starts as
quickly as if there were nothing else.
"""


def set_num_threads(threads: int) -> None:
    """Let kernels use at most so many threads. Picks made for another number are looked up again."""
    from jitkernels.kernel_funcs import KernelFuncs
    from jitkernels.native import threads as native

    native.set_num_threads(threads)
    KernelFuncs.cache().clear()


_fixed = {"errors", "set_num_threads", *_LATER}


def _names() -> list[str]:
    """All that is promised: what other packages bring with them is not."""
    from jitkernels.attrs.base import rows

    own = [row for row in rows.values() if row.__module__.startswith("jitkernels.")]
    functions = sorted(row.kernel_type.name.lower() for row in own)
    return [*sorted(_fixed), *sorted(row.__name__ for row in own), *functions]


def __getattr__(name: str) -> Any:
    """What is not there yet: see `_LATER`, attrs, and everyday functions, which load the compiled dispatcher.

    Other packages are looked through for names that are not ours, so that theirs are there whatever was called
    before.
    """
    if name == "__all__":
        return _names()
    found = _sys.modules.get(f"jitkernels.{name}")
    if found is None and (name in _LATER or not _is_module(name)):
        with _making:  # a fork waits for what is imported, or its child would wait for that for ever
            found = _found(name)
    if found is None:
        raise AttributeError(f"module 'jitkernels' has no attribute {name!r}")
    globals()[name] = found
    return found


def _is_module(name: str) -> bool:
    return name.islower() and _find_spec(f"jitkernels.{name}") is not None


def _found(name: str) -> Any:
    """An attribute that is no module, or None."""
    if name in _LATER:
        return getattr(_import_module(_LATER[name]), name)
    if name == "__version__":
        from jitkernels.machine import version

        return version("jitkernels")
    if name.startswith("_"):
        return None
    if name.islower():
        from jitkernels.functions import everyday
        from jitkernels.registry import known_row

        return everyday(name) if known_row(name.upper()) else None
    if name[:1].isupper():
        from jitkernels.registry import named_row

        return named_row(name)
    return None


def __dir__() -> list[str]:
    from jitkernels.registry import all_rows

    theirs = {name for row in all_rows() for name in (row.__name__, row.kernel_type.name.lower())}
    return sorted({*globals(), *_names(), *theirs, "__version__", "__all__"})
