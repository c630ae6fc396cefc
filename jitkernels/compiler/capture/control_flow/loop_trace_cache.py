"""Cache of loop traces: a loop nest's inner loops start from the signature of the previous trace of the outer body.

Traces of the outer body use ever more general values, so what an inner loop carries in one of them it carries in those
that follow. Without the cache, nested loops would be traced twice per depth. Cached bounds are assumptions only; each
trace verifies them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from jitkernels.compiler.capture.control_flow.loop_state import Kind
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import serial
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant

MAX_TRACED_ITERATIONS = 4000
"""Loop bodies that one function's trace may trace in all: some seconds."""


class LoopSignature(NamedTuple):
    """What a loop carries: kinds of variables, bounds of ints, storages, and slots rebound to other arrays."""

    kinds: tuple[Kind, ...]
    bounds: dict[int, Any]
    storages: tuple[Storage, ...]
    rebound: tuple[int, ...]
    is_owner: tuple[bool, ...]


@dataclass
class EnclosingLoop:
    """A loop that is being traced: serial numbers of its start and current iteration, and its number of inner loops."""

    start_serial: int
    iteration_serial: int
    inner: int = 0


class LoopPosition:
    """The position of a loop in a trace: the enclosing loops, and the number of loops before it in their bodies."""

    def __init__(self, tracer: Tracer, line: int, names: tuple[str, ...]) -> None:
        self.tracer = tracer
        self.start_serial = serial()
        if not tracer.enclosing_loops:
            tracer.enclosing_loops.append(EnclosingLoop(0, 0))
        tracer.enclosing_loops[-1].inner += 1
        self.path = (*(loop.inner for loop in tracer.enclosing_loops), line, names)

    def __enter__(self) -> Self:
        """Begin the trace of one iteration."""
        self.tracer.traced_iterations += 1
        if self.tracer.traced_iterations > MAX_TRACED_ITERATIONS:
            raise UnsupportedError("nested loops whose variables change their types or bounds with each iteration")
        self.tracer.enclosing_loops.append(EnclosingLoop(self.start_serial, serial()))
        return self

    def __exit__(self, *_: object) -> None:
        self.tracer.enclosing_loops.pop()

    def recall(self) -> LoopSignature | None:
        """The signature of an earlier trace of this loop, if there was one."""
        signature: LoopSignature | None = self.tracer.loop_signatures.get(self.path)
        if signature is None:
            return None
        return signature._replace(storages=tuple(filter(self._is_alive, signature.storages)))

    def _is_alive(self, storage: Storage) -> bool:
        """Whether a storage survived: storages of iterations that were rolled back do not exist any more."""
        return not any(loop.start_serial < storage.born < loop.iteration_serial for loop in self.tracer.enclosing_loops)

    def remember(self, signature: LoopSignature) -> None:
        """Store the signature for the next trace of the enclosing loop's body."""
        fixed = {slot: ends for slot, ends in signature.bounds.items() if not any(map(is_loop_variant, ends))}
        self.tracer.loop_signatures[self.path] = signature._replace(bounds=fixed)
