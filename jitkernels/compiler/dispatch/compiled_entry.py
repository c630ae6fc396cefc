"""Inline-cache entries: a specialization linked to machine code that checks and unpacks a call's arguments itself.

The entry looks up the globals and free variables of the function in each call: arrays and numbers among them are
arguments, everything else must be an immutable object with the identity or value it had at compilation. Calls that no
entry accepts go to Python, which finds or compiles their code.
"""

import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.trace_context import INT64
from jitkernels.compiler.dispatch import program_entry
from jitkernels.compiler.dispatch.call_signature import Signature
from jitkernels.compiler.dispatch.fp_warnings import Alarm, LinkedWarningReporter
from jitkernels.compiler.dispatch.object_guards import FUNCTION_PARTS, Reaching, UnreachableError, has_parts, sources
from jitkernels.compiler.dispatch.program_entry import Entry
from jitkernels.compiler.dispatch.specialization import Specialisation
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.call_abi import Bound, Reach, Rebuilt, Step, Whole
from jitkernels.compiler.ir.elementwise_ops import DTYPES
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.runtime import inline_cache, python_fallback
from jitkernels.runtime.loading import loader


class Direct:
    """An inline-cache link to a compiled entry; owns the code and objects that it uses."""

    def __init__(self, entry: Entry, call: "Call", alarm: Alarm | None, *, cached: bool) -> None:
        self.kept, self.alarm = call, None if alarm is None else LinkedWarningReporter(alarm)
        self.code = loader.placed_of(entry.source, cached=cached)
        self.segment = loader.placed_of(entry.segment, cached=cached)
        objects = [one.ctypes.data if i in call.own else id(one) for i, one in enumerate(call.objects)]
        words = [*objects, self.segment.address, entry.most, 0]
        self.context = np.array(words, np.int64)
        address, context = self.code.address, self.context.ctypes.data
        self.link = inline_cache.link(address, context, call.count, call.watches, call.names, alarm=self.alarm)
        if self.alarm is not None:
            self.alarm.link = self.link

    @property
    def max_workspace_bytes(self) -> int:
        """The largest workspace that a call has used, in bytes."""
        return int(self.context[-1])


NUMBERS = frozenset({np.ndarray, float, int, bool, str, type(None), *(np.dtype(name).type for name in DTYPES)})
"""Types of arguments whose size is known without traversal."""


CHOICES = (str, bool, type(None), type)
"""Types of arguments that typically select a code path of a function."""


def has_plain_links() -> bool:
    """Whether the machine code of plain links exists or can be built."""
    return loader.is_loadable(python_fallback.source())


class Plain:
    """A link that sends calls of one form straight to the plain function, faster than a lookup of code.

    It guards the types of the arguments by position and name, and of arrays the dtype, number of dimensions, flags and
    at most `most` elements. Arguments of the types `same` must be equal. It accepts `calls` calls until `allow` resets
    the count; all calls if that is negative.
    """

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        most: int,
        same: tuple[type, ...],
        calls: int = -1,
    ) -> None:
        names = tuple(map(sys.intern, kwargs))
        held: list[Any] = [type(one) for one in (*args, *kwargs.values())]
        self.kept = (function, names, held)
        words = [id(function), len(args), id(names) if names else 0, most, len(args) + len(names), calls]
        for one in (*args, *kwargs.values()):
            words.append(id(type(one)))
            if type(one) is np.ndarray:
                held.append(one.dtype)
                words += [id(one.dtype), one.ndim, one.flags.num & python_fallback.FLAGS]
            elif isinstance(one, same):
                held.append(one)
                words += [id(one), 0, 0]
            else:
                words += [0, 0, 0]
        self.context = np.array(words, np.int64)
        address = loader.address_of(python_fallback.source())
        self.link = inline_cache.link(address, self.context.ctypes.data, len(args), (), names, is_last=True)

    def allow(self, calls: int) -> None:
        """Accept `calls` further calls."""
        self.context[python_fallback.CALLS] = calls


class Call:
    """A call form: `count` positional arguments and keyword `names`; `objects` fill the context slots.

    `places`: the step that loads each leaf, or ``~slot`` of the context. The slots of arrays in `own` hold their data
    addresses.
    """

    def __init__(self, count: int, names: tuple[str, ...]) -> None:
        self.count, self.names = count, tuple(map(sys.intern, names))
        self.objects: list[Any] = []
        self.places: list[int] = []
        self.steps: tuple[Step, ...] = ()
        self.own: frozenset[int] = frozenset()
        self.watches: list[Any] = []


CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
"""Types of callables that an entry supports."""


def call_of(
    function: Any,
    structure: Any,
    bound: tuple[tuple[Any, ...], dict[str, Any]],
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    constants: Sequence[Any],
) -> Call:
    """The object access of calls of this form. Raises UnreachableError where they must enter through Python.

    `signature`: that of the function, or of the function it wraps, whose defaults are arguments.
    """
    call = Call(len(args), tuple(kwargs))
    positional, named = bound
    reaching = Reaching()
    part, (_, parts), (_, keywords, named_parts) = structure
    listed = [
        *zip([*signature.names, *[""] * len(parts)], parts, positional, strict=False),
        *zip(keywords, named_parts, named.values(), strict=True),
    ]
    defaults = False
    for i, (name, part_of_argument, value) in enumerate(listed):
        if i < len(args):
            reaching.argument(i, part_of_argument, value)
        elif name in kwargs:
            reaching.argument(len(args) + call.names.index(name), part_of_argument, value)
        else:
            defaults = True
            reaching.default(part_of_argument, value)
    # Last, though its leaves come first: guards on the arguments are the ones that usually fail.
    argument_leaves, reaching.leaves = reaching.leaves, []
    reaching.function(part, function)
    reaching.finish()
    if defaults and not _watch_defaults(signature.function, call):
        raise UnreachableError("defaults of a function that compiled code does not find")
    call.objects = [*reaching.context, *constants]
    call.places = [*reaching.leaves, *argument_leaves, *(~(len(reaching.context) + i) for i in range(len(constants)))]
    call.steps = tuple(reaching.steps)
    return call


