"""A compiled graph: segments of native loop nests, and between them steps that NumPy or a kernel computes."""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.compiler.codegen.control_flow import signal_polls
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.ir import dim_bounds, interpreter, symbolic_dims
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.lowering.profile_counters import Profile
from jitkernels.compiler.memory.arena import Arena
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.core.aligned_memory import aligned_memory
from jitkernels.errors import WorkspaceError
from jitkernels.runtime import errstate, vectorcall, workspace_allocator
from jitkernels.runtime.loading import lazy_link, loader


class CapacityExceededError(Exception):
    """A tape or list of a loop needs more rows than it has room for."""


@dataclass
class Segment:
    """Loop nests that run one after another as one compiled function.

    `polls`: it polls for signals, so that Python code may run meanwhile; or it `calls_python`.
    """

    nests: list[LoopNest | MatMulStep | Flow | KernelCall | NumpyCall] = field(repr=False)
    source: module_text.Fused
    work: Number
    cached: bool = True
    polls: bool = False
    calls_python: bool = False
    _code: Any = field(default=None, repr=False)
    _entry: Any = field(default=None, repr=False)

    def run(self, frame: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
        if self._entry is None:
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._code = loader.load(self.source, cached=self.cached)
            self._entry = kind(self._code.address)
        status, raised = 0, None
        try:
            while (status := errstate.run_collecting(self._entry, frame.ctypes.data)) == lazy_link.MISSING:
                lazy_link.build_requested()
        except SystemError as error:  # ctypes wraps the exception that ended a loop
            raised = error.__cause__ or error
        if raised is not None:  # outside of the handler, which would become its context
            raise raised
        if status == signal_polls.FULL:
            raise CapacityExceededError
        if status == signal_polls.REFUSED:
            raise IndexError("an index is out of bounds, or Python's function raises for a number")
        if status:
            raise WorkspaceError(vectorcall.NO_WORKSPACE)


@dataclass
class CompiledProgram:
    """A compiled graph. `words`: the frame slot of each materialized array; `symbols`: those of the symbols.

    `allocated`: the arrays whose memory the program provides. `raised`: kinds of floating-point errors of folded
    constants, whose flags each call raises; `reports_fp_errors`: floating-point flags of its other operations are
    reported. `reshaped`: inputs whose memory loop nests read as reshaped nodes. `loops`: those of each
    nest by its id, where they are to be shown.
    """

    graph: Graph = field(repr=False)
    config: JitConfig
    steps: list[Segment | Node] = field(default_factory=list, repr=False)
    words: dict[Node, int] = field(default_factory=dict, repr=False)
    symbols: dict[str, int] = field(default_factory=dict, repr=False)
    allocated: list[Node] = field(default_factory=list, repr=False)
    orders: dict[Node, tuple[int, ...]] = field(default_factory=dict, repr=False)
    shared: dict[Node, Node] = field(default_factory=dict, repr=False)
    loops: dict[int, Loops] | None = field(default=None, repr=False)
    reshaped: dict[Node, Node] = field(default_factory=dict, repr=False)
    arena: Arena = field(default_factory=Arena, repr=False)
    profile: Profile | None = field(default=None, repr=False)
    raised: frozenset[str] = frozenset()
    reports_fp_errors: bool = True

    def place_symbols(self) -> None:
        """Assign the frame slots behind those of arrays to the symbols."""
        self.symbols = {name: len(self.words) + i for i, name in enumerate(self.symbols)}

    def empty(self, node: Node, value: Callable[[Number], int], memory: Any = None, begin: int = 0) -> Any:
        """An array for a materialized node in the node's memory order: a new one, or in `memory` from `begin` on."""
        shape = tuple(map(value, node.shape))
        order = self.orders.get(node)
        if order is None:
            return np.ndarray(shape, node.dtype, memory, begin)
        inner: Any = np.ndarray([shape[i] for i in order], node.dtype, memory, begin)
        return inner.transpose(np.argsort(order))

    def fits(self, values: Mapping[str, int]) -> bool:
        """Whether the arena stays within the memory limit for some values of the symbols."""
        limit = self.arena.limit
        return limit is None or self.arena.offsets(dim_bounds.SymbolValues(values))[1] <= limit

    def _memory_between(self, value: Callable[[Number], int]) -> Any:
        """New memory for the arena."""
        total = self.arena.offsets(value)[1]
        try:
            return aligned_memory(total)
        except MemoryError:
            workspace_allocator.release()
            return aligned_memory(total)

    def _between(self, value: Callable[[Number], int], memory: Any) -> dict[Node, Any]:
        """New arrays between the steps, in one arena."""
        begins, _ = self.arena.offsets(value)
        at = {buffer.word: begin for buffer, begin in zip(self.arena.buffers, begins, strict=True)}
        return {
            node: self.empty(node, value, memory, at[self.words[node]])
            for node in self.allocated
            if self.words[node] in at
        }

    def _arrays(
        self,
        arrays: Sequence[Any],
        value: Callable[[Number], int],
        out: Sequence[Any] | None = None,
        memory: Any = None,
    ) -> dict[Node, Any]:
        """The arrays of inputs, outputs and intermediates, the last in `memory` if it is given."""
        known: dict[Node, Any] = {
            node: array if isinstance(array, np.ndarray) else np.asarray(array, node.dtype)
            for node, array in zip(self.graph.inputs, arrays, strict=True)
        }
        if out is not None:
            known |= {
                node: array
                for node, array in zip(self.graph.outputs, out, strict=True)
                if node not in known and array is not None
            }
        known |= self._between(value, self._memory_between(value) if memory is None else memory)
        for node in self.allocated:
            if node not in known:
                known[node] = self.empty(node, value)
        return known

    def _frame(self, values: Mapping[str, int]) -> "np.ndarray[Any, np.dtype[np.int64]]":
        frame = np.zeros(len(self.words) + len(self.symbols) + 2, np.int64)
        for name, word in self.symbols.items():
            frame[word] = values[name]
        return frame

    def _point(self, frame: "np.ndarray[Any, np.dtype[np.int64]]", new: Mapping[Node, Any]) -> None:
        """Store the addresses of new arrays to the frame."""
        for node, array in new.items():
            if node in self.words and isinstance(array, np.ndarray):
                frame[self.words[node]] = array.ctypes.data

    def _share(self, known: dict[Node, Any]) -> dict[Node, Any]:
        """Add nodes that alias the memory of others; return what was added."""
        added: dict[Node, Any] = {}
        for node, base in self.shared.items():
            memory = memory_of(base, self.shared)
            if node not in known and memory in known:
                known[node] = added[node] = known[memory]
        return added

    def bound(self, arrays: Sequence[Any], values: Mapping[str, int]) -> Callable[[], list[Any]]:
        """A call with these arrays, which sets up memory once if the program is one segment; it returns the outputs."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], Segment) or self.profile is not None:
            return lambda: self.run(arrays, values)
        value, segment, frame = dim_bounds.SymbolValues(values), self.steps[0], self._frame(values)
        own = set(self.allocated)
        out = [
            self.empty(
                node, value, aligned_memory(value(symbolic_dims.product(node.shape)) * np.dtype(node.dtype).itemsize)
            )
            if node in own
            else None
            for node in self.graph.outputs
        ]
        known = self._arrays(arrays, value, out)
        self._point(frame, known)
        self._share(known)

        def call() -> list[Any]:
            segment.run(frame)
            return [known[node] for node in self.graph.outputs]

        return call

    def run(self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None) -> list[Any]:
        """The outputs, for arrays of the inputs and values of all symbols; it also does the graph's writes.

        `out`: arrays for the outputs, which overlap no input.
        """
        value = dim_bounds.SymbolValues(values)
        counters, memory = None, None
        if self.profile is not None:
            counters = self.profile.of(values)
            memory = counters.memory.pop() if counters.memory else self._memory_between(value)
        known = self._arrays(arrays, value, out, memory)
        frame, new = self._frame(values), dict(known)
        if counters is not None and self.profile is not None:
            frame[self.profile.word] = counters.counters.ctypes.data
        for step in self.steps:
            if isinstance(step, Node):
                began = perf_counter()
                result = interpreter.of_node(step, [known[operand] for operand in step.inputs], value)
                if counters is not None and self.profile is not None:
                    self.profile.by_numpy(counters, step, perf_counter() - began)
                self._keep(step, result, known, new)
            else:
                self._point(frame, new)
                step.run(frame)
                new = self._share(known)
        if counters is not None and self.profile is not None:
            self.profile.done(counters, arrays, memory)
        results = [known[node] for node in self.graph.outputs]
        for array, result in zip(out, results, strict=True) if out is not None else ():
            if array is not None and array is not result:
                np.copyto(array, result)
        return results

    def _keep(self, node: Node, result: Any, known: dict[Node, Any], new: dict[Node, Any]) -> None:
        """Store what NumPy computed for a node to its array, or let it be the array."""
        if node.operation == "reshape" and (node in self.graph.outputs or self.graph.writes):
            result = np.array(result)  # a view may alias an array of the caller, or one that a later step writes
        if node in known:
            known[node][...] = result
            return
        if isinstance(result, np.generic):
            result = np.asarray(result)  # loop nests read memory
        elif isinstance(result, np.ndarray) and result.ndim:
            result = np.ascontiguousarray(result)
        known[node] = new[node] = result

    @property
    def has_kernels(self) -> bool:
        """Whether it contains anything but calls of NumPy."""
        steps = [part for step in self.steps for part in (step.nests if isinstance(step, Segment) else [step])]
        return not all(isinstance(part, NumpyCall | Node) for part in steps)


@functools.cache
def empty_segment() -> Segment:
    """The segment of a program whose results are arguments and constants."""
    source = module_text.module_source(
        "empty_segment", "define i64 @entry(ptr %frame) nounwind {\n  ret i64 0\n}\n", 64, ()
    )
    return Segment([], source, 0)
