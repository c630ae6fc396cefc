"""Other compilers of NumPy code: each makes of a program what a user of it would call, if it is installed.

They are given what is best for them: single numbers as constants beside single arrays, JAX arrays that are there
before, and the fastest of the forms that users of numba write.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.programs.program import Program
from jitkernels.errors import NotUsableError
from jitkernels.peers import Bound

Maker = Callable[[Program, tuple[Any, ...], int], list[Bound]]
"""Of a program, arguments and a number of threads: calls of which the fastest counts, none where it has no form."""


def own_compiler() -> Callable[..., Any]:
    """jitkernels.jit. Raises NotUsableError where there is none."""
    found: Callable[..., Any] | None = getattr(jk, "jit", None)
    if found is None:
        raise NotUsableError("this benchmark measures jitkernels.jit, which this version does not have")
    return found


def compilers() -> dict[str, Maker]:
    """The compilers that are installed here, by name."""
    makers: dict[str, Maker] = {"numexpr": of_numexpr, "numba": of_numba, "jax": of_jax, "torch": of_torch}
    return {name: maker for name, maker in makers.items() if importlib.util.find_spec(name) is not None}


def of_numexpr(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    import numexpr

    if not program.texts:
        return []
    numexpr.set_num_threads(threads)
    names = program.function.__code__.co_varnames
    dtype = arguments[0].dtype.type
    values = dict(zip(names, _of_dtype(arguments, dtype), strict=False))

    def as_variable(found: re.Match[str]) -> str:
        name = f"number_{found[0].replace('.', '_').replace('-', '_')}"
        values[name] = dtype(found[0])
        return name

    # Numbers in a text are double, and so would be whatever is computed with them.
    pattern = r"(?<![\w.])(\d+\.\d*|\.\d+)(e-?\d+)?|(?<![\w.])\d+e-?\d+"
    texts = [re.sub(pattern, as_variable, text) for text in program.texts]
    if len(texts) == 1:
        return [partial(numexpr.evaluate, texts[0], values)]
    return [partial(_all_of, numexpr.evaluate, texts, values)]


def _all_of(evaluate: Callable[..., Any], texts: list[str], values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(evaluate(text, values) for text in texts)


def of_numba(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    dtype = arguments[0].dtype
    given = _of_dtype(arguments, dtype.type)
    return [partial(form, *copied(given)) for form in _forms_of_numba(program, dtype.name, threads)]


@lru_cache
def _forms_of_numba(program: Program, dtype: str, threads: int) -> list[Callable[..., Any]]:
    """The loop and the NumPy function, compiled for one thread and for several, without what numba does not take."""
    import numba

    number = np.dtype(dtype).type
    arguments = _of_dtype(program.arguments(64, dtype), number)
    forms = [(program.function, threads > 1)]
    if program.loop:
        forms += [(program.loop, parallel) for parallel in sorted({False, threads > 1})]
    found = []
    for form, parallel in forms:
        constant = None if number is np.float64 else number
        compiled = numba.njit(_rebound(form, constant, np, numba.njit), parallel=parallel)
        try:
            compiled(*copied(arguments))
        except Exception:  # noqa: BLE001  # it has errors of many kinds for the NumPy that it does not take
            continue
        found.append(compiled)
    return found


def of_jax(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = program.functional or program.function
    compiled = jax.jit(_rebound(function, None, jax.numpy, lambda form: form))
    given = tuple(jax.numpy.array(value) if isinstance(value, np.ndarray) else value for value in arguments)
    return [partial(_ready, jax.block_until_ready, compiled, *given)]


def _ready(wait: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call comes to, once it has."""
    return wait(function(*arguments))


def of_torch(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    import torch

    torch.set_num_threads(threads)
    torch.compiler.reset()  # else sizes after the first are compiled for any
    return [partial(torch.compile(program.function), *arguments)]


def _of_dtype(arguments: tuple[Any, ...], dtype: Callable[[float], Any]) -> tuple[Any, ...]:
    """Python's numbers as those of a dtype."""
    return tuple(dtype(value) if isinstance(value, float) else value for value in arguments)


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same with arrays of their own, since a program may write to them."""
    return tuple(value.copy() if isinstance(value, np.ndarray) else value for value in arguments)


def _rebound(
    function: Callable[..., Any],
    number: Callable[[float], Any] | None,
    numpy: Any,
    wrapped: Callable[[Any], Any],
) -> Any:
    """A function with another NumPy, functions that it calls `wrapped`, and its constants as numbers of a kind."""

    def changed(value: Any) -> Any:
        if isinstance(value, float) and number is not None:
            return number(value)
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        if isinstance(value, FunctionType):
            return wrapped(_rebound(value, number, numpy, wrapped))
        return numpy if value is np else value

    code = function.__code__
    known = {
        name: changed(function.__globals__[name]) for name in code.co_names if name in function.__globals__
    }
    constants = tuple(changed(value) for value in code.co_consts)
    return FunctionType(
        code.replace(co_consts=constants), {**function.__globals__, **known}, function.__name__
    )
