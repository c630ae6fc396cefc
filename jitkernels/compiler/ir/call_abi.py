"""The ABI of a compiled function: how it reaches its arguments, its runtime guards, and how it builds its results."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Self

from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime.abi_layout import CONTIGUOUS, IN_FORTRAN_ORDER

if TYPE_CHECKING:
    import numpy as np


class AccessStep(NamedTuple):
    """One access step from the object of step `of`.

    `number`: which argument or part, or a count; `word`: a slot of the context.

    ``global`` reads a name from a dict of the context. ``cell`` reads a closure cell of the context, ``content``
    another one. ``argument`` is an argument, ``item`` an element of a tuple, ``element`` one of a list, ``value`` the
    next value of a dict by its key, ``attribute`` an attribute by name, ``method`` the function of a method by name,
    ``entry`` is the value of an object in a dict of the context, or what the callable behind that returns;
    ``part`` a field of an object by offset. ``held`` is an object of the context. ``type``, ``size``, ``same`` and
    ``equal`` guard a property of an object, ``alike`` that it is that of step `number`, ``absent`` that it has no
    attribute of a name.

    ``bound`` guards the bindings of a dict, a tuple of triples in the context: a name, its value (the dict itself for
    unbound), and the value again if an equal object of the type will do. ``unchanged`` does the same by the version of
    the dict; the slot behind the tuple holds the last version.
    """

    kind: str
    of: int = 0
    number: int = 0
    word: int = 0


class FieldStep(int):
    """The access step of a structured array, or of a record, as that of a field: `offset` bytes behind each record.

    `itemsize`: bytes of a record. `is_record`: the object is a ``numpy.void``.
    """

    offset: int
    itemsize: int
    is_record: bool

    def __new__(cls, step: int, offset: int, itemsize: int, is_record: bool) -> Self:
        result = super().__new__(cls, step)
        result.offset, result.itemsize, result.is_record = offset, itemsize, is_record
        return result


@frozen_dataclass
class ArrayArgument:
    """An array argument: its frame slot `word`, dtype, itemsize, shape, and strides in elements.

    `contiguous`: it has no gaps. `may_be_out`: a result may use the same memory. `source`: the step that reaches it,
    or, from -1 downwards, which object of the context. `number`: it is a scalar of this Python type, not an array.
    `is_own`: a constant of the code that nobody else can reach; the slot of the context holds its address. `field`: the
    same step for a field of a structured array, whose dtype is known.
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
    field: FieldStep | None = None

    @property
    def repeats(self) -> bool:
        """Whether several elements share memory, as in broadcast arrays."""
        return any(same(step, 0) and not same(extent, 1) for extent, step in zip(self.shape, self.strides, strict=True))


NUMBERS = {"int": "int64", "float": "float64", "complex": "complex128", "bool": "bool"}
"""By the names of Python's number types, the dtypes that compiled calls convert to objects of them."""


@frozen_dataclass
class ResultArray:
    """A result array; `order`: its dimensions from the outermost in memory to the innermost, None for C order.

    `kind`: the name of Python's number type if it is returned as one, or "scalar" for a NumPy scalar.
    """

    word: int
    dtype: str
    size: int
    shape: tuple[Number, ...]
    order: tuple[int, ...] | None = None
    kind: str = ""

    @property
    def fortran(self) -> bool:
        """Whether it is in Fortran order."""
        return self.order == (*reversed(range(len(self.shape))),)

    @property
    def flags(self) -> int:
        """NumPy's contiguity flags: dimensions of one element fit any order."""
        wide = [i for i in self.order or range(len(self.shape)) if not same(self.shape[i], 1)]
        in_rows, in_columns = wide == sorted(wide), wide == sorted(wide, reverse=True)
        return CONTIGUOUS * in_rows | IN_FORTRAN_ORDER * in_columns


@frozen_dataclass
class ScalarSymbol:
    """A symbol whose value is that of a scalar argument, or its negation. `input`: the index of the argument."""

    symbol: str
    input: int
    negated: bool


@frozen_dataclass
class Bound:
    """A guard of a scalar argument: ``truth == (argument <operation> bound)``; ``is`` compares bits."""

    input: int
    operation: str
    bound: "float | int | np.generic"
    truth: bool


@frozen_dataclass
class Recipe:
    """How compiled code builds a Python object from `parts`.

    ``held`` is an object of the context, ``input`` a leaf of the arguments, ``output`` a result, by the number `value`;
    ``extent`` is an int. ``tuple`` and ``list`` have parts; so have ``dict``, whose keys are in the context from
    `value` on, ``named``, whose type is at `value`, and ``object``, whose type is at `value` and whose attribute names
    follow. ``choice`` selects one of a tuple at `value` by result `number`, or else its part, if it has one.

    ``rows`` is a list of as many elements as the extent `value`; ``grown`` a list of which result `number` holds end
    and begin, reversed if `value`. Its part describes an element: then ``output`` and the number of a choice are those
    at the element's index, and `like` is the name of Python's type, or "scalar" for NumPy's.
    """

    kind: str
    value: Number = 0
    parts: "tuple[Recipe, ...]" = ()
    number: int = 0
    like: str = ""

    def inputs(self) -> Iterator[int]:
        """The argument leaves that the object contains."""
        if self.kind == "input":
            yield int(self.value)
        for part in self.parts:
            yield from part.inputs()


@frozen_dataclass
class Rebuilt:
    """How the returned object is built: by compiled code if there is a `recipe`, else by Python.

    Python builds it from a tuple: the results, then inputs, then values of symbols. `word`: the context slot of the
    callable that takes the tuple, or of the first object of the recipe; None where the result is the one input itself.
    """

    word: int | None
    inputs: tuple[int, ...]
    symbols: tuple[str, ...]
    recipe: Recipe | None = None

    def given_back(self) -> set[int]:
        """The inputs whose objects the call returns."""
        return {*self.inputs, *(() if self.recipe is None else self.recipe.inputs())}


@frozen_dataclass
class Reach:
    """The steps that reach the arguments, the guards of scalar arguments, and the steps that reach locks to hold."""

    steps: tuple[AccessStep, ...]
    wholes: tuple[ScalarSymbol, ...] = ()
    bounds: tuple[Bound, ...] = ()
    locks: tuple[int, ...] = ()
