"""What ``help(jk.softmax)`` prints and what type checkers are told of an everyday function, made from its row."""

import inspect
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields

from jitkernels.attrs.base import FLOATS, KernelAttr
from jitkernels.signature import Argument

AXIS = "axis"
COMMON = """\
Inputs are anything that NumPy makes an array of, with any strides; leading dimensions broadcast. They are computed
in float32 if that holds them all, else in float64, as where all are integers. Results are new arrays unless `out` is
given.

Raises ArgumentTypeError for a wrong type or dtype, ArgumentError for a wrong shape or overlap, AttrError for a wrong
option{}; nothing is written then. All are jitkernels.JitKernelsError."""
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
        COMMON.format(indices),
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
        values = () if name == AXIS else row.known_fields()[name].values
        which = f"one of {', '.join(map(repr, values))}" if values else _kind(row, name)
        yield f"{name}: {which}"
    several = "a tuple of arrays" if len(outputs) > 1 else "an array"
    yield f"out: {several} to write to and to return"
    yield f"returns {', '.join(f'{argument.name}: {_array(row, argument)}' for argument in outputs)}"


def _missing(row: type[KernelAttr], argument: Argument) -> str:
    """Whether an input may be left out, and with which others."""
    if argument.when is None:
        return ""
    others = [a.name for a in row.arrays if a.when == argument.when and a is not argument]
    return "; may be left out" + (f", together with {' and '.join(others)}" if others else "")


def _kind(row: type[KernelAttr], name: str) -> str:
    return "the axis to work along, an int" if name == AXIS else f"a {row.known_fields()[name].kind}"


def _array(row: type[KernelAttr], argument: Argument) -> str:
    return f"{_shape(argument)} {argument.dtype or ' or '.join(dtypes_of(row))}"


def _shape(argument: Argument) -> str:
    """The shape as users of NumPy write it: dots for any dimensions, a question mark for what may be missing."""
    parts = ["..." if e.spread else f"{e}?" if e.optional else str(e) for e in argument.extents]
    return f"({', '.join(parts)}{',' * (len(parts) == 1 and parts[0] != '...')})"


def dtypes_of(row: type[KernelAttr]) -> tuple[str, ...]:
    """The dtypes that the attr's own field ``dtype`` may be."""
    found = [f.metadata.get("dtypes", FLOATS) for f in dataclass_fields(row) if f.name == "dtype"]  # type: ignore[arg-type]  # a dataclass
    return tuple(found[0]) if found else ()
