"""The documentation string of an everyday function, generated from its schema for ``help`` and type checkers."""

import inspect
from collections.abc import Iterator

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.fields import MAX_WHOLE
from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE, min_results
from jitkernels.attrs.schema.signature import Argument
from jitkernels.core import bfloat16

COMMON = """\
Inputs are any array-likes, with any strides; leading dimensions broadcast. Kernels compute in float32 if that holds
all inputs, else in float64, as where all are integers.
{} Results are new arrays unless `out` is passed.

Raises ArgumentTypeError for a wrong type or dtype, ArgumentError for a wrong shape or overlap, AttrError for a wrong
option{}; nothing is written then. All derive from jitkernels.JitKernelsError."""
RETURNS_BFLOAT16 = "Arrays of bfloat16, of ml_dtypes, return bfloat16 unless other inputs are wider floats."
MAX_LINE_LENGTH = 120
COUNTED_AS_FLOAT32 = "Arrays of bfloat16, of ml_dtypes, count as float32."
OF_INDICES = ", DataIndexError for an index outside its table"


def everyday_line(schema: type[KernelAttr]) -> str:
    """The call in one line, such as ``softmax(x, axis=-1, out=None)``."""
    listed = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in schema.parameters().parameters.values()
    ]
    return f"{schema.kernel_type.name.lower()}({', '.join([*listed, 'out=None'])})"


def text_of(schema: type[KernelAttr]) -> str:
    """The whole documentation string: call, formula, arguments with shapes and dtypes, errors."""
    indices = OF_INDICES if schema.check_data is not KernelAttr.check_data else ""
    parts = [
        f"{everyday_line(schema)}\n--\n",
        f"{inspect.cleandoc(schema.__doc__ or '')}\n",
        *_arguments(schema),
        "",
        COMMON.format(RETURNS_BFLOAT16 if bfloat16.BFLOAT16_NAME in dtypes_of(schema) else COUNTED_AS_FLOAT32, indices),
        "",
        _filled(f"Its kernels are specialised by {schema.__name__}({', '.join(schema.known_fields())})."),
    ]
    return "\n".join(parts)


def _filled(line: str) -> str:
    """A line broken between words where it is long."""
    if len(line) <= MAX_LINE_LENGTH:
        return line
    head = line[: line.rindex(" ", 0, MAX_LINE_LENGTH)]
    return f"{head}\n{_filled(line[len(head) + 1 :])}"


def _arguments(schema: type[KernelAttr]) -> Iterator[str]:
    outputs = [argument for argument in schema.arrays if argument.role == "out"]
    for argument in schema.arrays:
        if argument.role == "in":
            yield f"{argument.name}: {_array(schema, argument)}{_missing(schema, argument)}"
    for name in schema.options:
        values = schema.known_fields()[name].values if name in schema.known_fields() else ()
        which = f"one of {', '.join(map(repr, values))}" if values else _kind(schema, name)
        yield f"{name}: {which}"
    several = "a tuple of arrays" if len(outputs) > 1 else "an array"
    if len(outputs) > 1 == min_results(schema):
        several = "an array, or a tuple of them where there are several results,"
    yield f"out: {several} to write to and to return"
    results = [f"{a.name}: {_array(schema, a)}{_with(schema, a)}" for a in outputs]
    yield f"returns {(', ' if len(results) < 3 else f',{chr(10)}    ').join(results)}"


def _missing(schema: type[KernelAttr], argument: Argument) -> str:
    """Whether an input is optional, and together with which others."""
    if argument.when is None:
        return ""
    others = [a.name for a in schema.arrays if a.role == "in" and a.when == argument.when and a is not argument]
    return "; optional" + (f", together with {' and '.join(others)}" if others else "")


def _with(schema: type[KernelAttr], output: Argument) -> str:
    """The input or the option that a result requires."""
    if output.when is None:
        return ""
    led = [a.name for a in schema.arrays if a.role == "in" and a.when == output.when]
    return f" if {led[0]} is passed" if led else f" if {output.when}"


def _kind(schema: type[KernelAttr], name: str) -> str:
    if name == AXIS:
        return "the axis to work along, an int"
    if name == SHAPE:
        return "of the result: an int, or a tuple of ints"
    if name == DTYPE:
        return f"{' or '.join(map(repr, dtypes_of(schema)))}; if None that of `out`, or else 'float64'"
    field = schema.known_fields()[name]
    if field.kind == "whole":
        return f"an int of {field.least} or more" + (f", at most {field.most}" if field.most < MAX_WHOLE else "")
    return field.meaning or f"a {field.kind}"


def _array(schema: type[KernelAttr], argument: Argument) -> str:
    field = schema.known_fields().get(argument.dtype or "")
    own = () if argument.dtype is None else (argument.dtype,) if field is None else tuple(map(str, field.values))
    every = own if argument.dtype and argument.unless is None else (*own, *dtypes_of(schema))
    return f"{_shape(argument)} {' or '.join(every)}"


def _shape(argument: Argument) -> str:
    """The shape in NumPy's notation: dots for any number of dimensions, a question mark for an optional one."""
    parts = ["..." if e.spread else f"{e}?" if e.optional else str(e) for e in argument.extents]
    return f"({', '.join(parts)}{',' * (len(parts) == 1 and parts[0] != '...')})"


def dtypes_of(schema: type[KernelAttr]) -> tuple[str, ...]:
    """The dtypes of the schema's field ``dtype``."""
    known = schema.known_fields()
    return known["dtype"].dtypes if "dtype" in known else ()
