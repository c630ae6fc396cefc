"""Link LLVM modules into one: its exported symbols, and a check of its undefined ones."""

from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm

from jitkernels.errors import BuildError

LIBC = ("aligned_alloc", "free", "memcpy", "memset", "memmove")


def parsed(name: str, code: str | bytes, context: Any = None) -> Any:
    """Parse and verify LLVM IR text or bitcode, in a new context unless one is given.

    Shared types and constants live as long as their context. Raises BuildError if LLVM cannot read the code.
    """
    parse = llvm.parse_assembly if isinstance(code, str) else llvm.parse_bitcode
    try:
        module = parse(code, context or llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise BuildError(f"the LLVM code of {name} is wrong: {error}") from error
    return module


def linked(name: str, parts: Iterable[str | bytes], visible: Iterable[str]) -> Any:
    """Link parts, each IR text or bitcode, into one module that exports only `visible` functions."""
    first, *others = parts_of(name, *parts)
    link_in(name, first, others, visible)
    return first


def parts_of(name: str, *parts: str | bytes) -> list[Any]:
    """Parse modules in one context, so that they can be linked."""
    context = llvm.create_context()
    return [parsed(name, part, context) for part in parts]


def link_in(name: str, first: Any, others: Iterable[Any], visible: Iterable[str]) -> None:
    """Link other modules of the same context into `first`; functions that are not `visible` become internal."""
    for other in others:
        try:
            first.link_in(other)
        except RuntimeError as error:
            raise BuildError(f"the parts of {name} do not fit together: {error}") from error
    shown = set(visible)
    for value in (*first.functions, *first.global_variables):
        if not value.is_declaration and value.name not in shown and value.linkage != llvm.Linkage.private:
            value.linkage = "internal"


def refuse_undefined(name: str, module: Any, calls: Iterable[str]) -> None:
    """Raise BuildError for a call of a function that is neither defined, nor in `calls`, nor in the C library.

    The loader resolves nothing else.
    """
    allowed = {*LIBC, *calls}
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm.") and function.name not in allowed:
            raise BuildError(
                f"the range kernel {name} calls {function.name}, which is not an external of its own; "
                "vector maths comes from jitkernels.microkernels.maths, not from numpy"
            )
