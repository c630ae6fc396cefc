"""The stored entry of a compiled call (`jitkernels.runtime.stored_entry`): another process runs it without tracing."""

from typing import Any, NamedTuple

from jitkernels.attrs.schema.registry import foreign_kernels, implementations, op_schema
from jitkernels.compiler.dispatch import program_entry
from jitkernels.compiler.dispatch.object_guards import UnreachableError
from jitkernels.core.fork_locks import build_lock
from jitkernels.runtime import stored_entry
from jitkernels.runtime.stored_source import NotStorableError

ALWAYS_CALLED = frozenset({"matmul"})
"""Kernels that code may call without a node of their names."""


class CallDescription(NamedTuple):
    """A compiled entry as JSON, its arrays, and the names of the kernels that it calls."""

    entry: dict[str, Any]
    arrays: list[Any]
    kernels: frozenset[str]


def described_call(function: Any, *args: Any) -> CallDescription:
    """The compiled entry for calls of `function` with such arguments.

    Raises NotStorableError where calls need more than machine code and arrays: Python, objects of this process such as
    globals, warnings that NumPy issues, tapes.
    """
    with build_lock:
        specialization, call = function._compile_for(args, {})
        if specialization is None or specialization.graph is None or specialization.links.get(call.form) is None:
            raise NotStorableError("calls that Python serves")
        plan = specialization.plan
        if plan is not None and plan.is_tuple is None and plan.recipe is None:
            raise NotStorableError("results that Python builds, such as views of arrays")
        is_plain = specialization.is_quiet and not specialization.failures and not specialization.written
        if not is_plain or specialization.has_tapes or specialization.has_foreign:
            raise NotStorableError("calls with warnings, writes, tapes or arrays of other libraries")
        try:
            access, entry = program_entry.build_entry(specialization, call, function._signature)
        except UnreachableError as error:
            raise NotStorableError(str(error)) from None
        if access.watches or access.names:
            raise NotStorableError("guards of names")
        description, arrays = stored_entry.described(
            entry.source,
            entry.segment,
            count=access.count,
            objects=access.objects,
            own=access.own,
            max_work=entry.max_work_with_gil,
        )
        kernels = {node.options["function"].__name__ for node in specialization.graph if node.operation == "kernel"}
        listed = {*kernels, *ALWAYS_CALLED}
        for kernel in listed:  # which imports plug-ins
            implementations(op_schema(kernel))
        foreign = sorted(foreign_kernels() & listed)
        if foreign:
            raise NotStorableError(f"implementations of {', '.join(foreign)} that are not of this package may change")
        return CallDescription(description, arrays, frozenset(kernels))
