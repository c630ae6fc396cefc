"""What a program is, and how one is registered: the NumPy function, then the forms that other compilers want.

numexpr wants text, numba the loop that its users write out, JAX a function that writes to no argument. Compilers
that take the NumPy function as it is get that one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from jitkernels.errors import RegistrationError

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = Callable[[int, str], tuple[Any, ...]]
"""Makes arguments for so many elements of a dtype, new arrays each time, the same values each time."""


@dataclass(frozen=True)
class Program:
    """A NumPy function that returns its result, or None if it writes to its arguments.

    `texts` has an expression for each result, of the names of the parameters.
    """

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    texts: tuple[str, ...] = ()
    loop: Callable[..., Any] | None = None
    functional: Callable[..., Any] | None = None


known: dict[str, Program] = {}


def program(arguments: Arguments, *texts: str) -> Callable[[Function], Function]:
    """Register the decorated function. Raises RegistrationError if there is another program of that name."""

    def register(function: Function) -> Function:
        name = function.__name__
        if name in known and known[name].function.__code__ != function.__code__:
            raise RegistrationError(f"there already is a program {name!r}")
        known[name] = Program(name, function, arguments, texts)
        return function

    return register


def loop_of(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Register what a user of numba would write instead of a program."""

    def register(loop: Function) -> Function:
        known[function.__name__] = replace(known[function.__name__], loop=loop)
        return loop

    return register


def functional_form_of(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Register what returns the arguments that a program writes to, changed, and writes to none."""

    def register(functional: Function) -> Function:
        known[function.__name__] = replace(known[function.__name__], functional=functional)
        return functional

    return register


def results(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call returns, as a tuple; the arrays among its arguments where it returns nothing."""
    found = function(*arguments)
    if found is None:
        return tuple(value for value in arguments if isinstance(value, np.ndarray))
    return tuple(found) if isinstance(found, tuple | list) else (found,)
