"""Functions of floats that set the processor's flags where NumPy's fail, and nowhere else, for all arguments.

Comparisons of NaN set flags, and so do exponentials of infinity. That is no harm where NumPy can be asked. Where a
function has overwritten its arguments, nobody but the flags can tell what failed. In code for those, each vector with a
strange number, which is NaN, infinite, the largest, or where the function itself has flags of the wrong kind, goes
through a function of its own. That computes the strange numbers apart, forgets what flags they set, and sets those that
follow from the results: a new NaN is an invalid value, a new infinity an overflow or a pole.
"""

from collections.abc import Callable
from typing import Any

from jitkernels import machine
from jitkernels.graph.emit.strange import FLOATS, READ, Writer
from jitkernels.native import processor_flags
from jitkernels.native.language.lanes import Definition, Library

WATCHED = frozenset(
    {
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "cbrt", "hypot", "sin", "cos", "tan",
        "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
        "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin",
        "less", "less_equal", "greater", "greater_equal", "sign", "floor_divide", "remainder", "fmod",
    }
)  # fmt: skip


def is_watched(operation: str, kinds: tuple[str, ...]) -> bool:
    """Whether an operation of operands of these dtypes is."""
    return operation in WATCHED and all(kind in FLOATS for kind in kinds) and len({*kinds}) == 1


class WatchedLibrary(Library):
    """The functions that code calls which overwrites arguments."""

    def watched(self, operation: str, code: Callable[..., Any], kinds: tuple[str, ...], lanes: int) -> str:
        """The symbol of a function that calls the scalar code in so many lanes.

        Strange numbers are for one function, of as many lanes as the widest vector has, whatever they come from.
        """
        flags = Definition(1, READ)
        flags.text = processor_flags.text().replace("@flags_", "@watched_flags_")
        self.definitions[READ] = flags
        step = machine.target().lanes(kinds[0])
        writer = Writer(operation, *self.called(code, kinds, step), kinds, step)
        strange = self.added(
            operation, "strange", writer.strange(self.added(operation, "apart", writer.apart()))
        )
        writer = Writer(operation, *self.called(code, kinds, lanes), kinds, lanes)
        return self.added(operation, "watched", writer.usual(strange, step))

    def added(self, operation: str, title: str, text: str) -> str:
        """The symbol of a text."""
        definition = Definition(1)
        definition.define(f"{title}.{operation}", text)
        self.definitions[definition.symbol] = definition
        return definition.symbol
