"""How a compiled entry reaches the arguments of a call: the access steps of one call form, and what they compare with.

The entry looks up the globals and free variables of the function in each call: arrays and numbers among them are
arguments, everything else must be an immutable object with the identity or value it had at compilation.
"""

import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.capture.numba_dispatchers import as_python
from jitkernels.compiler.capture.pytree.call_signature import CallSignature, FlatCall
from jitkernels.compiler.dispatch.class_tables import guard_classes
from jitkernels.compiler.dispatch.object_guards import ObjectAccessBuilder, UnreachableError
from jitkernels.compiler.dispatch.object_layout import FUNCTION_PARTS, has_parts
from jitkernels.compiler.ir.call_abi import AccessStep
from jitkernels.runtime import inline_cache

CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
"""Types of callables that an entry supports."""


class ArgumentAccess:
    """The access of one call form: `count` positional arguments and keyword `names`.

    `leaf_steps`: the step that loads each leaf, or ``~slot`` of the context. `objects` fill the context slots; the
    slots of arrays in `own` hold their data addresses. `watches` are guards of the inline cache.
    """

    def __init__(
        self, form: tuple[int, tuple[str, ...]], reaching: ObjectAccessBuilder, constants: Sequence[Any]
    ) -> None:
        self.count, self.names = form[0], tuple(map(sys.intern, form[1]))
        self.objects: list[Any] = [*reaching.context, *constants]
        self.leaf_steps = [*reaching.leaves, *(~(len(reaching.context) + i) for i in range(len(constants)))]
        self.steps: tuple[AccessStep, ...] = tuple(reaching.steps)
        self.locks = tuple(reaching.locks)
        self.own: frozenset[int] = frozenset()
        self.watches: list[inline_cache.Watch] = []


def find_access(call: FlatCall, signature: CallSignature, constants: Sequence[Any]) -> ArgumentAccess:
    """Find how calls of this form reach their leaves. Raises UnreachableError where they must enter through Python.

    `constants`: arrays of the code, which follow the leaves.
    """
    target: Any = signature.target
    if type(target) not in CALLABLES:
        raise UnreachableError(f"an object of type {type(target).__name__} that is called")
    reaching = ObjectAccessBuilder()
    count, names = call.form
    part, (_, parts), (_, keywords, named_parts) = call.structure
    listed = [
        *zip([*signature.names, *[""] * len(parts)], parts, call.positional, strict=False),
        *zip(keywords, named_parts, call.named.values(), strict=True),
    ]
    has_defaults = False
    for i, (name, part_of_argument, value) in enumerate(listed):
        if i < count:
            reaching.argument(i, part_of_argument, value)
        elif name in names:
            reaching.argument(count + names.index(name), part_of_argument, value)
        else:
            has_defaults = True
            reaching.default(part_of_argument, value)
    # Last, though its leaves come first: guards on the arguments are the ones that usually fail.
    argument_leaves, reaching.leaves = reaching.leaves, []
    reaching.function(part, target)
    if call.classes is not None:
        guard_classes(reaching, call.classes)
    reaching.finish()
    reaching.leaves += argument_leaves
    access = ArgumentAccess(call.form, reaching, constants)
    if has_defaults and not _watch_defaults(as_python(signature.function), access):
        raise UnreachableError("defaults of a function that compiled code does not find")
    return access


def _watch_defaults(function: Any, access: ArgumentAccess) -> bool:
    """Guard the defaults of a function, which are arguments; False if they are not where compiled code looks."""
    while type(function) is not types.FunctionType:
        if type(function) not in CALLABLES:
            return False
        function = function.func if type(function) is functools.partial else function.__func__
    if not has_parts(function, FUNCTION_PARTS, (function.__defaults__, function.__kwdefaults__)):
        return False
    if function.__defaults__:
        slot = inline_cache.Word(id(function) + FUNCTION_PARTS[0])
        access.watches.append((None, slot, function.__defaults__))
    for name, value in (function.__kwdefaults__ or {}).items():
        access.watches.append((function.__kwdefaults__, name, value))
    return True
