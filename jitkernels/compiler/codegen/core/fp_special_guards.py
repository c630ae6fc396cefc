"""Functions of floats that set the processor's exception flags exactly where NumPy's do, for all arguments.

Comparisons of NaN set flags, and so do exponentials of infinity. Usually that is harmless: the call falls back to
NumPy, which decides. Where a kernel has overwritten its arguments there is no fallback, and the flags must be exact.
In code for those, a vector with a special value (NaN, infinite, the largest number, or one for which the function
itself sets wrong flags) is computed out of line: special lanes by themselves, their flags are discarded, and
the flags that follow from the results are set: a new NaN is an invalid value, a new infinity an overflow or a pole.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.python.simd_library import Definition, Library
from jitkernels.compiler.codegen.core.fp_special_values import FLOATS, READ_FLAGS, GuardEmitter
from jitkernels.core import cpu_target
from jitkernels.runtime import fp_status

GUARDED_OPERATIONS = frozenset(
    {
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "cbrt", "hypot", "sin", "cos", "tan",
        "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
        "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin",
        "less", "less_equal", "greater", "greater_equal", "sign", "floor_divide", "remainder", "fmod",
    }
)  # fmt: skip


def is_guarded(operation: str, kinds: tuple[str, ...]) -> bool:
    """Return whether calls of an operation with operands of these dtypes are guarded."""
    return operation in GUARDED_OPERATIONS and all(kind in FLOATS for kind in kinds) and len({*kinds}) == 1


class GuardedLibrary(Library):
    """The library of scalar functions for code that overwrites its arguments."""

    def guarded(self, operation: str, code: Callable[..., Any], kinds: tuple[str, ...], lanes: int) -> str:
        """Return the symbol of the guarded function that calls `code` in `lanes` lanes.

        All guarded functions share one out-of-line function for special values, as wide as the widest vector.
        """
        flags = Definition(1, READ_FLAGS)
        flags.text = fp_status.text().replace("@flags_", "@guarded_flags_")
        self.definitions[READ_FLAGS] = flags
        outlined_lanes = cpu_target.target().lanes(kinds[0])
        writer = GuardEmitter(operation, *self.called(code, kinds, outlined_lanes), kinds, outlined_lanes)
        special_symbol = self.add(
            operation, "special", writer.special_lanes(self.add(operation, "outlined", writer.outlined()))
        )
        writer = GuardEmitter(operation, *self.called(code, kinds, lanes), kinds, lanes)
        return self.add(operation, "guarded", writer.guarded(special_symbol, outlined_lanes))

    def add(self, operation: str, title: str, text: str) -> str:
        """Define a function and return its symbol."""
        definition = Definition(1)
        definition.define(f"{title}.{operation}", text)
        self.definitions[definition.symbol] = definition
        return definition.symbol
