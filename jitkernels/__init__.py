"""jitkernels: the fastest CPU kernels for Python, selected by measurement, called in tens of nanoseconds.

Attrs (``jk.VMulAttr``) and everyday functions (``jk.vmul``) are attributes of this package, one of each per op schema
of the registry, those of plug-ins included. Type checkers read ``__init__.pyi``, which is generated.
"""

import sys as _sys
from functools import partial as _partial
from importlib import import_module as _import_module
from importlib.machinery import PathFinder as _PathFinder
from typing import Any

from jitkernels.core import hooks as _hooks
from jitkernels.core.fork_locks import build_lock as _making

_ERRORS = (
    "ArgumentError", "ArgumentTypeError", "AttrError", "BuildError", "BundleError", "DataIndexError", "DerivativeError",
    "DifferenceError", "GraphError", "JitKernelsError", "MemoryLimitError", "ModelError", "NotUsableError",
    "RegistrationError", "TracingError", "UnknownNameError", "WorkspaceError",
)  # fmt: skip
_MODULES = frozenset({"errors", "onnx", "xp"})
"""Public modules, imported on first access."""
_LAZY = {
    **dict.fromkeys(_ERRORS, "jitkernels.errors"),
    "Explanation": "jitkernels.selection.explain_selection",
    "JitConfig": "jitkernels.compiler.ir.config",
    "Kernel": "jitkernels.dispatch.kernel",
    "KernelAttr": "jitkernels.attrs.schema.base",
    "KernelFuncs": "jitkernels.dispatch.kernel_cache",
    "KernelType": "jitkernels.attrs.schema.kernel_types",
    **dict.fromkeys(
        ("cond", "fori_loop", "scan", "switch", "while_loop"), "jitkernels.compiler.api.structured_control_flow"
    ),
    **dict.fromkeys(
        (
            "fft",
            "fft2",
            "fftn",
            "hfft",
            "ifft",
            "ifft2",
            "ifftn",
            "ihfft",
            "irfft",
            "irfft2",
            "irfftn",
            "rfft",
            "rfft2",
            "rfftn",
        ),
        "jitkernels.dispatch.fourier",
    ),
    "explain": "jitkernels.selection.explain_selection",
    "get_all_candidates": "jitkernels.dispatch.kernel_cache",
    "get_default_best": "jitkernels.dispatch.kernel_cache",
    "get_num_threads": "jitkernels.runtime.threads.num_threads",
    "get_refer": "jitkernels.dispatch.kernel_cache",
    "grad": "jitkernels.compiler.api.grad",
    "guvectorize": "jitkernels.compiler.api.vectorize",
    "implements": "jitkernels.attrs.schema.registry",
    "jit": "jitkernels.compiler.api.jit",
    "jvp": "jitkernels.compiler.api.grad",
    "patch": "jitkernels.patching",
    "tune": "jitkernels.tuning.tune",
    "unpatch": "jitkernels.patching",
    "use": "jitkernels.selection.overrides",
    "value_and_grad": "jitkernels.compiler.api.grad",
    "vectorize": "jitkernels.compiler.api.vectorize",
    "vjp": "jitkernels.compiler.api.grad",
}
"""Attributes imported on first access: a process that only calls kernels, or only compiles expressions, starts as fast
as if the rest did not exist.
"""


def set_num_threads(threads: int) -> None:
    """Limit kernels to at most `threads` threads. Kernels selected for another number are selected again."""
    from jitkernels.dispatch.kernel_cache import KernelFuncs
    from jitkernels.runtime.threads import num_threads as native

    native.set_num_threads(threads)
    KernelFuncs.cache().clear()


