"""Trace one call: run the function on proxies of its leaves, and build the graph of what it computes."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import Watch
from jitkernels.compiler.capture.control_flow.assumed_branch import MAX_ASSUMED_BRANCHES
from jitkernels.compiler.capture.control_flow.region_transaction import trace_entries
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.graph_breaks.break_sites import line_in
from jitkernels.compiler.capture.pytree.flatten import short_extent, strides_of
from jitkernels.compiler.capture.pytree.result_spec import ResultPlan, plan_result
from jitkernels.compiler.capture.pytree.unflatten import Unflattener
from jitkernels.compiler.capture.source_locations import placed
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Binding, Tracer, is_package_file, pop, push
from jitkernels.compiler.ir import builder, dim_bounds
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.regions import merge_variants, walk_nodes
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant, key_of_shape
from jitkernels.compiler.ir.unsupported import UnknownSizeError, reraise_caught_errors
from jitkernels.compiler.transforms.complex_planes import split_complex
from jitkernels.core import signal_exceptions
from jitkernels.errors import DerivativeError


class Trace(NamedTuple):
    """What a trace found: the graph, and the plan of the result; or the reason why there is none.

    `has_raised`: the function raised an exception, which the plain function may raise too. `line`: the line of the
    function where the trace ended, 0 if that is unknown.
    """

    tracer: Tracer
    graph: Graph | None = None
    plan: ResultPlan | None = None
    reason: str = ""
    has_raised: bool = False
    line: int = 0


def trace_call(
    structure: Any, leaves: Sequence[Any], *, exact: bool, winograd: bool, copies_dynamic: bool = False,
    may_assume: bool = False,
) -> Trace:  # fmt: skip
    """Trace the function and arguments of a `structure`; `exact`: extents are constants. Raises DerivativeError.

    `may_assume`: calls that take another side of a branch than the values in `leaves` do may bail out.
    """
    tracer = Tracer(winograd=winograd, copies_dynamic=copies_dynamic)
    tracer.assumable_branches = MAX_ASSUMED_BRANCHES if may_assume else 0
    callers: list[tuple[str, int]] = []
    push(tracer)
    try:
        proxies = make_proxies(tracer, leaves, exact=exact)
        unflattener = Unflattener(proxies)
        function, positional, named = unflattener.unflatten_call(structure)
        with Watch(unflattener.tables) as watch, reraise_caught_errors(is_package_file), tracer.failures.listening():
            result = function(*positional, **named)
        unflattener.check()
        if watch.refused:
            callers += watch.callers
            raise UnsupportedError(watch.refused)
        for generator in unflattener.generators:
            generator.write_back()
        graph, plan = plan_result(tracer, result, proxies)
        _guard_negative_extents(graph)
        return Trace(tracer, split_complex(merge_variants(graph) if tracer.has_flows else graph), plan)
    except DerivativeError:
        raise
    except UnsupportedError as error:
        return Trace(tracer, reason=str(placed(error)), line=_line_of(structure, error, callers))
    except BaseException as error:  # the plain function raises it again, or does what tracing could not
        if signal_exceptions.end_calls(error):
            raise
        reason = f"tracing raised {type(error).__name__}: {placed(error)}"
        return Trace(tracer, reason=reason, has_raised=True, line=_line_of(structure, error, callers))
    finally:
        pop()


trace_entries.add(trace_call.__code__)


def _line_of(structure: Any, error: BaseException, callers: Sequence[tuple[str, int]]) -> int:
    """The line of the traced function where an error came from; 0 for other callables than functions."""
    kind, *parts = structure[0]
    return line_in(parts[0], error, callers) if kind == "function" else 0


def _guard_negative_extents(graph: Graph) -> None:
    """Raise UnknownSizeError for negative extents, which NumPy rejects or treats as empty.

    Where the sign depends on the call, the comparison becomes a guard.
    """
    shapes = {key_of_shape(node.shape): node.shape for node in walk_nodes(graph)}
    for extent in itertools.chain.from_iterable(shapes.values()):
        if not is_loop_variant(extent) and extent < 0:
            raise UnknownSizeError(f"an array of a negative extent: {extent}")


def make_proxies(tracer: Tracer, leaves: Sequence[Any], *, exact: bool) -> list[Any]:
    """An array proxy or symint for each leaf, with symbolic extents and strides; with `exact`, extents are constants.

    Such code serves these sizes only.
    """
    tracer.leaves += leaves
    symbols: dict[int, Any] = {extent: extent for leaf in leaves if (extent := short_extent(leaf))}
    proxies: list[Any] = []
    for i, leaf in enumerate(leaves):
        if type(leaf) is not np.ndarray:
            kind = np.asarray(leaf).dtype.name
            node = Node("input", (), kind, (), {"index": i, "strides": ()})
            tracer.inputs.append(node)
            if type(leaf) is int:
                proxies.append(SymInt(tracer, leaf=i))
            else:
                weak = type(leaf) in (float, complex)
                proxies.append(Traced(tracer, View(Storage(node), ()), is_scalar=True, is_weak=weak))
            continue
        shape = [_extent(tracer, symbols, i, d) for d in range(leaf.ndim)]
        shape = [*map(int, shape)] if exact else shape
        is_c = leaf.flags.c_contiguous
        strides = builder.contiguous(shape) if is_c else _strides(tracer, i, leaf, shape)
        if is_c:
            dim_bounds.note_size(shape)
        node = Node("input", (), leaf.dtype.name, shape, {"index": i, "strides": strides})
        tracer.inputs.append(node)
        storage = Storage(node, i, is_c=True if is_c else None)
        storage.strides, storage.is_frozen = strides, not leaf.flags.writeable
        proxies.append(Traced(tracer, View(storage, shape)))
    if exact:  # the guards stay, but no extent refers to these symbols any more
        for binding in tracer.bindings:
            tracer.scope.values.pop(binding.symbol if binding.kind == "extent" else "", None)
    return proxies


def _extent(tracer: Tracer, symbols: dict[int, Any], leaf: int, dimension: int) -> Any:
    value = tracer.leaves[leaf].shape[dimension]
    if value < 2:
        return value
    if value not in symbols:
        name = f"n{len(symbols)}"
        symbols[value] = tracer.scope.symbol(name, value)
        tracer.bindings.append(Binding(name, leaf, "extent", dimension))
    return symbols[value]


def _strides(tracer: Tracer, leaf: int, array: Any, shape: Sequence[Any]) -> tuple[Any, ...]:
    if array.flags.f_contiguous:
        columns = builder.contiguous(shape[::-1])[::-1]
        return tuple(0 if extent == 1 else step for extent, step in zip(array.shape, columns, strict=True))
    result: list[Any] = []
    for dimension, pattern in enumerate(strides_of(array)):
        if pattern is not None:
            result.append(pattern)
            continue
        name = f"s{leaf}_{dimension}"
        result.append(tracer.scope.symbol(name, array.strides[dimension] // array.itemsize))
        tracer.bindings.append(Binding(name, leaf, "stride", dimension))
    return tuple(result)
