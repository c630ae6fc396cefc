"""Calls from a lower layer into a higher one: the package binds each hook, the first call imports its provider."""

from collections.abc import Callable
from typing import Any


class Hook:
    """A function that a higher layer provides. Calling it raises RuntimeError while nothing is bound."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._load: Callable[[], Callable[..., Any]] | None = None
        self._function: Callable[..., Any] | None = None

    def bind(self, load: Callable[[], Callable[..., Any]]) -> None:
        """Let the first call load its function with `load`."""
        self._load, self._function = load, None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self._function is None:
            if self._load is None:
                raise RuntimeError(f"the hook {self.name} is not bound: import jitkernels first")
            self._function = self._load()
        return self._function(*arguments, **keywords)


compile_reference = Hook("compile_reference")
"""(schema, reference, *flags): register the ``gen`` that the compiler generates from a reference."""
compile_reference_by_numba = Hook("compile_reference_by_numba")
"""(schema, reference, names): register the ``numba`` that the compiler generates from a reference."""
watch_pick = Hook("watch_pick")
"""(kernel, choice): start online tuning of a kernel when it is first selected."""
prepare_launcher = Hook("prepare_launcher")
"""(): load the compiled launcher, if this process can have one."""
bypass_launcher = Hook("bypass_launcher")
"""(is_bypassed): route calls through Python while overrides are in force."""
trace_kernel = Hook("trace_kernel")
"""(tracer, schema, function, arguments, keywords): an everyday function called in a trace."""
trace_everyday_function = Hook("trace_everyday_function")
"""(function): the proxy that a traced function calls in place of an everyday function."""
trace_random_generator = Hook("trace_random_generator")
"""(tracer, type, bit generator, arrays): a random generator in a trace, which few functions have."""
trace_random_method = Hook("trace_random_method")
"""(generator, name): a method of a random generator in a trace."""
trace_random_module = Hook("trace_random_module")
"""(value): the replacement of `numpy.random`, or of one of its functions; None for others."""
address_of_source = Hook("address_of_source")
"""(source): the address of a built and loaded source."""
parallel_runtime = Hook("parallel_runtime")
"""(): the external symbols that parallel code links against."""
pooled_memory = Hook("pooled_memory")
"""(): the external symbols that code with memory of dynamic size links against."""
discover_schemas = Hook("discover_schemas")
"""(): import the schemas of other packages."""
implement_by_numba = Hook("implement_by_numba")
"""(schema, function): the source and the usability of an implementation that numba compiles."""
call_on_chunks = Hook("call_on_chunks")
"""(function, arguments, keywords): a call of a compiled function with dask arrays, which is lazy."""
lazy_array = Hook("lazy_array")
"""(array): an array of `jk.xp` with these elements, whose functions are fused."""
