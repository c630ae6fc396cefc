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
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.schedule.matmul_step import Product
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.errors import WorkspaceError
from jitkernels.runtime import errstate, vectorcall, workspace_allocator
from jitkernels.runtime.loading import lazy_link, loader

LINE = 64
"""Bytes of a cache line."""


class CapacityExceededError(Exception):
    """A tape or list of a loop needs more rows than it has room for."""


@dataclass
class Segment:
    """Loop nests that run one after another as one compiled function.

    `polls`: it polls for signals, so that Python code may run meanwhile; or it `calls_python`.
    """

    nests: list[Nest | Product | Flow | KernelCall | NumpyCall] = field(repr=False)
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
            self._code = loader.placed_of(self.source, cached=self.cached)
            self._entry = kind(self._code.address)
        status, raised = 0, None
        try:
            while (status := errstate.heard(self._entry, frame.ctypes.data)) == lazy_link.MISSING:
                lazy_link.bring_wanted()
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
class Program:
    """A compiled graph. `words`: the frame slot of each materialized array; `symbols`: those of the symbols.

    `raised`: kinds of floating-point errors of folded constants, whose flags each call raises; `reports_fp_errors`:
    floating-point flags of its other operations are reported. `reshaped`: inputs whose memory loop nests read as
    reshaped nodes.
    """

    graph: Graph = field(repr=False)
    config: JitConfig
    steps: list[Segment | Node] = field(default_factory=list, repr=False)
    words: dict[int, int] = field(default_factory=dict, repr=False)
    symbols: dict[str, int] = field(default_factory=dict, repr=False)
    made: list[Node] = field(default_factory=list, repr=False)
    orders: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)
    shared: dict[int, Node] = field(default_factory=dict, repr=False)
    reshaped: dict[int, Node] = field(default_factory=dict, repr=False)
    arena: Arena = field(default_factory=Arena, repr=False)
    profile: Profile | None = field(default=None, repr=False)
    raised: frozenset[str] = frozenset()
    reports_fp_errors: bool = True

    def empty(self, node: Node, value: Callable[[Number], int], memory: Any = None, begin: int = 0) -> Any:
        """An array for a materialized node in the node's memory order: a new one, or in `memory` from `begin` on."""
        shape = tuple(map(value, node.shape))
        order = self.orders.get(id(node))
        if order is None:
            return np.ndarray(shape, node.dtype, memory, begin)
        inner: Any = np.ndarray([shape[i] for i in order], node.dtype, memory, begin)
        return inner.transpose(np.argsort(order))

    def fits(self, values: Mapping[str, int]) -> bool:
        """Whether the arena stays within the memory limit for some values of the symbols."""
        limit = self.arena.limit
        return limit is None or self.arena.places(dim_bounds.Values(values))[1] <= limit

    def _between(self, value: Callable[[Number], int]) -> dict[int, Any]:
        """New arrays between the steps, in one arena."""
        begins, total = self.arena.places(value)
        try:
            memory = aligned(total)
        except MemoryError:
            workspace_allocator.release()
            memory = aligned(total)
        at = {buffer.word: begin for buffer, begin in zip(self.arena.buffers, begins, strict=True)}
        return {
            id(node): self.empty(node, value, memory, at[self.words[id(node)]])
            for node in self.made
            if self.words[id(node)] in at
        }

    def _arrays(
        self, arrays: Sequence[Any], value: Callable[[Number], int], out: Sequence[Any] | None = None
    ) -> dict[int, Any]:
        """The arrays of inputs, outputs and intermediates, by the ids of nodes."""
        known: dict[int, Any] = {
            id(node): array if isinstance(array, np.ndarray) else np.asarray(array, node.dtype)
            for node, array in zip(self.graph.inputs, arrays, strict=True)
        }
        if out is not None:
            known |= {
                id(node): array
                for node, array in zip(self.graph.outputs, out, strict=True)
                if id(node) not in known and array is not None
            }
        known |= self._between(value)
        for node in self.made:
            if id(node) not in known:
                known[id(node)] = self.empty(node, value)
        return known

    def _frame(self, values: Mapping[str, int]) -> "np.ndarray[Any, np.dtype[np.int64]]":
        frame = np.zeros(len(self.words) + len(self.symbols) + 2, np.int64)
        for name, word in self.symbols.items():
            frame[word] = values[name]
        return frame

    def _point(self, frame: "np.ndarray[Any, np.dtype[np.int64]]", new: Mapping[int, Any]) -> None:
        """Store the addresses of new arrays to the frame."""
        for key, array in new.items():
            if key in self.words and isinstance(array, np.ndarray):
                frame[self.words[key]] = array.ctypes.data

    def _share(self, known: dict[int, Any]) -> dict[int, Any]:
        """Add nodes that alias the memory of others; return what was added."""
        added: dict[int, Any] = {}
        for key, base in self.shared.items():
            memory = id(memory_of(base, self.shared))
            if key not in known and memory in known:
                known[key] = added[key] = known[memory]
        return added

    def bound(self, arrays: Sequence[Any], values: Mapping[str, int]) -> Callable[[], list[Any]]:
        """A call with these arrays, which sets up memory once if the program is one segment; it returns the outputs."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], Segment) or self.profile is not None:
            return lambda: self.run(arrays, values)
        value, segment, frame = dim_bounds.Values(values), self.steps[0], self._frame(values)
        own = {id(node) for node in self.made}
        out = [
            self.empty(node, value, aligned(value(symbolic_dims.product(node.shape)) * np.dtype(node.dtype).itemsize))
            if id(node) in own
            else None
            for node in self.graph.outputs
        ]
        known = self._arrays(arrays, value, out)
        self._point(frame, known)
        self._share(known)

        def call() -> list[Any]:
            segment.run(frame)
            return [known[id(node)] for node in self.graph.outputs]

        return call

    def run(self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None) -> list[Any]:
        """The outputs, for arrays of the inputs and values of all symbols; it also does the graph's writes.

        `out`: arrays for the outputs, which overlap no input.
        """
        value = dim_bounds.Values(values)
        known = self._arrays(arrays, value, out)
        frame, new = self._frame(values), dict(known)
        times = None
        if self.profile is not None:
            times = self.profile.of(values)
            frame[self.profile.word] = times.counters.ctypes.data
        for step in self.steps:
            if isinstance(step, Node):
                operands = [known[id(operand)] for operand in step.inputs]
                began = perf_counter()
                array_of_step = interpreter.of_node(step, operands, value)
                if times is not None and self.profile is not None:
                    self.profile.by_numpy(times, step, perf_counter() - began)
                if step.operation == "reshape" and (step in self.graph.outputs or self.graph.writes):
                    array_of_step = np.array(
                        array_of_step
                    )  # a view may alias an array of the caller, or one that a later step writes
                if id(step) in known:
                    known[id(step)][...] = array_of_step
                else:
                    if isinstance(array_of_step, np.generic):
                        array_of_step = np.asarray(array_of_step)  # loop nests read memory
                    elif isinstance(array_of_step, np.ndarray) and array_of_step.ndim:
                        array_of_step = np.ascontiguousarray(array_of_step)
                    known[id(step)] = new[id(step)] = array_of_step
                continue
            self._point(frame, new)
            step.run(frame)
            new = self._share(known)
        if times is not None and self.profile is not None:
            self.profile.done(times, arrays)
        results = [known[id(node)] for node in self.graph.outputs]
        if out is not None:
            for array, result in zip(out, results, strict=True):
                if array is not None and array is not result:
                    np.copyto(array, result)
        return results

    @property
    def has_kernels(self) -> bool:
        """Whether it contains anything but calls of NumPy."""
        steps = [part for step in self.steps for part in (step.nests if isinstance(step, Segment) else [step])]
        return not all(isinstance(part, NumpyCall | Node) for part in steps)


@functools.cache
def nothing() -> Segment:
    """The segment of a program whose results are arguments and constants."""
    source = module_text.fused("nothing", "define i64 @entry(ptr %frame) nounwind {\n  ret i64 0\n}\n", 64, ())
    return Segment([], source, 0)


def aligned(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """`size` bytes of memory aligned to a cache line."""
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size]
