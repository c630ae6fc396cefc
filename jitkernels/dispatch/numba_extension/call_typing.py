"""numba typing of everyday calls: bind parameters, find constants, infer result types from one sample call."""

import functools
import inspect
from typing import Any

import numba.core.types
from numba.core import errors
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, signature
from numba.core.typing.typeof import typeof
from numba.np import numpy_support

from jitkernels.attrs.schema.schema_queries import DTYPE, SHAPE, inputs_of
from jitkernels.dispatch.numba_extension.call_emitter import lowering_of
from jitkernels.dispatch.numba_extension.call_site import NOT_SCALAR, CallSite, PresentInput
from jitkernels.dispatch.operators import Everyday
from jitkernels.errors import JitKernelsError

types: Any = numba.core.types
ELEMENTS = (types.Float, types.Integer, types.Boolean)


@functools.cache
def function_type(holder: Everyday) -> Any:
    """numba's type of an everyday function."""
    name = f"jitkernels.{holder.name}"
    return types.Function(type(name, (_Template,), {"key": name, "holder": holder}))


def parameters(holder: Everyday) -> inspect.Signature:
    """Parameters of an everyday function with ``out``."""
    own = holder.schema.parameters()
    out = inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    # A parameter without a default after one with a default gets None: callers pass it by name.
    listed = [*own.parameters.values(), out]
    named = False
    for i, parameter in enumerate(listed):
        named = named or parameter.default is not inspect.Parameter.empty
        if named and parameter.default is inspect.Parameter.empty:
            listed[i] = parameter.replace(default=None)
    return inspect.Signature(listed)


class _Template(AbstractTemplate):  # type: ignore[misc,unused-ignore]
    """The numba type of calls of one everyday function; `holder` is its Python side."""

    holder: Everyday
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        pysig = parameters(self.holder)
        try:
            bound = pysig.bind(*args, **dict(kws)).arguments
        except TypeError as error:
            raise errors.TypingError(f"{self.holder.name}{pysig}: {error}") from None
        kinds = {
            name: bound.get(name, types.Omitted(parameter.default)) for name, parameter in pysig.parameters.items()
        }
        site = _site(self.holder, tuple((n, k) for n, k in kinds.items() if n != "out"))
        result = _result(self.holder.name, site, kinds["out"])
        self.implementation = _implementation(site, tuple(kinds))
        return signature(result, *kinds.values()).replace(pysig=pysig)

    def get_impl_key(self, sig: Any) -> Any:  # noqa: ARG002  # numba's signature
        return self.implementation


@functools.cache
def _implementation(site: CallSite, names: tuple[str, ...]) -> object:
    """The key under which numba finds the code generator of a call."""
    key = object()
    cpu_target.target_context.insert_func_defn([(lowering_of(site, names), key, (types.VarArg(types.Any),))])
    return key


@functools.cache
def _site(holder: Everyday, typed: tuple[tuple[str, Any], ...]) -> CallSite:
    """The call site for parameters of these types. Raises TypingError for unsupported types."""
    kinds = dict(typed)
    arrays = {a.name: a for a in inputs_of(holder.schema)}
    constants: dict[str, Any] = {}
    operands: dict[str, PresentInput] = {}
    scalars: dict[str, Any] = {}
    fields = holder.schema.known_fields()
    for name, kind in kinds.items():
        known, value = _constant(kind)
        if name in arrays and not (known and value is None):
            operands[name] = _operand(holder.name, arrays[name], kind)
        elif known:
            constants[name] = value
        elif _is_number(name, fields) and isinstance(kind, types.Integer | types.Float):
            scalars[name] = _sample_scalar(fields[name], [*kinds].index(name), kind)
        elif name == SHAPE and isinstance(kind, types.Integer | types.UniTuple):
            scalars[name] = (2,) * kind.count if isinstance(kind, types.UniTuple) else 2
        elif name == DTYPE and isinstance(kind, types.NumberClass | types.DType):
            constants[name] = numpy_support.as_dtype(kind.dtype)
        else:
            raise errors.RequireLiteralValue(f"{holder.name}: {name}: expected a compile-time constant, got {kind}")
    required = [n for n, p in holder.schema.parameters().parameters.items() if p.default is p.empty]
    missing = [n for n in required if n in constants and constants[n] is None]
    if missing:
        raise errors.TypingError(f"{holder.name}: missing a required argument: {missing[0]!r}")
    try:
        return CallSite(holder, constants, operands, scalars)
    except (JitKernelsError, ValueError, TypeError) as error:
        raise errors.TypingError(f"{holder.name}: {error}") from error


def _is_number(option: str, fields: Any) -> bool:
    """Whether an option is a field that calls may pass any number for; fields of other types decide on the code."""
    return option not in NOT_SCALAR and fields[option].kind != "custom"


def _constant(kind: Any) -> tuple[bool, Any]:
    """Whether a type determines the value, and the value."""
    if isinstance(kind, types.Omitted):
        return True, kind.value
    if isinstance(kind, types.NoneType):
        return True, None
    if isinstance(kind, types.Literal):
        return True, kind.literal_value
    return False, None


def _operand(kernel: str, argument: Any, kind: Any) -> PresentInput:
    """An input of a numba type. Raises TypingError for a type that is neither an array nor a scalar."""
    kind = types.unliteral(kind)
    if isinstance(kind, ELEMENTS):
        return PresentInput(argument, None, str(numpy_support.as_dtype(kind)))
    if isinstance(kind, types.Array) and isinstance(kind.dtype, ELEMENTS) and kind.aligned:
        return PresentInput(argument, kind.ndim, numpy_support.as_dtype(kind.dtype).name, kind.layout)
    raise errors.TypingError(f"{kernel}: {argument.name}: expected an array of real numbers, got {kind}")


def _sample_scalar(field: Any, position: int, kind: Any) -> Any:
    """A value for the sample call: later floats are larger, as ends of ranges must be."""
    if field.kind == "float":
        return float(min(max(field.least, position / 16), field.most))
    return max(int(field.least), 1) if isinstance(kind, types.Integer) else float(position)


def _result(kernel: str, site: CallSite, out: Any) -> Any:
    """The type of the result: that of ``out`` if it is passed."""
    inferred = typeof(site.result)
    if _constant(out)[0]:
        if _constant(out)[1] is not None:
            raise errors.TypingError(f"{kernel}: out: expected an array, got {out}")
        return inferred
    several = isinstance(out, types.BaseTuple)
    for array in out.types if several else (out,):
        if not isinstance(array, types.Array):
            raise errors.TypingError(f"{kernel}: out: expected an array, got {array}")
        if not array.mutable:
            raise errors.TypingError(f"{kernel}: out: expected a writeable array, got a read-only one")
    return out
