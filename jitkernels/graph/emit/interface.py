"""What a compiled function takes from Python and gives back, and what is required of it."""

from jitkernels.graph.emit import objects
from jitkernels.graph.extents import Number
from jitkernels.records import record


@record
class Argument:
    """An array that is given: its word in the frame, dtype, bytes of an element, shape, strides in elements.

    `contiguous`: it lies without gaps. `may_be_out`: a result may be the very same memory. `source`: the step that
    gives it, or, from 0 down by -1, which of the objects in the context. `number`: it is no array but a number of
    this type.
    """

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    strides: tuple[Number, ...]
    contiguous: bool
    may_be_out: bool
    source: int = 0
    number: str = ""
    is_written: bool = False


@record
class Result:
    """An array that is given back; `fortran`: it lies in Fortran order."""

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    fortran: bool = False


@record
class Kept:
    """An array between nests."""

    word: int
    size: int
    shape: tuple[Number, ...]


@record
class Whole:
    """A symbol that is the value of an argument, or that with its sign changed. `input`: the number of the argument."""

    symbol: str
    input: int
    negated: bool


@record
class Bound:
    """What an argument that is a number has to be: ``truth == (argument <operation> bound)``; ``is`` compares bits."""

    input: int
    operation: str
    bound: float | int
    truth: bool


@record
class Rebuilt:
    """What is given back is what Python makes of a tuple: the results, then inputs, then values of symbols.

    `word`: of the context, where the callable is that takes the tuple.
    """

    word: int
    inputs: tuple[int, ...]
    symbols: tuple[str, ...]


@record
class Reach:
    """How arguments are reached, and what is required of those that are numbers."""

    steps: tuple[objects.Step, ...]
    wholes: tuple[Whole, ...] = ()
    bounds: tuple[Bound, ...] = ()
