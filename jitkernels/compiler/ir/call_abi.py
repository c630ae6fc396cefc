"""What a compiled function takes from Python and gives back, and what is required of it."""

from collections.abc import Iterator

from jitkernels.graph.emit import objects
from jitkernels.graph.extents import Number, same
from jitkernels.native.layout import CONTIGUOUS, IN_FORTRAN_ORDER
from jitkernels.records import record


@record
class Argument:
    """An array that is given: its word in the frame, dtype, bytes of an element, shape, strides in elements.

    `contiguous`: it lies without gaps. `may_be_out`: a result may be the very same memory. `source`: the step that
    gives it, or, from 0 down by -1, which of the objects in the context. `number`: it is no array but a number of
    this type. `is_own`: a constant of the code that nobody else can reach: it is what it was made as, and the word of
    the context is where it lies.
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
    is_own: bool = False

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

    `kind`: the name of Python's type, if it is given back as a number of that, or "scalar" for one of NumPy's.
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
class Recipe:
    """How compiled code makes an object of Python's, of `parts`.

    ``held`` is an object of the context, ``input`` a leaf of the arguments, ``output`` a result, by the number
    `value`; ``extent`` an int. ``tuple`` and ``list`` have parts; so have ``dict``, whose keys are in the context
    from `value` on, ``named``, whose type is at `value`, and ``object``, whose type is there with the names of its
    attributes behind it. ``choice`` is one of a tuple at `value`, as the number says that the result `number` is, or
    else its part, if it has one.

    ``rows`` is a list of as many elements as the extent `value` says; ``grown`` one of which the result `number` has
    the end and the begin, turned round if `value`. Its part is what an element is: then ``output`` and the number of
    a choice are those at the element's place, and `like` is the name of Python's type, or "scalar" for NumPy's.
    """

    kind: str
    value: Number = 0
    parts: "tuple[Recipe, ...]" = ()
    number: int = 0
    like: str = ""

    def inputs(self) -> Iterator[int]:
        """The leaves that are given back."""
        if self.kind == "input":
            yield int(self.value)
        for part in self.parts:
            yield from part.inputs()


@record
class Rebuilt:
    """What is given back is put together, by a recipe if there is one, else by Python.

    Python makes it of a tuple: the results, then inputs, then values of symbols. `word`: of the context, where the
    callable is that takes the tuple, or from where on are objects of the recipe; None where the one input is given
    back itself.
    """

    word: int | None
    inputs: tuple[int, ...]
    symbols: tuple[str, ...]
    recipe: Recipe | None = None

    def given_back(self) -> set[int]:
        """The inputs of which there have to be objects."""
        return {*self.inputs, *(() if self.recipe is None else self.recipe.inputs())}


@record
class Reach:
    """How arguments are reached, and what is required of those that are numbers."""

    steps: tuple[objects.Step, ...]
    wholes: tuple[Whole, ...] = ()
    bounds: tuple[Bound, ...] = ()
