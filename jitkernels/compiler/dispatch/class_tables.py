"""Guards of classes in a compiled entry: the bindings of their dicts, which have versions as globals have."""

import gc
import sys
from typing import Any

from jitkernels.compiler.capture.free_variables import Constant
from jitkernels.compiler.capture.pytree.class_guards import APPEARING, ClassGuards
from jitkernels.compiler.dispatch.object_guards import ObjectAccessBuilder, UnreachableError


def guard_classes(reaching: ObjectAccessBuilder, guards: ClassGuards) -> None:
    """Add the guards of classes to those of a call. Raises UnreachableError."""
    for kind, _ in guards.orders:
        order = reaching.attribute_of(kind.value, "__mro__")
        reaching.same(order, kind.value.__mro__)
    for base, attributes in guards.attributes:
        table = reaching.table(dict_of(base.value))
        table.names.update({name: part.value for name, part in attributes})
        absent = (guards.names | APPEARING).difference(vars(base.value))
        table.missing.update(dict.fromkeys(sorted(absent)))
    for owner, attributes in guards.objects:
        reaching.sized(reaching.attribute_of(owner.value, "__dict__"), len(attributes))
        for name, part in attributes:
            found = reaching.attribute_of(owner.value, name)
            if isinstance(part, Constant):
                reaching.constant(found, part.value)
            else:
                reaching.same(found, part.value)
    for function, code in guards.codes:
        reaching.has_code(function.value, code.value)
    for names, name, part in guards.callees:
        reaching.table(names.value).names[sys.intern(name)] = part.value


def dict_of(base: type) -> dict[str, Any]:
    """The dict of a class, behind its read-only view. Raises UnreachableError."""
    found = gc.get_referents(vars(base))
    if len(found) != 1 or type(found[0]) is not dict:
        raise UnreachableError(f"the class {base.__name__}, whose attributes compiled code does not find")
    return found[0]