_PROVIDERS = {
    "address_of_source": ("jitkernels.runtime.loading.loader", "address_of"),
    "call_on_chunks": ("jitkernels.dask_arrays.lazy_call", "call_lazily"),
    "bypass_launcher": ("jitkernels.dispatch.native.launcher", "set_bypass"),
    "compile_reference": ("jitkernels.compiler.api.traced_kernel", "register"),
    "compile_reference_by_numba": ("jitkernels.compiler.api.traced_kernel", "register_numba"),
    "discover_schemas": ("jitkernels.attrs.schema.registry", "import_all_schemas"),
    "implement_by_numba": ("jitkernels.dispatch.numba_extension.entry_compiler", "implementation_of"),
    "lazy_array": ("jitkernels.xp", "Array"),
    "parallel_runtime": ("jitkernels.runtime.threads.team_size", "externals"),
    "pooled_memory": ("jitkernels.runtime.workspace_allocator", "memory"),
    "prepare_launcher": ("jitkernels.dispatch.native.launcher", "reason_for_slow_path"),
    "trace_everyday_function": ("jitkernels.compiler.capture.kernels.kernel_call", "operator_proxy"),
    "trace_kernel": ("jitkernels.compiler.capture.kernels.kernel_call", "call"),
    "trace_random_generator": ("jitkernels.compiler.capture.random.random_module", "generator"),
    "trace_random_method": ("jitkernels.compiler.capture.random.random_module", "Method"),
    "trace_random_module": ("jitkernels.compiler.capture.random.random_module", "of_random"),
    "watch_pick": ("jitkernels.tuning.online_tuning", "watch"),
}
"""The providers of the functions that lower layers call (`core.hooks`): this module is the composition root."""


def _provider(module: str, function: str) -> Any:
    return getattr(_import_module(module), function)


for _name, _provided in _PROVIDERS.items():
    getattr(_hooks, _name).bind(_partial(_provider, *_provided))


class _MovedModules:
    """A meta-path finder, after all other finders, of the module paths of version 0.1."""

    def find_spec(self, name: str, *_arguments: Any) -> Any:
        if not name.startswith("jitkernels."):
            return None
        from jitkernels.core.moved_modules import find_spec

        return find_spec(name)


_sys.meta_path[:] = [finder for finder in _sys.meta_path if type(finder).__module__ != __name__]  # of a reload
_sys.meta_path.append(_MovedModules())
_fixed = {"set_num_threads", *_MODULES, *_LAZY}


def _names() -> list[str]:
    """All public names of this package; those of plug-ins are not included."""
    from jitkernels.attrs.schema.base import schemas

    own = [schema for schema in schemas.values() if schema.__module__.startswith("jitkernels.")]
    functions = sorted(schema.kernel_type.name.lower() for schema in own)
    return [*sorted(_fixed), *sorted(schema.__name__ for schema in own), *functions]


def __getattr__(name: str) -> Any:
    """Load an attribute on first access: see `_LAZY`, attrs, and everyday functions, which load the dispatcher.

    Plug-ins are searched for unknown names, so that theirs resolve whatever was called before.
    """
    if name == "__all__":
        return _names()
    value = _import_module(f"jitkernels.{name}") if name in _MODULES else _sys.modules.get(f"jitkernels.{name}")
    if value is None and (name in _LAZY or not _is_module(name)):
        with _making:  # a fork waits for the import, or its child would wait for the import lock for ever
            value = _resolve(name)
    if value is None:
        raise AttributeError(f"module 'jitkernels' has no attribute {name!r}")
    globals()[name] = value
    return value


def _is_module(name: str) -> bool:
    return name.islower() and _PathFinder.find_spec(f"jitkernels.{name}", __path__) is not None


def _resolve(name: str) -> Any:
    """The value of an attribute that is not a module, or None."""
    if name in _LAZY:
        return getattr(_import_module(_LAZY[name]), name)
    if name == "__version__":
        from jitkernels.core.versions import version

        return version("jitkernels")
    if name.startswith("_"):
        return None
    if name.islower():
        from jitkernels.attrs.schema.registry import find_schema
        from jitkernels.dispatch.operators import everyday

        return everyday(name) if find_schema(name.upper()) else None
    if name[:1].isupper():
        from jitkernels.attrs.schema.registry import find_schema_by_class_name

        return find_schema_by_class_name(name)
    return None


def __dir__() -> list[str]:
    from jitkernels.attrs.schema.registry import all_schemas

    schema_names = {name for schema in all_schemas() for name in (schema.__name__, schema.kernel_type.name.lower())}
    return sorted({*globals(), *_names(), *schema_names, "__version__", "__all__"})
