"""Backends, which run a traced graph (``JITKERNELS_BACKEND``): native code, numba, or NumPy node by node."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitkernels.compiler.ir import interpreter
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.core import cache_dirs
from jitkernels.runtime.threads.num_threads import get_num_threads

if TYPE_CHECKING:
    from jitkernels.compiler.lowering.autotune_program import ProgramVariant
    from jitkernels.compiler.lowering.build_segment import NestRequest
    from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule


def measured_schedule(request: "NestRequest") -> "NestSchedule | None":
    """The schedule of a nest that measured best.

    The tuning modules take as long to import as code to generate: import them only where timings exist.
    """
    if not cache_dirs.has_timings("fused", get_num_threads()):
        return None
    from jitkernels.compiler.lowering import autotune_nest

    return autotune_nest.measured_schedule(request)


def choose_variant(
    graph: Graph, scope: Scope, config: JitConfig, variant: Mapping[str, Any] | None = None
) -> "ProgramVariant | None":
    """How to compile a graph: as `variant` says, or as measured best; None where nothing was measured."""
    if config.backend != "native" or (variant is None and not cache_dirs.has_timings("program", get_num_threads())):
        return None
    from jitkernels.compiler.lowering import autotune_program

    if variant is not None:
        return autotune_program.ProgramVariant(
            autotune_program.with_fields(config, variant), variant, measured_schedule
        )
    return autotune_program.choose_variant(graph, scope, config, measured_schedule)


class Interpreted:
    """A graph that NumPy computes node by node."""

    kernels = 0

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.launches = sum(node.operation != "input" for node in graph)

    def fits(self, _: Mapping[str, int]) -> bool:
        """True: the memory that NumPy takes is not limited."""
        return True

    def run(self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None) -> list[Any]:
        """The outputs, all new arrays; writes to inputs happen after all is computed."""
        values_of_roots = interpreter.run(self.graph, arrays, values)
        count = len(self.graph.outputs)
        results = [
            _copy_if_shared(value, values_of_roots[:i], arrays) for i, value in enumerate(values_of_roots[:count])
        ]
        written = [_copy_if_shared(value, (), arrays) for value in values_of_roots[count:]]
        for (target, _), value in zip(self.graph.writes, written, strict=True):
            arrays[target.options["index"]][...] = value
        if out is None:
            return results
        for target, value in zip(out, results, strict=True):
            target[...] = value
        return list(out)


def _copy_if_shared(array: Any, others: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """An array that shares memory with no other one."""
    if array.base is not None or not array.flags.writeable:
        return array.copy()
    if any(array is value for value in (*others, *arrays)):
        return array.copy()
    return array
