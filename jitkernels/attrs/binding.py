"""Everyday calls bound to rows: from what a user passes to the fields, the arrays and the result shapes of a kernel.

All of it follows from the arrays that a row declares. This is the plain Python of it, which raises every error and
serves whatever the compiled dispatcher (`jitkernels.native.dispatch`) leaves to it; both follow the same rules:

* inputs without a dtype of their own are taken as float32 if that holds them all, else as float64; integers and
  booleans count as float64 beside nothing narrower, Python numbers take the dtype of the arrays;
* leading dimensions (``*rows``) broadcast against each other; all other extents must agree;
* ``axis`` is moved to the end, and back in the results; a transposed matrix is taken as it lies.
"""

import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.errors import (
    ArgumentError,
    ArgumentTypeError,
    DataIndexError,
    RegistrationError,
    WorkspaceError,
    shown,
)
from jitkernels.signature import AnyArray, Argument, Array

if TYPE_CHECKING:
    from jitkernels.attrs.base import KernelAttr

AXIS = "axis"
WEAK = (bool, int, float)
"""Python's numbers, which have no dtype of their own."""


@dataclass(frozen=True)
class Call:
    """An everyday call in terms of a kernel: its attr, its input arrays, and what the caller gets back.

    `shapes` are the shapes of the results as the caller sees them, in the memory order of the kernel's
    outputs. `finish`, if given, turns a result of that shape into the caller's (a view with axes moved).
    """

    attr: "KernelAttr"
    inputs: Sequence[AnyArray]
    shapes: Sequence[tuple[int, ...]]
    finish: Callable[[AnyArray], AnyArray] | None = None


def inputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call is given."""
    return [argument for argument in row.arrays if argument.role == "in"]


def outputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call gives back."""
    return [argument for argument in row.arrays if argument.role == "out"]


def is_everyday(row: "type[KernelAttr]") -> bool:
    """Whether the inputs tell all extents, so that a call needs nothing but them."""
    told = {symbol for argument in inputs_of(row) for extent in argument.extents for symbol in extent.symbols}
    wanted = {symbol for a in outputs_of(row) for extent in a.extents for symbol in extent.symbols}
    fixed = {name for name, field in row.known_fields().items() if field.kind == "int"}
    return bool(row.arrays) and wanted | fixed <= told


