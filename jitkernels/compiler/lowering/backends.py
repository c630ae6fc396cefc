"""What runs a traced graph: compiled code, or NumPy node by node (``JITKERNELS_BACKEND=interpreter``)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitkernels import machine
from jitkernels.graph import compilation, interpreter
from jitkernels.graph.config import JitConfig
from jitkernels.graph.extents import Scope
from jitkernels.graph.ir import Graph
from jitkernels.native.threads import get_num_threads

if TYPE_CHECKING:
    from jitkernels.graph.fused import FusedNest
    from jitkernels.graph.whole import Picked


def measured(*nest: Any) -> Any:
    """The variant of a nest that measured best.

    On most machines no nest was measured, and what deals with measurements takes as long to import as code to make.
    """
    if not machine.has_timings("fused", get_num_threads()):
        return None
    from jitkernels.graph import fused

    return fused.measured(*nest)


def picked(
    graph: Graph, scope: Scope, config: JitConfig, variant: Mapping[str, Any] | None = None
) -> "Picked | None":
    """How a graph is compiled: as some variant says, or as measured best; None where nobody has measured any."""
    if config.backend != "native" or (
        variant is None and not machine.has_timings("program", get_num_threads())
    ):
        return None
    from jitkernels.graph import whole

    if variant is not None:
        return whole.Picked(whole.with_fields(config, variant), variant, measured)
    return whole.picked(graph, scope, config, measured)


def compiled(graph: Graph, scope: Scope, config: JitConfig, how: "Picked | None" = None) -> Any:
    """An object with ``run(arrays, values, out)``, which gives outputs and does the writes."""
    if config.backend == "native":
        return compilation.compiled(graph, scope, how.config if how else config, how or measured)
    return Interpreted(graph)


def nests(graph: Graph, scope: Scope, config: JitConfig) -> list["FusedNest"]:
    """The loop nests of a graph that can be measured by themselves."""
    from jitkernels.graph.fused import Collector

    found = Collector()
    compilation.compiled(graph, scope, config, found)
    return found.nests


class Interpreted:
    """A graph that NumPy computes node by node."""

    kernels = 0

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.launches = sum(node.operation != "input" for node in graph)

    def fits(self, _: Mapping[str, int]) -> bool:
        """Whether it takes no more memory than it may; nobody says what NumPy takes."""
        return True

    def run(
        self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None
    ) -> list[Any]:
        """Outputs, new arrays all; what is written to inputs is written when all is computed."""
        found = interpreter.run(self.graph, arrays, values)
        count = len(self.graph.outputs)
        results = [_own(one, found[:i], arrays) for i, one in enumerate(found[:count])]
        written = [_own(one, (), arrays) for one in found[count:]]
        for (target, _), one in zip(self.graph.writes, written, strict=True):
            arrays[target.options["index"]][...] = one
        if out is None:
            return results
        for target, one in zip(out, results, strict=True):
            target[...] = one
        return list(out)


def _own(array: Any, others: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """An array that shares memory with none of the others."""
    if array.base is not None or not array.flags.writeable:
        return array.copy()
    if any(array is one for one in (*others, *arrays)):
        return array.copy()
    return array
