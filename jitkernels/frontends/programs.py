"""What runs a traced graph: compiled code, or NumPy node by node (``JITKERNELS_BACKEND=interpreter``)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jitkernels import machine
from jitkernels.errors import NotUsableError
from jitkernels.graph import checks, compilation, interpreter
from jitkernels.graph.config import JitConfig
from jitkernels.graph.extents import Scope
from jitkernels.graph.ir import Graph
from jitkernels.native.threads import get_num_threads

if TYPE_CHECKING:
    from jitkernels.explanation import Explanation
    from jitkernels.graph.fused import FusedNest


def _measured(*nest: Any) -> Any:
    """The variant of a nest that measured best.

    On most machines no nest was measured, and what deals with measurements takes as long to import as code to make.
    """
    if not machine.has_timings("fused", get_num_threads()):
        return None
    from jitkernels.graph import fused

    return fused.measured(*nest)


def compiled(graph: Graph, scope: Scope, config: JitConfig) -> Any:
    """An object with ``run(arrays, values, out)``, which gives outputs and does the writes."""
    if config.backend == "native":
        made = compilation.compiled(graph, scope, config, _measured)
        if checks.picks_in(made.graph) >= checks.picks_in(graph):
            return made  # else numbers that NumPy would refuse might not be looked at
    return Interpreted(graph)


def nests(graph: Graph, scope: Scope, config: JitConfig) -> list["FusedNest"]:
    """The loop nests of a graph that can be measured by themselves."""
    from jitkernels.graph.fused import Collector

    found = Collector()
    compilation.compiled(graph, scope, config, found)
    return found.nests


def tuned(name: str, found: Any, config: JitConfig) -> "tuple[Explanation, ...]":
    """Measure each nest of some code, or of what a reason stands for. Raises NotUsableError where there is none."""
    from jitkernels.graph import fused
    from jitkernels.measuring import tune

    if isinstance(found, str) or found.graph is None or config.backend != "native":
        reason = found if isinstance(found, str) else found.reason or "the interpreter runs it"
        raise NotUsableError(f"{name} has no kernels: it is left to NumPy: {reason}")
    listed = nests(found.graph, found.scope, config)
    if not listed:
        raise NotUsableError(f"{name} has no kernel that can be measured by itself")
    return tuple(tune(fused.attr_of(nest, found.scope.values)) for nest in listed)


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