def parameters(row: "type[KernelAttr]") -> inspect.Signature:
    """Arrays by name, those that may be missing with the default None, then options with theirs."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [
        inspect.Parameter(a.name, kind, default=inspect.Parameter.empty if a.when is None else None)
        for a in inputs_of(row)
    ]
    defaults = {AXIS: -1} | {name: getattr(row, name, None) for name in row.known_fields()}
    found += [inspect.Parameter(name, kind, default=defaults[name]) for name in row.options]
    return inspect.Signature(found)


def check_declaration(row: "type[KernelAttr]") -> None:
    """Raise RegistrationError for arrays and options that do not fit the fields of a row."""
    fields = row.known_fields()

    def wanted(what: str, name: str, kind: str) -> None:
        if name not in fields or fields[name].kind != kind:
            raise RegistrationError(
                f"{row.__name__}: {what}: expected the name of a field of type {kind}, got {name!r}"
            )

    names = [argument.name for argument in row.arrays]
    if len(names) != len(set(names)):
        raise RegistrationError(f"{row.__name__}: arrays: expected different names, got {', '.join(names)}")
    for argument in row.arrays:
        label = f"array {argument.name}"
        for extent in argument.extents:
            for symbol in extent.symbols:
                wanted(label, symbol, "int")
        for flag in (argument.when, argument.turned):
            if flag is not None:
                wanted(label, flag, "bool")
        if argument.read is not None:
            wanted(label, argument.read, "float")
        if argument.dtype is None:
            wanted(label, "dtype", "dtype")
        if argument.picks is not None:
            _check_picks(row, argument)
    for name in row.floats:
        wanted("floats", name, "float")
    for name in row.options:
        if name != AXIS and name not in fields:
            raise RegistrationError(f"{row.__name__}: options: expected fields or 'axis', got {name!r}")


def _check_picks(row: "type[KernelAttr]", argument: Argument) -> None:
    """Raise RegistrationError unless the numbers of an array can name rows of the other that it picks from."""
    picked = [a for a in inputs_of(row) if a.name == argument.picks and a is not argument]
    rows = picked[0].extents[0] if picked else None
    uses = [e for a in row.arrays for e in a.extents if rows and set(rows.symbols) & set(e.symbols)]
    plain = rows is not None and rows.is_plain and len(uses) == 1
    if argument.dtype is None or not plain or any(e.spread for a in (argument, *picked) for e in a.extents):
        raise RegistrationError(
            f"{row.__name__}: array {argument.name}: picks: expected the name of an input whose first extent is a "
            "field that no other extent has, integers to name its rows, and no leading dimensions, got "
            f"{argument.picks!r}"
        )


def bound(row: "type[KernelAttr]", arguments: Sequence[Any], named: dict[str, Any]) -> Call:
    """The call of a kernel that an everyday call stands for."""
    kernel = row.kernel_type.name.lower()
    try:
        given = row.parameters().bind(*arguments, **named)
    except TypeError as error:
        raise ArgumentTypeError(f"{kernel}{row.parameters()}: {error}") from None
    given.apply_defaults()
    values = given.arguments
    present = _present(kernel, row, values)
    arrays, dtype = _arrays(kernel, present, values)
    options = {name: values[name] for name in row.options if name != AXIS}
    flags = {a.when: a in present for a in inputs_of(row) if a.when is not None}
    moved, finish = _moved(kernel, row, arrays, values)
    lead = _lead(kernel, present, moved)
    extents, missing = _extents(kernel, present, moved, lead)
    results = [_result_shape(argument, extents, lead, missing) for argument in outputs_of(row)]
    if all(0 in shape for shape in results):
        extents |= dict.fromkeys(_spread(row), 0)
    lying = {a.turned: _lies_turned(moved[a.name]) for a in present if a.turned is not None}
    attr = row(
        **extents, **options, **flags, **lying, **({"dtype": dtype} if "dtype" in row.known_fields() else {})
    )
    wanted = {array.name: array for array in attr.signature().arrays}
    inputs = [_flat(kernel, a, moved[a.name], lead, wanted[a.name]) for a in present]
    return Call(attr, inputs, results, finish)


def _present(kernel: str, row: "type[KernelAttr]", values: dict[str, Any]) -> list[Argument]:
    """The inputs that are given; those of one flag come together or not at all."""
    for flag in dict.fromkeys(a.when for a in inputs_of(row) if a.when is not None):
        group = [a.name for a in inputs_of(row) if a.when == flag]
        if len({values[name] is None for name in group}) > 1:
            raise ArgumentError(f"{kernel}: {' and '.join(group)}: expected both or neither")
    return [a for a in inputs_of(row) if a.when is None or values[a.name] is not None]


def _arrays(
    kernel: str, present: Sequence[Argument], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], str]:
    """Every input as an ndarray of numbers, and the dtype of those that have none of their own."""
    arrays = {a.name: _array(kernel, a, values[a.name]) for a in present}
    floating = [a.name for a in present if a.dtype is None]
    weak = [values[name] if type(values[name]) in WEAK else arrays[name].dtype for name in floating]
    common = np.result_type(*weak) if floating else np.dtype(np.float64)
    return arrays, "float32" if common in (np.dtype(np.float16), np.dtype(np.float32)) else "float64"


def _array(kernel: str, argument: Argument, value: Any) -> AnyArray:
    wanted = "integers" if argument.dtype else "real numbers"
    label = f"{kernel}: {argument.name}: expected {wanted}"
    if _is_masked(value):
        raise ArgumentTypeError(
            f"{kernel}: {argument.name}: expected an array without a mask, got a masked array"
        )
    try:
        array = np.asarray(value)
    except MemoryError as error:
        raise WorkspaceError(f"{kernel}: {argument.name}: no memory to convert it: {error}") from None
    except Exception as error:  # noqa: BLE001  # whatever a strange object raises
        raise ArgumentTypeError(f"{label}, got {type(value).__name__}: {error}") from None
    if array.dtype.kind not in ("iu" if argument.dtype else "fiub") or array.dtype.itemsize > 8:
        came = f"{type(value).__name__} of " if array.dtype == object else ""
        raise ArgumentTypeError(f"{label}, got {came}dtype {array.dtype}")
    if argument.dtype == "int64" and array.dtype == np.uint64 and array.size:
        largest = int(array.max())
        if largest > np.iinfo(np.int64).max:
            raise DataIndexError(f"{label} of 64 bits with a sign, got {largest}")
    return array


def _is_masked(value: Any) -> bool:
    """Whether it is an array with a mask; where nobody has imported these there are none, and it takes 10 ms."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)


def _index(kernel: str, axis: Any) -> int:
    why: Exception | None = None
    if not isinstance(axis, bool):
        try:
            return operator.index(axis)
        except Exception as error:  # noqa: BLE001  # whatever an object that is asked for its number raises
            why = error
    raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {shown(axis)}") from why


def _moved(
    kernel: str, row: "type[KernelAttr]", arrays: dict[str, AnyArray], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], Callable[[AnyArray], AnyArray] | None]:
    """The arrays with their axis at the end, and what moves it back in a result (None if it was there)."""
    if AXIS not in row.options:
        return arrays, None
    axis = _index(kernel, values[AXIS])
    turned = [a.name for a in inputs_of(row) if a.name in arrays and any(e.spread for e in a.extents)]
    first = arrays[turned[0]]
    if first.ndim == 0:
        raise ArgumentError(f"{kernel}: {turned[0]}: expected at least 1 dimension, got 0")
    if not -first.ndim <= axis < first.ndim:
        raise ArgumentError(f"{kernel}: axis: expected -{first.ndim} to {first.ndim - 1}, got {shown(axis)}")
    if axis in (-1, first.ndim - 1):
        return arrays, None
    from_end = axis % first.ndim - first.ndim
    shifted = {
        n: np.moveaxis(arrays[n], from_end, -1) if arrays[n].ndim >= -from_end else arrays[n] for n in turned
    }
    return arrays | shifted, lambda result: np.moveaxis(result, -1, from_end)


