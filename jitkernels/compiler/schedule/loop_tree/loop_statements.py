"""Statements and values of loop trees. Loops are numbers as in `Loops`, arrays and access maps those of the nest."""

from enum import Enum
from typing import Any

from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class LoadElement:
    """An element of an array. `indices`: computed indices, each with its stride."""

    array: StridedArray
    access_map: IndexMap
    indices: tuple[tuple["Value", Number], ...] = ()


@frozen_dataclass
class Literal:
    """A number of a dtype, or an extent."""

    number: Any
    dtype: str


@frozen_dataclass
class Iota:
    """The index of an element along an axis: a first one, and coefficients of loops."""

    start: Number
    steps: tuple[tuple[int, Number], ...]


@frozen_dataclass
class LocalVariable:
    """What `Let` or `ScratchLanes` names."""

    name: str


@frozen_dataclass
class Compute:
    """An elementwise operation, a cast, or a scan."""

    name: str
    operands: tuple["Value", ...]
    dtype: str


Value = LoadElement | Literal | Iota | LocalVariable | Compute


@frozen_dataclass
class Let:
    """Name a value that several statements of an iteration read."""

    name: str
    value: Value


@frozen_dataclass
class StoreElement:
    """Store an element. `adds`: to what is there; `is_scratch`: until the output itself is stored.

    `stream_bytes`: by streaming stores in arrays of so many bytes; 0 for never.
    """

    target: LoadElement
    value: Value
    adds: bool = False
    is_scratch: bool = False
    stream_bytes: int = 0


@frozen_dataclass
class ScratchLanes:
    """Accumulators of a reduction, by its kind: one for each of some lanes."""

    name: str
    kind: str
    dtype: str
    lanes: int = 1


class Combined(Enum):
    """What a reduction combines."""

    ELEMENT = "an element"
    LANES = "all lanes"
    BLOCKS = "the results of all blocks, in order"


@frozen_dataclass
class Reduce:
    """Accumulate a value, or combine accumulators (then `value` is None)."""

    name: str
    kind: str
    value: Value | None
    combined: Combined = Combined.ELEMENT


class PrefetchedPart(Enum):
    """What a prefetch is for."""

    LINES = "the next lines"
    ROW = "the next row"
    RUN = "later runs"


@frozen_dataclass
class Prefetch:
    """Prefetch every `lines`-th cache line of what comes next in an array; `writes`: for stores."""

    array: StridedArray
    ahead: PrefetchedPart = PrefetchedPart.LINES
    lines: int = 1
    writes: bool = False


class LoopKind(Enum):
    """How the iterations of a loop run."""

    SERIAL = "for"
    PARALLEL = "parallel for"
    VECTOR = "vector for"


class LoopPart(Enum):
    """Which iterations of a loop run: each part begins where the one before it ended."""

    WHOLE = "all"
    PEELED = "the iterations before the first aligned store"
    STEPS = "full steps"
    REST = "the rest"
    LAST = "a last vector, which overlaps the one before"
    STORED = "the element that was stored last"


class Direction(Enum):
    """The order of the iterations."""

    FORWARDS = "forwards"
    BACKWARDS = "backwards"
    ALTERNATING = "alternately forwards and backwards"


@frozen_dataclass
class For:
    """Iterations of a loop, `step` at a time; `loop` is None for chunks of the loop inside, or blocks of it.

    A step of 0 is a range of iterations for each thread, which the loops inside run.
    `lanes`: of a vector, of which a step has one or several; `is_masked`: lanes behind the end are off. `notes`: what
    else is known, in words.
    """

    loop: int | None
    kind: LoopKind
    extent: Number
    body: tuple["Statement", ...]
    step: int = 1
    lanes: int = 1
    part: LoopPart = LoopPart.WHOLE
    direction: Direction = Direction.FORWARDS
    is_masked: bool = False
    notes: tuple[str, ...] = ()


@frozen_dataclass
class Misaligned:
    """A test whether an array is misaligned, in loops of at least so many vectors or bytes; 0 for none such."""

    array: StridedArray
    vectors: int = 0
    stream_bytes: int = 0


@frozen_dataclass
class If:
    """Statements under a guard: the comparison of an extent with a limit, or a test of addresses."""

    guard: tuple[Number, str, int] | Misaligned
    body: tuple["Statement", ...]
    otherwise: tuple["Statement", ...] = ()


Statement = Let | StoreElement | ScratchLanes | Reduce | Prefetch | For | If
