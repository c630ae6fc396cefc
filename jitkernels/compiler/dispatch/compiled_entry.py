"""Calls that need no Python: a specialisation linked to compiled code that takes a call's arguments apart itself.

What the function refers to by name is looked up in each call: arrays and numbers are arguments, and all else has to be
what it was, and nothing that can change in itself. All other calls are Python's, which finds or makes their code.
"""

import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.alarms import Alarm, LinkedAlarm
from jitkernels.frontends.reaching import FUNCTION_PARTS, Reaching, UnreachableError, has_parts, sources
from jitkernels.frontends.signatures import Signature
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.frontends.tracer import INT64
from jitkernels.graph import extents
from jitkernels.graph.emit.interface import Bound, Reach, Rebuilt, Whole
from jitkernels.graph.emit.objects import Step
from jitkernels.graph.ir import Node
from jitkernels.graph.program import Entry
from jitkernels.graph.scalars import DTYPES
from jitkernels.native import call_table, load, plain


class Direct:
    """One link, and what it needs to stay alive."""

    def __init__(self, entry: Entry, call: "Call", alarm: Alarm | None, *, cached: bool) -> None:
        self.kept, self.alarm = call, None if alarm is None else LinkedAlarm(alarm)
        self.code = load.placed_of(entry.source, cached=cached)
        self.segment = load.placed_of(entry.segment, cached=cached)
        objects = [one.ctypes.data if i in call.own else id(one) for i, one in enumerate(call.objects)]
        words = [*objects, self.segment.address, entry.most, 0]
        self.context = np.array(words, np.int64)
        address, context = self.code.address, self.context.ctypes.data
        self.link = call_table.link(address, context, call.count, call.watches, call.names, alarm=self.alarm)
        if self.alarm is not None:
            self.alarm.link = self.link

    @property
    def most_lent(self) -> int:
        """The most bytes of memory between nests that a call was lent."""
        return int(self.context[-1])


NUMBERS = frozenset(
    {np.ndarray, float, int, bool, str, type(None), *(np.dtype(name).type for name in DTYPES)}
)
"""Types of arguments whose size shows without looking into them."""


CHOICES = (str, bool, type(None), type)
"""Types of arguments by which functions choose what to do."""


def has_plain_links() -> bool:
    """Whether there is the code of such links, or it can be built."""
    return load.can_be_had(plain.source())


class Plain:
    """A link by which calls like one are the plain function's at once, which takes less time than looking for code.

    Such are calls with arguments of the same types by position and by name, arrays of the same dtypes, dimensions and
    flags, with no more elements in each than `most`. Of the types `same` they are the very same.
    """

    def __init__(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], most: int, same: tuple[type, ...]
    ) -> None:
        names = tuple(map(sys.intern, kwargs))
        held: list[Any] = [type(one) for one in (*args, *kwargs.values())]
        self.kept = (function, names, held)
        words = [id(function), len(args), id(names) if names else 0, most, len(args) + len(names)]
        for one in (*args, *kwargs.values()):
            words.append(id(type(one)))
            if type(one) is np.ndarray:
                held.append(one.dtype)
                words += [id(one.dtype), one.ndim, one.flags.num & plain.FLAGS]
            elif isinstance(one, same):
                held.append(one)
                words += [id(one), 0, 0]
            else:
                words += [0, 0, 0]
        self.context = np.array(words, np.int64)
        address = load.address_of(plain.source())
        self.link = call_table.link(address, self.context.ctypes.data, len(args), (), names, is_last=True)


class Call:
    """A kind of call: so many arguments by position, others by name; `objects` are the words of the context.

    `places` says of each leaf which step gives it, or, from 0 down by -1, which word of the context. Words of arrays
    in `own` are where these lie.
    """

    def __init__(self, count: int, names: tuple[str, ...]) -> None:
        self.count, self.names = count, tuple(map(sys.intern, names))
        self.objects: list[Any] = []
        self.places: list[int] = []
        self.steps: tuple[Step, ...] = ()
        self.own: frozenset[int] = frozenset()
        self.watches: list[Any] = []


CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
"""Types of what may be called without Python."""