def _fixed(argument: Argument, array: AnyArray) -> int:
    """How many of an array's dimensions are not leading ones."""
    own = argument.fixed
    short = own and own[-1].optional and not argument.spreads and array.ndim == len(own) - 1
    return len(own) - 1 if short else len(own)


def _lead(kernel: str, present: Sequence[Argument], arrays: dict[str, AnyArray]) -> tuple[int, ...]:
    """The common leading dimensions. Raises ArgumentError where they do not broadcast."""
    shapes = {}
    for argument in present:
        array, spreads = arrays[argument.name], argument.spreads
        fixed = _fixed(argument, array)
        if array.ndim < fixed or (array.ndim > fixed and not spreads):
            many = f"{'at least ' if spreads else ''}{fixed} dimension{'s' * (fixed != 1)}"
            raise ArgumentError(
                f"{kernel}: {argument.name}: expected {many} {argument.symbols}, got {array.ndim}"
            )
        if spreads:
            shapes[argument.name] = array.shape[: array.ndim - fixed]
    different = list(dict.fromkeys(shapes.values()))
    if len(different) < 2:
        return different[0] if different else ()
    try:
        return np.broadcast_shapes(*different)
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        listed = " and ".join(str(arrays[name].shape) for name in shapes)
        raise ArgumentError(
            f"{kernel}: {' and '.join(shapes)}: expected shapes that broadcast, got {listed}"
        ) from None


def _extents(
    kernel: str, present: Sequence[Argument], arrays: dict[str, AnyArray], lead: tuple[int, ...]
) -> tuple[dict[str, int], set[str]]:
    """The value of each symbol, and the symbols whose extents an array left out."""
    values: dict[str, int] = {}
    missing: set[str] = set()
    for plain in (True, False):  # plain symbols first, so that the others are checked against them
        for argument in present:
            shape = arrays[argument.name].shape
            fixed, own = _fixed(argument, arrays[argument.name]), argument.fixed
            for extent, size in zip(own, shape[len(shape) - fixed :], strict=False):
                product = size - extent.more
                told = len(extent.symbols) == 1 and product >= 0 and product % extent.factor == 0
                if told and extent.is_plain == plain:
                    values.setdefault(extent.symbols[0], product // extent.factor)
            if fixed < len(own):
                missing.add(own[-1].symbols[0])
                values.setdefault(own[-1].symbols[0], 1)
    for argument in present:
        for extent in argument.extents:
            if extent.spread:
                values[extent.symbols[0]] = math.prod(lead)
    for argument in present:
        array = arrays[argument.name]
        own = argument.fixed[: _fixed(argument, array)]
        known = all(symbol in values for extent in own for symbol in extent.symbols)
        wanted = tuple(extent.value(values) for extent in own) if known else None
        if array.shape[array.ndim - len(own) :] != wanted:
            meant = f"shape {argument.symbols}" + (f" = {wanted}" if wanted is not None else "")
            raise ArgumentError(f"{kernel}: {argument.name}: expected {meant}, got {array.shape}")
    return values, missing


def _result_shape(
    argument: Argument, values: dict[str, int], lead: tuple[int, ...], missing: set[str]
) -> tuple[int, ...]:
    own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in missing)]
    return (lead if argument.spreads else ()) + tuple(extent.value(values) for extent in own)


def _spread(row: "type[KernelAttr]") -> set[str]:
    return {e.symbols[0] for a in inputs_of(row) for e in a.extents if e.spread}


def _lies_turned(array: AnyArray) -> bool:
    """Whether a matrix lies in memory as the transpose of a C-contiguous one, which needs no copy."""
    return bool(array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous)


def _flat(kernel: str, argument: Argument, array: AnyArray, lead: tuple[int, ...], wanted: Array) -> AnyArray:
    """An input in the kernel's own shape: contiguous, aligned, of its dtype; the caller's memory if possible."""
    if argument.spreads:
        fixed = _fixed(argument, array)
        whole = lead + array.shape[array.ndim - fixed :]
        array = array if array.shape == whole else np.broadcast_to(array, whole)
    if argument.turned is not None and _lies_turned(array):
        array = array.T
    if array.size != math.prod(wanted.shape):
        return np.empty(wanted.shape, wanted.dtype)  # no result has an element, so nobody reads it
    if array.dtype == wanted.dtype and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(wanted.shape)
    try:
        with np.errstate(all="ignore"):
            return np.require(array, wanted.dtype, ["C", "A"]).reshape(wanted.shape)
    except (MemoryError, ValueError) as error:  # as many bytes as no machine has are a ValueError
        raise WorkspaceError(
            f"{kernel}: {argument.name}: no memory for {wanted.describe()}: {error}"
        ) from None
