"""A graph made ready to run: segments of compiled nests, and between them what NumPy or a kernel computes."""

import ctypes
import functools
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.errors import WorkspaceError
from jitkernels.graph import cones, construct, extents, flows, interpreter, limits
from jitkernels.graph.arena import Arena
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import calls, interface, polls, programs
from jitkernels.graph.extents import Guard, Number
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.nests import Nest
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.products import Product
from jitkernels.graph.profile import Profile
from jitkernels.graph.reuse import memory_of
from jitkernels.native import arenas, floating_errors, later, load, vectorcall
from jitkernels.records import record

NEVER = 2**62
"""Work that there is none of: who calls Python keeps its lock."""
LINE = 64
"""Bytes of a line of the caches."""


class FullError(Exception):
    """Loops write more down than there is room for."""


@dataclass
class Segment:
    """Nests that run one after another as one compiled function.

    `polls`: Python may run meanwhile, as it asks for signals, or `calls_python`.
    """

    nests: list[Nest | Product | Flow | KernelCall | NumpyCall] = field(repr=False)
    source: programs.Fused
    work: Number
    cached: bool = True
    polls: bool = False
    calls_python: bool = False
    _code: Any = field(default=None, repr=False)
    _entry: Any = field(default=None, repr=False)

    def run(self, frame: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
        if self._entry is None:
            kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
            self._code = load.placed_of(self.source, cached=self.cached)
            self._entry = kind(self._code.address)
        status, raised = 0, None
        try:
            while (status := floating_errors.heard(self._entry, frame.ctypes.data)) == later.MISSING:
                later.bring_wanted()
        except SystemError as error:  # which ctypes makes of an exception that a loop ended with
            raised = error.__cause__ or error
        if raised is not None:  # not above, where that would be its context
            raise raised
        if status == polls.FULL:
            raise FullError
        if status == polls.REFUSED:
            raise IndexError("an index is out of bounds, or a number is none that Python's functions take")
        if status:
            raise WorkspaceError(vectorcall.NO_WORKSPACE)


@record
class Entry:
    """The function that Python calls begin with, and what it needs to know of the segment that it calls.

    `most`: the largest work that is not long, in the units in which it computes work.
    """

    source: programs.Fused
    segment: programs.Fused
    most: int


@dataclass
class Program:
    """A compiled graph. `words`: the frame's word of each array that is kept; `symbols`: those of the symbols.

    `reshaped`: inputs in whose memory nests find nodes that are them in other shapes.
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

    def empty(self, node: Node, value: Callable[[Number], int], memory: Any = None, begin: int = 0) -> Any:
        """An array for a kept node, whose dimensions lie in the node's order: a new one, or in some memory."""
        shape = tuple(map(value, node.shape))
        order = self.orders.get(id(node))
        if order is None:
            return np.ndarray(shape, node.dtype, memory, begin)
        inner: Any = np.ndarray([shape[i] for i in order], node.dtype, memory, begin)
        return inner.transpose(np.argsort(order))

    def fits(self, values: Mapping[str, int]) -> bool:
        """Whether it takes no more memory than it may, for some values of the symbols."""
        limit = self.arena.limit
        return limit is None or self.arena.places(limits.Values(values))[1] <= limit

    def _between(self, value: Callable[[Number], int]) -> dict[int, Any]:
        """New arrays between the steps, in one arena."""
        begins, total = self.arena.places(value)
        try:
            memory = aligned(total)
        except MemoryError:
            arenas.release()
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
        """Those of inputs, outputs, and what lies between, by the ids of nodes."""
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
        """Have a frame point to arrays that it does not point to yet."""
        for key, array in new.items():
            if key in self.words and isinstance(array, np.ndarray):
                frame[self.words[key]] = array.ctypes.data

    def _share(self, known: dict[int, Any]) -> dict[int, Any]:
        """Add what lies in the memory of others; gives what was added."""
        added: dict[int, Any] = {}
        for key, base in self.shared.items():
            memory = id(memory_of(base, self.shared))
            if key not in known and memory in known:
                known[key] = added[key] = known[memory]
        return added

    def bound(self, arrays: Sequence[Any], values: Mapping[str, int]) -> Callable[[], list[Any]]:
        """A call with these arrays, whose memory is found once where it is one segment; it gives the outputs."""
        if len(self.steps) != 1 or not isinstance(self.steps[0], Segment) or self.profile is not None:
            return lambda: self.run(arrays, values)
        value, segment, frame = limits.Values(values), self.steps[0], self._frame(values)
        own = {id(node) for node in self.made}
        out = [
            self.empty(
                node, value, aligned(value(extents.product(node.shape)) * np.dtype(node.dtype).itemsize)
            )
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

    def run(
        self, arrays: Sequence[Any], values: Mapping[str, int], out: Sequence[Any] | None = None
    ) -> list[Any]:
        """The outputs, for arrays of the inputs and values of all symbols; what the graph writes is written then.

        `out` are arrays to take the outputs, which overlap no input.
        """
        value = limits.Values(values)
        known = self._arrays(arrays, value, out)
        frame, new = self._frame(values), dict(known)
        taken = None
        if self.profile is not None:
            taken = self.profile.of(values)
            frame[self.profile.word] = taken.counters.ctypes.data
        for step in self.steps:
            if isinstance(step, Node):
                given = [known[id(one)] for one in step.inputs]
                began = perf_counter()
                found = interpreter.of_node(step, given, value)
                if taken is not None and self.profile is not None:
                    self.profile.by_numpy(taken, step, perf_counter() - began)
                if step.operation == "reshape" and (step in self.graph.outputs or self.graph.writes):
                    found = np.array(
                        found
                    )  # it may be a view of what belongs to the caller, or is written later
                if id(step) in known:
                    known[id(step)][...] = found
                else:
                    if isinstance(found, np.generic):
                        found = np.asarray(found)  # nests read memory
                    elif isinstance(found, np.ndarray) and found.ndim:
                        found = np.ascontiguousarray(found)
                    known[id(step)] = new[id(step)] = found
                continue
            self._point(frame, new)
            step.run(frame)
            new = self._share(known)
        if taken is not None and self.profile is not None:
            self.profile.done(taken, arrays)
        results = [known[id(node)] for node in self.graph.outputs]
        if out is not None:
            for array, result in zip(out, results, strict=True):
                if array is not None and array is not result:
                    np.copyto(array, result)
        return results

    def caller(
        self,
        guards: Sequence[Guard],
        sources: Sequence[tuple[int, str]],
        reach: interface.Reach,
        *,
        word: int,
        is_tuple: bool,
        rebuilt: interface.Rebuilt | None = None,
        kinds: Sequence[str] = (),
        own: Container[int] = (),
    ) -> "Entry | None":
        """The function that Python calls may begin with; None where there is work for Python.

        `sources` says of each input which step of `reach` gives it, and its type if it is a number (see
        `interface.Argument`); results are the outputs, in a tuple if `is_tuple`, or what is `rebuilt` of such a tuple;
        numbers of Python's where `kinds` has the names of their types. From `word` on, the context has the words of
        the segment. `own` are the inputs that are constants of the code, of which the context has the addresses.
        """
        steps = self.steps or [_nothing()]
        if len(steps) != 1 or not isinstance(steps[0], Segment) or self._writes_before_checks():
            return None
        given = {id(node) for node in self.graph.inputs}
        results = []
        for number, node in enumerate(self.graph.outputs):
            order = self.orders.get(id(node))
            if id(node) in given:
                return None
            size = np.dtype(node.dtype).itemsize
            told = kinds[number] if kinds else ""
            is_number = told in interface.NUMBERS or (told == "scalar" and rebuilt is not None)
            kind = told if is_number else ""
            results.append(interface.Result(self.words[id(node)], node.dtype, size, node.shape, order, kind))
        if len({one.word for one in results}) < len(results) or not (is_tuple or len(results) <= 1):
            return None
        segment = steps[0]
        arguments = [
            replace(self._argument(node, segment), source=source, number=number, is_own=i in own)
            for i, (node, (source, number)) in enumerate(zip(self.graph.inputs, sources, strict=True))
        ]
        if any(one.is_written and one.repeats for one in arguments):
            return None
        times, work, more = limits.parted(segment.work)
        caller = calls.Caller(
            arguments, results, self.arena, guards, self.symbols, len(self.words) + len(self.symbols) + 1, work, word,
            is_tuple, reach, rebuilt, segment.polls,
        )  # fmt: skip
        # A few instructions more are not felt here, and what takes LLVM longest is a great many branches.
        source = programs.fused("call", caller.text(), 64, vectorcall.externals(), level=0)
        most = NEVER if segment.calls_python else max((calls.LONG - more) // times, -NEVER)
        return Entry(source, segment.source, most)

    def _writes_before_checks(self) -> bool:
        """Whether arguments are written when all that NumPy may refuse is not looked at yet."""
        given = {id(node) for node in self.graph.inputs}
        nests = [nest for step in self.steps if isinstance(step, Segment) for nest in step.nests]
        written = False
        for nest in nests:
            targets = [store.target for store in nest.stores] if isinstance(nest, Nest) else [nest.node]
            if isinstance(nest, KernelCall | NumpyCall):
                targets = nest.items
            if isinstance(nest, NumpyCall) and written:
                return True
            if isinstance(nest, Flow):
                targets = [nest.node.inputs[place] for place in flows.changed(nest.node)]
                writes_here = any(id(memory_of(one, self.shared)) in given for one in targets)
                if flows.may_refuse(nest.node) and (written or writes_here):
                    return True
            if written and any(one in self.graph.checks for one in targets):
                return True
            written = written or any(id(memory_of(one, self.shared)) in given for one in targets)
        return False

    def _argument(self, node: Node, segment: "Segment") -> interface.Argument:
        strides = node.options.get("strides") or construct.contiguous(node.shape)
        whole = extents.key_of_shape(strides) == extents.key_of_shape(construct.contiguous(node.shape))
        nests = [nest for nest in segment.nests if isinstance(nest, Nest)]
        alone = len(segment.nests) == 1 and len(nests) == 1 and not nests[0].rows and not self.orders
        same_place = all(
            id(node) not in cone.places
            or (
                extents.key_of_shape(cone.root.shape) == extents.key_of_shape(node.shape)
                and list(cone.places[id(node)]) == [cones.key_of(cones.identity(node.ndim))]
            )
            for nest in nests
            for cone in nest.cones
        ) and not any(base is node for base in self.reshaped.values())
        size = np.dtype(node.dtype).itemsize
        return interface.Argument(
            self.words[id(node)],
            node.dtype,
            size,
            node.shape,
            tuple(strides),
            whole,
            whole and alone and same_place,
            is_written=any(target is node for target, _ in self.graph.writes),
        )

    @property
    def has_kernels(self) -> bool:
        """Whether there is anything in it but calls of NumPy."""
        steps = [one for step in self.steps for one in (step.nests if isinstance(step, Segment) else [step])]
        return not all(isinstance(one, NumpyCall | Node) for one in steps)


@functools.cache
def _nothing() -> Segment:
    """What is done where results are arguments and constants."""
    source = programs.fused("nothing", "define i64 @entry(ptr %frame) nounwind {\n  ret i64 0\n}\n", 64, ())
    return Segment([], source, 0)


def aligned(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Memory of so many bytes that begins where a line of the cache does."""
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size]
