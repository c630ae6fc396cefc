"""Calls that need no Python: code whose arguments are arrays and floats as they come, linked to its function.

What the function refers to by name is watched: as long as each name is bound to the same object, and that cannot change
in itself, the code is right for it. All other calls are Python's, which finds or makes their code.
"""

import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends import captured
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.native import load, vectorcall

UNCHANGING: tuple[type, ...] = (
    type(None), bool, int, float, complex, str, bytes, types.ModuleType, types.BuiltinFunctionType, np.ufunc, type,
    np.dtype, type(np.sum), types.MethodDescriptorType, types.WrapperDescriptorType,
)  # fmt: skip
"""Types of objects that stay what they are; modules are taken for such."""


class Direct:
    """One link, and what it needs to stay alive."""

    def __init__(
        self, table: Any, specialisation: Specialisation, count: int, watches: Sequence[Any], source: Any
    ) -> None:
        objects = [*specialisation.captured, *specialisation.constants]
        self.context = np.array([id(one) for one in objects] or [0], np.int64)
        self.kept = (objects, watches, table)
        address = load.address_of(source)
        self.link = vectorcall.link(table, address, self.context.ctypes.data, count, watches)


def source_of(specialisation: Specialisation, structure: Any, leaves: Sequence[Any], count: int) -> Any:
    """The source of the compiled function for calls of a specialisation; None where they are Python's."""
    _, (_, parts), (_, _, named) = structure
    plan, program = specialisation.plan, specialisation.program
    if named or len(parts) != count or any(part not in ("A", "F", "N") for part in parts):
        return None
    if plan is None or plan.is_tuple is None or "float" in plan.kinds or specialisation.value_guards:
        return None
    if not hasattr(program, "caller") or any(binding.kind == "value" for binding in specialisation.bindings):
        return None
    if any(id(node) not in program.words for node in program.graph.outputs):
        return None
    if any(
        kind == "array" and not node.shape
        for kind, node in zip(plan.kinds, program.graph.outputs, strict=False)
    ):
        return None
    first = len(leaves) - count
    specialisation.captured = tuple(leaves[:first])
    objects = [*leaves, *specialisation.constants]
    sources = []
    for number, one in enumerate(objects[: len(program.graph.inputs)]):
        where = number - first
        if where < 0:
            where = ~number
        elif where >= count:
            where = ~(number - count)
        if type(one) is np.ndarray:
            sources.append((where, ""))
        elif type(one) is float:
            sources.append((where, "float"))
        elif isinstance(one, np.generic):
            sources.append((where, one.dtype.name))
        else:
            return None
    if len(sources) != len(program.graph.inputs):
        return None
    return program.caller(specialisation.guards, sources, is_tuple=plan.is_tuple)


def watches_of(function: types.FunctionType) -> list[Any] | None:
    """All names that a function and those it calls refer to; None where what they are bound to may change in itself."""
    found: list[Any] = []
    pending, seen = [function], {id(function)}
    while pending:
        one = pending.pop()
        names = captured.names_of(one.__code__)
        if names.refused or any(captured.attributes_of(names, captured.around(one), one.__globals__)):
            return None
        values = []
        for cell in one.__closure__ or ():
            values.append(captured.cell_value(cell))
            found.append((None, cell, values[-1]))
        for name, value in captured.globals_of(one, names.names).items():
            values.append(value)
            found.append((one.__globals__, name, value))
        if one is not function and (one.__defaults__ or one.__kwdefaults__):
            return None
        for value in values:
            if type(value) is types.FunctionType and not captured.is_library(value):
                if id(value) not in seen:
                    seen.add(id(value))
                    pending.append(value)
            elif not (
                type(value) is np.ndarray
                or isinstance(value, UNCHANGING)
                or type(value) is types.FunctionType
            ):
                return None
    return found