EXACT = 2**53
"""Largest int below which all ints are exact as doubles."""


def _watch_defaults(function: Any, call: Call) -> bool:
    while type(function) is not types.FunctionType:
        if type(function) not in CALLABLES:
            return False
        function = function.func if type(function) is functools.partial else function.__func__
    if not has_parts(function, FUNCTION_PARTS, (function.__defaults__, function.__kwdefaults__)):
        return False
    if function.__defaults__:
        slot = inline_cache.Word(id(function) + FUNCTION_PARTS[0])
        call.watches.append((None, slot, function.__defaults__))
    for name, value in (function.__kwdefaults__ or {}).items():
        call.watches.append((function.__kwdefaults__, name, value))
    return True


def entry_of(specialisation: Specialisation, leaves: Sequence[Any], call: Call) -> Entry:
    """The compiled entry for calls of a specialization. Raises UnreachableError if they must enter through Python."""
    plan, program = specialisation.plan, specialisation.program
    if plan is None or not isinstance(program, CompiledProgram):
        raise UnreachableError("code that NumPy runs operation by operation")
    if specialisation.alarm is not None and specialisation.alarm.precedes_calls:
        raise UnreachableError("constants that fail: NumPy warns before compiled code writes")
    if any(node not in program.words for node in program.graph.outputs):
        raise UnreachableError("a result that is no array in memory")
    objects = [*leaves, *specialisation.constants]
    inputs = program.graph.inputs
    if len(objects) < len(inputs) or len(call.places) < len(inputs):
        raise UnreachableError("arguments that are not known before the call")
    loaded_from = sources(objects[: len(inputs)], call.places[: len(inputs)])
    wholes = [
        Whole(one.symbol, one.leaf, one.kind == "negated")
        for one in specialisation.bindings
        if one.kind not in ("extent", "stride")
    ]
    bounds = [Bound(one.leaf, one.operation, one.bound, one.truth) for one in specialisation.value_guards]
    if loaded_from is None or any(_is_strange(one, objects[one.input]) for one in bounds):
        raise UnreachableError("numbers of types that compiled code does not read")
    reach = Reach(call.steps, tuple(wholes), tuple(bounds))
    rebuilt, kinds = None, plan.kinds
    if plan.itself is not None:
        rebuilt = Rebuilt(None, (plan.itself,), ())
    elif plan.recipe is not None:
        rebuilt = Rebuilt(len(call.objects), (), (), plan.recipe.recipe)
        call.objects += plan.recipe.held
        kinds = tuple(plan.recipe.kinds.get(i, "array") for i in range(len(program.graph.outputs)))
    elif plan.is_tuple is None:
        symbols = tuple(program.symbols) if plan.views else ()
        call.objects.append(plan.finisher(len(program.graph.outputs), symbols))
        rebuilt = Rebuilt(len(call.objects) - 1, plan.leaves, symbols)
    # Extents that are constants of the code have their guards in the argument checks already.
    guards = [
        one
        for one in specialisation.guards
        if specialisation.scope.values.keys() >= {*symbolic_dims.symbols_of(one.extent)}
    ]
    own = _own(inputs, len(leaves)) - (set() if rebuilt is None else rebuilt.given_back())
    call.own = frozenset(~call.places[i] for i in own)
    entry = program_entry.caller(
        program,
        guards,
        loaded_from,
        reach,
        word=len(call.objects),
        is_tuple=plan.is_tuple is not False,
        kinds=kinds,
        rebuilt=rebuilt,
        own=own,
    )
    if entry is None:
        raise UnreachableError("steps between which NumPy runs, or writes before all is checked")
    return entry


def of_call(
    function: Any, found: Specialisation, taken: Any, signature: Signature, args: Any, kwargs: Any
) -> tuple[Call, Entry]:
    """The argument access of calls of this form, and the compiled entry for them. Raises UnreachableError.

    `taken`: the structure of the arguments, their leaves, and the arguments in canonical order.
    """
    structure, leaves, bound = taken
    if type(function) not in CALLABLES:
        raise UnreachableError(f"an object of type {type(function).__name__} that is called")
    call = call_of(function, structure, bound, signature, args, kwargs, found.constants)
    return call, entry_of(found, leaves, call)


def _own(inputs: Sequence[Node], leaves: int) -> set[int]:
    """Indices of the code's constants (after the leaves), except those with symbolic extents.

    The specialization owns copies of these arrays, and no result aliases them: nobody can write to them.
    """
    return {
        i
        for i, node in enumerate(inputs)
        if i >= leaves and not any(symbolic_dims.symbols_of(extent) for extent in node.shape)
    }


def _is_strange(bound: Bound, value: Any) -> bool:
    """Whether a value guard compares a number with a bound that no instruction expresses."""
    if bound.operation == "is":
        return type(bound.bound) is not type(value) or (type(value) is int and bound.bound not in INT64)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return type(bound.bound) is not int or bound.bound not in INT64
    if not isinstance(value, float | np.floating):
        return True
    return type(bound.bound) is not float and (type(bound.bound) is not int or abs(bound.bound) > EXACT)
