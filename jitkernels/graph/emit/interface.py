"""What a compiled function takes from Python and gives back, and what is required of it."""

from jitkernels.graph.emit import objects
from jitkernels.graph.extents import Number, same
from jitkernels.native.layout import CONTIGUOUS, IN_FORTRAN_ORDER
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

    @property
    def repeats(self) -> bool:
        """Whether the same memory is several elements, as in what was broadcast."""
        return any(
            same(step, 0) and not same(extent, 1)
            for extent, step in zip(self.shape, self.strides, strict=True)
        )


NUMBERS = {"int": "int64", "float": "float64", "bool": "bool"}
"""By the names of Python's types, the dtypes of which compiled calls make objects of them."""


@record
class Result:
    """An array that is given back; `order`: its dimensions from the outermost in memory on, None for C order.

    `kind`: the name of Python's type, if it is given back as a number of that.
    """

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    order: tuple[int, ...] | None = None
    kind: str = ""

    @property
    def fortran(self) -> bool:
        """Whether it lies in Fortran order."""
        return self.order == (*reversed(range(len(self.shape))),)

    @property
    def flags(self) -> int:
        """NumPy's bits of how it lies: dimensions of one element lie as any order has them."""
        wide = [i for i in self.order or range(len(self.shape)) if not same(self.shape[i], 1)]
        in_rows, in_columns = wide == sorted(wide), wide == sorted(wide, reverse=True)
        return CONTIGUOUS * in_rows | IN_FORTRAN_ORDER * in_columns


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

    `word`: of the context, where the callable is that takes the tuple; None where the one input is given back itself.
    """

    word: int | None
    inputs: tuple[int, ...]
    symbols: tuple[str, ...]


@record
class Reach:
    """How arguments are reached, and what is required of those that are numbers."""

    steps: tuple[objects.Step, ...]
    wholes: tuple[Whole, ...] = ()
    bounds: tuple[Bound, ...] = ()
