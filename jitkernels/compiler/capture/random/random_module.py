"""The module `numpy.random` in a trace: generators that a function makes, and functions of the global one."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.random import generator_states
from jitkernels.compiler.capture.random.bit_generators import PCG64
from jitkernels.compiler.capture.random.traced_generator import OF_OWNER, TracedGenerator, TracedRandom
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.numpy_call_spec import ArrayPlaceholder, Called


def seeded_words(seed: int) -> Any:
    """The words of a new PCG64, without the object: the state is the sequence's first half after two steps."""
    high, low, stream_high, stream_low = map(int, np.random.SeedSequence(seed).generate_state(4, np.uint64))
    increment = stream_high << 65 | stream_low << 1 | 1
    state = (increment + (high << 64 | low)) * PCG64.MULTIPLIER + increment
    words = [number >> shift & (1 << 64) - 1 for number in (state, increment) for shift in (0, 64)]
    return np.array(words, np.uint64)


def _arrays(kind: str, seed: Any) -> tuple[Any, ...]:
    """The arrays of the state of a new bit generator."""
    generator = np.random.Generator(getattr(np.random, kind)(seed))
    entry = generator_states.entry_of(generator)
    return tuple(array.copy() for array in entry[generator_states.FIRST_ARRAY :])


class _BitGenerator:
    """A new bit generator with a seed, which becomes one of a trace in a `Generator`."""

    def __init__(self, kind: str, seed: Any) -> None:
        self.kind, self.seed = kind, seed

    def generator(self) -> TracedGenerator:
        tracer, kind, seed = _tracer(), self.kind, self.seed
        is_traced = type(seed) is SymInt or (type(seed) is Traced and not seed.ndim and seed.dtype.kind in "iu")
        if not is_traced and (type(seed) is not int or seed < 0):
            raise UnsupportedError("a random generator whose seed is no int: without one each call has another state")
        if is_traced and kind != "PCG64":
            raise UnsupportedError(f"a random generator ({kind}) whose seed is not constant")
        arrays = [fresh(tracer, tracer.frozen_array(array)) for array in _arrays(kind, 0 if is_traced else seed)]
        if is_traced:
            call = Called(seeded_words, (ArrayPlaceholder(0),), {}, [int])
            call.expected = (("uint64", (4,)),)
            node = tracer.placed(Node("call", (as_int(tracer, seed),), "uint64", (4,), {"function": call}))
            arrays[0] = fresh(tracer, node)
        return TracedGenerator(tracer, kind, arrays)


def _tracer() -> Tracer:
    tracer = current()
    assert tracer is not None, "called in a trace"
    return tracer


def _default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng(seed)``."""
    if isinstance(seed, TracedRandom):
        return seed
    return seed.generator() if type(seed) is _BitGenerator else _BitGenerator("PCG64", seed).generator()


def _generator(bit_generator: Any) -> TracedGenerator:
    """``numpy.random.Generator(bit_generator)``."""
    if type(bit_generator) is not _BitGenerator:
        raise UnsupportedError("a Generator of a bit generator from outside of the function")
    return bit_generator.generator()


def _maker(kind: str) -> Callable[..., _BitGenerator]:
    return lambda seed=None: _BitGenerator(kind, seed)


MADE: dict[str, Callable[..., Any]] = {
    "default_rng": _default_rng, "Generator": _generator,
    **{kind: _maker(kind) for kind in generator_states.PARTS},
}  # fmt: skip
"""What makes generators."""


class RandomModule:
    """Proxy of `numpy.random`. Functions draw from the global generator of the call."""

    def __getattr__(self, name: str) -> Any:
        if name in MADE:
            return MADE[name]
        state = _tracer().random_state
        if state is None or name.startswith("_"):
            raise UnsupportedError(f"the function uses numpy.random.{name}")
        return Method(state, name)


class Method:
    """A method of a generator, which the trace looks up where it is called."""

    def __init__(self, generator: TracedRandom, name: str) -> None:
        self.generator, self.name = generator, name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return getattr(self.generator, self.name)(*arguments, **keywords)


def generator(tracer: Tracer, owner: str, kind: str, arrays: Sequence[Any]) -> TracedRandom:
    """A generator of the call in a trace; `owner` and `kind`: the names of its type and of its bit generator's."""
    return OF_OWNER[owner](tracer, kind, arrays)


def of_random(value: Any) -> Any:
    """The replacement of the module `numpy.random`, or of one of its functions; None for others."""
    module = sys.modules.get("numpy.random")
    if value is module:
        return RandomModule()
    return next((made for name, made in MADE.items() if getattr(module, name, None) is value), None)
