"""The table of patched functions: one row for each target, its replacement, and the calls that measure it.

A replacement takes the arguments of its target and returns `NotImplemented` for those that it does not serve: the
original is called then, which says what is wrong with them.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitkernels.errors import RegistrationError

REPLACEMENTS = "jitkernels.patching.replacements"
"""The package whose modules register the rows."""


@dataclass(frozen=True)
class Call:
    """A call that measures a piece: the public function that reaches it, by name as in `Piece.target`."""

    case: str
    function: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    def bound(self) -> Callable[[], Any]:
        """Return the call without arguments. Imports the function."""
        function = pkgutil.resolve_name(self.function)
        return lambda: function(*self.arguments, **self.keywords)


@dataclass(frozen=True)
class Piece:
    """A row: the function `target`, as ``module:name``, and when it is served by `replacement`.

    Of a universal function, the replacement is a scalar function for each dtype.
    """

    target: str
    replacement: Callable[..., Any] | Mapping[str, Callable[..., Any]]
    serves: str
    calls: Callable[[], Iterable[Call]]

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def name(self) -> str:
        return self.target.partition(":")[2]

    def is_of(self, selected: str) -> bool:
        """Return whether a name of a package, a module or a target includes this piece."""
        return self.target == selected or f"{self.module}.".startswith(f"{selected}.")


_pieces: dict[str, Piece] = {}


def piece(target: str, *, serves: str, calls: Callable[[], Iterable[Call]]) -> Callable[..., Any]:
    """Register the decorated function as the replacement of a target.

    `serves` says in words which arguments it takes, `calls` makes those that `jitkernels bench patch` times. Raises
    RegistrationError for a target that has a replacement.
    """

    def register(replacement: Callable[..., Any]) -> Callable[..., Any]:
        add(Piece(target, replacement, serves, calls))
        return replacement

    return register


def add(one: Piece) -> None:
    """Add a row to the table. Raises RegistrationError for a target that has a replacement."""
    if one.target in _pieces:
        raise RegistrationError(f"{one.target} has two replacements")
    _pieces[one.target] = one


def _modules() -> Iterator[str]:
    package = importlib.import_module(REPLACEMENTS)
    return (f"{REPLACEMENTS}.{module.name}" for module in pkgutil.iter_modules(package.__path__))


def pieces() -> tuple[Piece, ...]:
    """All rows, by target."""
    for module in _modules():
        importlib.import_module(module)
    return tuple(one for _, one in sorted(_pieces.items()))
