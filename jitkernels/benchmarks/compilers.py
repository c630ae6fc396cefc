"""Other compilers of NumPy code: for each installed one, the callable that its users would build from a program.

Each compiler gets its best setup: scalars as constants for numpy.ndarray callers, JAX arrays created beforehand,
and the fastest of the forms that numba users write.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

import numpy as np

from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.peers.compiled import call_and_wait
from jitkernels.benchmarks.programs.benchmark_program import Program

Maker = Callable[[Program, tuple[Any, ...], int], list[Bound]]
"""Takes a program, arguments and a number of threads; returns calls, of which the fastest counts, or none."""


def compilers() -> dict[str, Maker]:
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

    def as_variable(match: re.Match[str]) -> str:
        name = f"number_{match[0].replace('.', '_').replace('-', '_')}"
        values[name] = dtype(match[0])
        return name

    # Numbers in an expression text are double and would promote the whole result.
    pattern = r"(?<![\w.])(\d+\.\d*|\.\d+)(e-?\d+)?|(?<![\w.])\d+e-?\d+"
    texts = [re.sub(pattern, as_variable, text) for text in program.texts]
    if len(texts) == 1:
        return [partial(numexpr.evaluate, texts[0], values)]
    return [partial(_all_of, numexpr.evaluate, texts, values)]


def _all_of(evaluate: Callable[..., Any], texts: list[str], values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(evaluate(text, values) for text in texts)


def of_numba(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    dtype = arguments[0].dtype
    values = _of_dtype(arguments, dtype.type)
    return [partial(form, *copied(values)) for form in _forms_of_numba(program, dtype.name, threads)]


@lru_cache
def _forms_of_numba(program: Program, dtype: str, threads: int) -> list[Callable[..., Any]]:
    """Return the loop and the NumPy function, compiled for one thread and for several, except forms numba rejects."""
    import numba

    number = np.dtype(dtype).type
    arguments = _of_dtype(program.arguments(64, dtype), number)
    forms = [(program.function, threads > 1)]
    if program.loop:
        forms += [(program.loop, parallel) for parallel in sorted({False, threads > 1})]
    compiled_forms = []
    for form, parallel in forms:
        constant = None if number is np.float64 else number
        compiled = numba.njit(_rebound(form, constant, np, numba.njit), parallel=parallel)
        try:
            compiled(*copied(arguments))
        except Exception:  # noqa: BLE001  # numba raises errors of many types for unsupported NumPy
            continue
        compiled_forms.append(compiled)
    return compiled_forms


def of_jax(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    import jax

    jax.config.update("jax_enable_x64", True)
    function = program.functional or program.function
    compiled = jax.jit(_rebound(function, None, jax.numpy, lambda form: form))
    converted = tuple(jax.numpy.array(value) if isinstance(value, np.ndarray) else value for value in arguments)
    return [partial(call_and_wait, jax.block_until_ready, compiled, *converted)]


def of_torch(program: Program, arguments: tuple[Any, ...], threads: int) -> list[Bound]:
    import torch

    torch.set_num_threads(threads)
    torch.compiler.reset()  # else sizes after the first get code for dynamic shapes
    return [partial(torch.compile(program.function), *arguments)]


def _of_dtype(arguments: tuple[Any, ...], dtype: Callable[[float], Any]) -> tuple[Any, ...]:
    """Convert Python numbers to scalars of a dtype."""
    return tuple(dtype(value) if isinstance(value, float) else value for value in arguments)


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with copies of all arrays, since a program may write to them."""
    return tuple(value.copy() if isinstance(value, np.ndarray) else value for value in arguments)


def _rebound(
    function: Callable[..., Any], number: Callable[[float], Any] | None, numpy: Any, wrapped: Callable[[Any], Any]
) -> Any:
    """Return a function with another NumPy, its callees `wrapped`, and its global constants converted by `number`."""

    def changed(value: Any) -> Any:
        if isinstance(value, float) and number is not None:
            return number(value)
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        if isinstance(value, FunctionType):
            return wrapped(_rebound(value, number, numpy, wrapped))
        return numpy if value is np else value

    code = function.__code__
    known = {name: changed(function.__globals__[name]) for name in code.co_names if name in function.__globals__}
    constants = tuple(changed(value) for value in code.co_consts)
    return FunctionType(code.replace(co_consts=constants), {**function.__globals__, **known}, function.__name__)
