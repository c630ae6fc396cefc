"""Registration of benchmark programs: the NumPy function, then the forms for other compilers.

numexpr needs text, numba the loop that its users write, JAX a function that writes to no argument. Compilers
that accept the NumPy function get it unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from jitkernels.errors import RegistrationError

Function = TypeVar("Function", bound=Callable[..., Any])
Arguments = Callable[[int, str], tuple[Any, ...]]
"""Returns arguments with a number of elements of a dtype: new arrays with the same values each time."""


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
    """Register the loop that a numba user would write instead of a program."""

    def register(loop: Function) -> Function:
        known[function.__name__] = replace(known[function.__name__], loop=loop)
        return loop

    return register


def functional_form_of(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Register a form that returns modified copies of the arguments that a program writes to."""

    def register(functional: Function) -> Function:
        known[function.__name__] = replace(known[function.__name__], functional=functional)
        return functional

    return register


def results(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the results of a call as a tuple; for None, the arrays among its arguments."""
    result = function(*arguments)
    if result is None:
        return tuple(value for value in arguments if isinstance(value, np.ndarray))
    return tuple(result) if isinstance(result, tuple | list) else (result,)