def call_of(
    function: Any,
    structure: Any,
    bound: tuple[tuple[Any, ...], dict[str, Any]],
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    constants: Sequence[Any],
) -> Call | None:
    """How calls like one reach their arguments, and what is called; None where they are for Python.

    The signature is that of the function, or of what it is made of: whose defaults are arguments.
    """
    made = Call(len(args), tuple(kwargs))
    positional, named = bound
    reaching = Reaching()
    part, (_, parts), (_, keywords, named_parts) = structure
    listed = [
        *zip([*signature.names, *[""] * len(parts)], parts, positional, strict=False),
        *zip(keywords, named_parts, named.values(), strict=True),
    ]
    defaults = False
    try:
        for i, (name, one, value) in enumerate(listed):
            if i < len(args):
                reaching.argument(i, one, value)
            elif name in kwargs:
                reaching.argument(len(args) + made.names.index(name), one, value)
            else:
                defaults = True
                reaching.default(one, value)
        # Last, though its leaves come first: other arguments are the usual reason why code is not a call's.
        given, reaching.leaves = reaching.leaves, []
        reaching.function(part, function)
        reaching.finish()
    except UnreachableError:
        return None
    if defaults and not _watch_defaults(signature.function, made):
        return None
    made.objects = [*reaching.context, *constants]
    made.places = [*reaching.leaves, *given, *(~(len(reaching.context) + i) for i in range(len(constants)))]
    made.steps = tuple(reaching.steps)
    return made


EXACT = 2**53
"""Up to which whole numbers are floats."""


def _watch_defaults(function: Any, call: Call) -> bool:
    while type(function) is not types.FunctionType:
        if type(function) not in CALLABLES:
            return False
        function = function.func if type(function) is functools.partial else function.__func__
    if not has_parts(function, FUNCTION_PARTS, (function.__defaults__, function.__kwdefaults__)):
        return False
    if function.__defaults__:
        place = call_table.Word(id(function) + FUNCTION_PARTS[0])
        call.watches.append((None, place, function.__defaults__))
    for name, value in (function.__kwdefaults__ or {}).items():
        call.watches.append((function.__kwdefaults__, name, value))
    return True


def entry_of(specialisation: Specialisation, leaves: Sequence[Any], call: Call) -> Entry | None:
    """The compiled function for calls of a specialisation; None where they are Python's."""
    plan, program = specialisation.plan, specialisation.program
    if plan is None or not hasattr(program, "caller"):
        return None
    if any(id(node) not in program.words for node in program.graph.outputs):
        return None
    objects = [*leaves, *specialisation.constants]
    inputs = program.graph.inputs
    if len(objects) < len(inputs) or len(call.places) < len(inputs):
        return None
    found = sources(objects[: len(inputs)], call.places[: len(inputs)])
    wholes = [
        Whole(one.symbol, one.leaf, one.kind == "negated")
        for one in specialisation.bindings
        if one.kind not in ("extent", "stride")
    ]
    bounds = [Bound(one.leaf, one.operation, one.bound, one.truth) for one in specialisation.value_guards]
    if found is None or any(_is_strange(one, objects[one.input]) for one in bounds):
        return None
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
    # Sizes that are constants of the code are compared with these in any case.
    guards = [
        one
        for one in specialisation.guards
        if specialisation.scope.values.keys() >= {*extents.symbols_of(one.extent)}
    ]
    own = _own(inputs, len(leaves)) - (set() if rebuilt is None else rebuilt.given_back())
    call.own = frozenset(~call.places[i] for i in own)
    entry: Entry | None = program.caller(
        guards,
        found,
        reach,
        word=len(call.objects),
        is_tuple=plan.is_tuple is not False,
        kinds=kinds,
        rebuilt=rebuilt,
        own=own,
    )
    return entry


def _own(inputs: Sequence[Node], leaves: int) -> set[int]:
    """The constants of code, which come behind the leaves, but for those of which lengths are read.

    Such arrays are copies that were made with the code, and no result shows them: nobody can write to them.
    """
    return {
        i
        for i, node in enumerate(inputs)
        if i >= leaves and not any(extents.symbols_of(extent) for extent in node.shape)
    }


def _is_strange(bound: Bound, value: Any) -> bool:
    """Whether a number is compared with what code is not made for."""
    if type(value) is int:
        return type(bound.bound) is not int or bound.bound not in INT64
    if type(bound.bound) is int and bound.operation != "is":
        return type(value) is not float or abs(bound.bound) > EXACT
    return type(value) is not float or type(bound.bound) is not float
