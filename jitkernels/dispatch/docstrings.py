"""What ``help(jk.softmax)`` prints and what type checkers are told of an everyday function, made from its row."""

import inspect
from collections.abc import Iterator

from jitkernels import bfloat16
from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.fields import MOST_WHOLE
from jitkernels.attrs.roles import AXIS, DTYPE, SHAPE, fewest_results
from jitkernels.signature import Argument

COMMON = """\
Inputs are anything that NumPy makes an array of, with any strides; leading dimensions broadcast. They are computed
in float32 if that holds them all, else in float64, as where all are integers.
{} Results are new arrays unless `out` is given.

Raises ArgumentTypeError for a wrong type or dtype, ArgumentError for a wrong shape or overlap, AttrError for a wrong
option{}; nothing is written then. All are jitkernels.JitKernelsError."""
STORED = "Arrays of bfloat16, of ml_dtypes, give such results unless other floats stand beside them."
COUNTED = "Arrays of bfloat16, of ml_dtypes, count as float32."
OF_INDICES = ", DataIndexError for an index outside its table"


def everyday_line(row: type[KernelAttr]) -> str:
    """The call in one line, such as ``softmax(x, axis=-1, out=None)``."""
    listed = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in row.parameters().parameters.values()
    ]
    return f"{row.kernel_type.name.lower()}({', '.join([*listed, 'out=None'])})"


def text_of(row: type[KernelAttr]) -> str:
    """The whole documentation string: call, formula, arguments with shapes and dtypes, errors."""
    indices = OF_INDICES if row.check_data is not KernelAttr.check_data else ""
    parts = [
        f"{everyday_line(row)}\n--\n",
        f"{inspect.cleandoc(row.__doc__ or '')}\n",
        *_arguments(row),
        "",
        COMMON.format(STORED if bfloat16.NAME in dtypes_of(row) else COUNTED, indices),
        "",
        f"Kernels of it are specialised by {row.__name__}({', '.join(row.known_fields())}).",
    ]
    return "\n".join(parts)


def _arguments(row: type[KernelAttr]) -> Iterator[str]:
    outputs = [argument for argument in row.arrays if argument.role == "out"]
    for argument in row.arrays:
        if argument.role == "in":
            yield f"{argument.name}: {_array(row, argument)}{_missing(row, argument)}"
    for name in row.options:
        values = row.known_fields()[name].values if name in row.known_fields() else ()
        which = f"one of {', '.join(map(repr, values))}" if values else _kind(row, name)
        yield f"{name}: {which}"
    several = "a tuple of arrays" if len(outputs) > 1 else "an array"
    if len(outputs) > 1 == fewest_results(row):
        several = "an array, or a tuple of them where there are several results,"
    yield f"out: {several} to write to and to return"
    results = [f"{a.name}: {_array(row, a)}{_with(row, a)}" for a in outputs]
    yield f"returns {(', ' if len(results) < 3 else f',{chr(10)}    ').join(results)}"


def _missing(row: type[KernelAttr], argument: Argument) -> str:
    """Whether an input may be left out, and with which others."""
    if argument.when is None:
        return ""
    others = [a.name for a in row.arrays if a.role == "in" and a.when == argument.when and a is not argument]
    return "; may be left out" + (f", together with {' and '.join(others)}" if others else "")


def _with(row: type[KernelAttr], output: Argument) -> str:
    """The input or the option without which a result is not there."""
    if output.when is None:
        return ""
    led = [a.name for a in row.arrays if a.role == "in" and a.when == output.when]
    return f" if {led[0]} is given" if led else f" if {output.when}"


def _kind(row: type[KernelAttr], name: str) -> str:
    if name == AXIS:
        return "the axis to work along, an int"
    if name == SHAPE:
        return "of the result: an int, or a tuple of ints"
    if name == DTYPE:
        return f"{' or '.join(map(repr, dtypes_of(row)))}; if None that of `out`, or else 'float64'"
    field = row.known_fields()[name]
    if field.kind == "whole":
        return f"an int of {field.least} or more" + (
            f", at most {field.most}" if field.most < MOST_WHOLE else ""
        )
    return f"a {field.kind}"


def _array(row: type[KernelAttr], argument: Argument) -> str:
    field = row.known_fields().get(argument.dtype or "")
    own = (
        ()
        if argument.dtype is None
        else (argument.dtype,)
        if field is None
        else tuple(map(str, field.values))
    )
    every = own if argument.dtype and argument.unless is None else (*own, *dtypes_of(row))
    return f"{_shape(argument)} {' or '.join(every)}"


def _shape(argument: Argument) -> str:
    """The shape as users of NumPy write it: dots for any dimensions, a question mark for what may be missing."""
    parts = ["..." if e.spread else f"{e}?" if e.optional else str(e) for e in argument.extents]
    return f"({', '.join(parts)}{',' * (len(parts) == 1 and parts[0] != '...')})"


def dtypes_of(row: type[KernelAttr]) -> tuple[str, ...]:
    """The dtypes that the attr's own field ``dtype`` may be."""
    known = row.known_fields()
    return known["dtype"].dtypes if "dtype" in known else ()
