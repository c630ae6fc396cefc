"""`numpy.random.Generator` and the functions of `numpy.random` in a trace."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.numpy_callouts import traced_copy
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.numpy_namespace_proxy import CREATION
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES
from jitkernels.compiler.capture.random import bit_generators, derived_distributions, distributions, generator_states
from jitkernels.compiler.capture.random.words import StateWord, cast
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.special_functions import libm_exp

INTEGERS: dict[Any, str] = {np.dtype(name): name for name in ("int64", "int32", "uint64", "uint32")}
"""Dtypes of integers that are drawn by words of 32 or 64 bits."""


class TracedRandom:
    """What generators of both interfaces have in common. `owner`: the name of the type, for messages."""

    owner, is_global = "Generator", False
    _exponential = staticmethod(distributions.standard_exponential)

    def __init__(self, tracer: Tracer, kind: str, arrays: Sequence[Traced]) -> None:
        self._tracer, self._bits = tracer, bit_generators.KINDS[kind](tracer, arrays)

    def write_back(self) -> None:
        """Store the state where it came from."""
        self._bits.write_back()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{self.owner}.{name}, which compiled code does not draw")

    def _drawn(self, size: Any, draw: Callable[[Any], Any], kind: Any = float) -> Any:
        """One number of a kind, or an array of them."""
        if size is None:
            drawn = self._in_flow(draw) if kind is float else draw(self._bits)
            return as_number(self._tracer, drawn.node, kind)
        dtype = np.dtype(kind).name
        shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        flat = SERVICES["zeros"](self._tracer, math.prod(shape), dtype)
        traced_copy(distributions.fill)(self._bits, draw, flat)
        return flat if len(shape) == 1 else flat.reshape(shape)

    def _in_flow(self, draw: Callable[[Any], Any]) -> Any:
        """A number that is drawn inside of a loop, as products are contracted elsewhere."""
        if self._tracer.depth or self._tracer.has_flows:
            return draw(self._bits)
        return traced_copy(distributions.once)(self._bits, draw)

    def _float(self, value: Any, name: str) -> Any:
        """A parameter that is a number."""
        if type(value) not in (SymInt, Traced) and isinstance(value, int | float | np.number):
            return np.float64(value)
        if type(value) is SymInt or (type(value) is Traced and not value.ndim and value.dtype.kind in "fiub"):
            node = value.node
            return fresh(self._tracer, builder.cast(node, "float64"), is_scalar=True)
        raise UnsupportedError(f"{self.owner} with an array of {name}")

    def _word(self, value: Any, name: str) -> Any:
        """An integer of 64 bits as a word."""
        if type(value) in (int, np.int64):
            return np.uint64(int(value) % (1 << 64))
        if type(value) is SymInt or (type(value) is Traced and not value.ndim and value.dtype == np.int64):
            return fresh(self._tracer, builder.cast(as_int(self._tracer, value), "uint64"), is_scalar=True)
        raise UnsupportedError(f"{self.owner} with {name} that is no int")

    def _spread(self, low: Any, high: Any, endpoint: bool) -> tuple[Any, Any]:
        """The lowest integer and the distance to the highest one, as words."""
        if high is None:
            low, high = 0, low
        if type(low) in (int, np.int64) and type(high) in (int, np.int64) and not -(2**63) <= low <= high <= 2**63:
            raise UnsupportedError(f"{self.owner}.integers of this range")
        traced_copy(distributions.check_range)(low, high, endpoint)
        first, last = self._word(low, "a bound"), self._word(high, "a bound")
        with np.errstate(over="ignore"):
            return first, last - first if endpoint else last - np.uint64(1) - first

    def _integers(self, low: Any, high: Any, size: Any, dtype: Any, endpoint: bool, draw: Any) -> Any:
        if not isinstance(dtype, type | np.dtype | str) or np.dtype(dtype) not in INTEGERS:
            raise UnsupportedError(f"{self.owner} that draws integers of dtype {dtype}")
        name = INTEGERS[np.dtype(dtype)]
        if name != "int64" and not (type(low) is int and type(high) in (int, type(None))):
            raise UnsupportedError(f"{self.owner} that draws {name} with bounds that are not constant")
        if name != "int64":
            limits = np.iinfo(name)
            first, last = (0, low) if high is None else (low, high)
            if not limits.min <= first <= last <= limits.max + (not endpoint):
                raise UnsupportedError(f"{self.owner} that draws {name} of this range")
        first, spread = self._spread(low, high, endpoint)

        def one(bits: Any) -> Any:
            word = draw(bits, spread)
            if type(word) is not Traced:
                word = fresh(self._tracer, builder.constant(int(word), "uint64"), is_scalar=True)
            return cast(word + first, name)

        return self._drawn(size, one, name)

    def _uniform(self, low: Any, high: Any, size: Any) -> Any:
        first, last = self._float(low, "low"), self._float(high, "high")
        spread = last - first
        traced_copy(distributions.check_spread)(spread)
        return self._drawn(size, lambda bits: first + spread * bits.next_double())

    def _scaled(self, scale: Any, size: Any, draw: Any, loc: Any = None) -> Any:
        """``loc + scale * draw(bits)``."""
        factor = self._float(scale, "scale")
        traced_copy(distributions.check_scale)(factor)
        if loc is None:
            return self._drawn(size, lambda bits: factor * draw(bits))
        mean = self._float(loc, "loc")
        return self._drawn(size, lambda bits: mean + factor * draw(bits))

    def _standard_normal(self, bits: Any) -> Any:
        """A standard normal number of the interface."""
        return traced_copy(distributions.standard_normal)(bits)

    def _check(self, check: Callable[[Any], None], number: Any, what: str) -> None:
        """Let calls bail out whose parameter the code is not for. Raises UnsupportedError where all would."""
        if type(number) is not np.float64:
            traced_copy(check)(number)
            return
        try:
            check(number)
        except ValueError:
            raise UnsupportedError(f"{self.owner} with {what}") from None

    def _standard_gamma(self, shape: Any) -> Callable[[Any], Any]:
        """What draws a standard gamma number. Calls with a shape below one, whose numbers take powers, bail out."""
        self._check(derived_distributions.check_shape, shape, "gamma numbers of a shape below one")
        draw = traced_copy(derived_distributions.standard_gamma)
        return lambda bits: draw(bits, self._standard_normal, traced_copy(self._exponential), shape)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        mean, factor = self._float(loc, "loc"), self._float(scale, "scale")
        traced_copy(distributions.check_scale)(factor)
        draw = traced_copy(derived_distributions.laplace)
        return self._drawn(size, lambda bits: draw(bits, mean, factor))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        middle, factor = self._float(mean, "mean"), self._float(sigma, "sigma")
        traced_copy(distributions.check_scale)(factor)
        return self._drawn(size, lambda bits: libm_exp(middle + factor * self._standard_normal(bits)))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(scale, size, self._standard_gamma(self._float(shape, "shape")))

    def standard_gamma(self, shape: Any, size: Any = None) -> Any:
        return self._drawn(size, self._standard_gamma(self._float(shape, "shape")))

    def chisquare(self, df: Any, size: Any = None) -> Any:
        draw = self._standard_gamma(self._float(df, "df") / np.float64(2.0))
        return self._drawn(size, lambda bits: np.float64(2.0) * draw(bits))

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Any:
        """Of more than one degree of freedom; calls with fewer bail out."""
        root = self._float(nonc, "nonc")
        self._check(derived_distributions.check_positive, root, "a noncentrality that is not positive")
        root = np.sqrt(root)
        draw = self._standard_gamma((self._float(df, "df") - np.float64(1.0)) / np.float64(2.0))

        def one(bits: Any) -> Any:
            rest = np.float64(2.0) * draw(bits)
            number = self._standard_normal(bits) + root
            return rest + number * number

        return self._drawn(size, one)

    def standard_t(self, df: Any, size: Any = None) -> Any:
        half = self._float(df, "df") / np.float64(2.0)
        draw, root = self._standard_gamma(half), np.sqrt(half)

        def one(bits: Any) -> Any:
            number = self._standard_normal(bits)
            return root * number / np.sqrt(draw(bits))

        return self._drawn(size, one)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        mean = self._float(lam, "lam")
        self._check(derived_distributions.check_mean, mean, "such a mean of a Poisson distribution")
        draw = traced_copy(derived_distributions.poisson)
        result = self._drawn(size, lambda bits: draw(bits, mean), "int64")
        return as_number(self._tracer, result.node, int) if size is None else result

    def _plain(self, size: Any, draw: Any, dtype: Any, out: Any) -> Any:
        """Numbers without parameters. Raises UnsupportedError for float32 and for results in a given array."""
        if out is not None or np.dtype(dtype) != np.float64:
            raise UnsupportedError(f"{self.owner} that draws into an array, or draws {np.dtype(dtype)}")
        return self._drawn(size, draw)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle a vector in place."""
        if type(x) is not Traced or x.ndim != 1 or axis != 0:
            raise UnsupportedError(f"{self.owner}.shuffle of what is no vector")
        traced_copy(distributions.shuffled)(_Indices(self._bits), x)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """A shuffled copy of a vector, or of the first integers."""
        is_count = type(x) in (int, SymInt) or (type(x) is Traced and not x.ndim)
        copied = CREATION[np.arange](self._tracer, x) if is_count else METHODS["copy"](of_array(x))
        self.shuffle(copied, axis)
        return copied


class _Indices:
    """Random indices up to another one."""

    def __init__(self, bits: Any) -> None:
        self._bits = bits

    def index(self, last: Any) -> Any:
        tracer = self._bits.tracer
        limit = as_int(tracer, last)
        word = fresh(tracer, builder.cast(limit, "uint64"), is_scalar=True)
        node = cast(traced_copy(distributions.masked)(self._bits, word), "int64").node
        known = intervals.interval(tracer, last)
        intervals.note(tracer, node, None if known is None else (0, known[1]))
        return as_number(tracer, node, int)


class TracedGenerator(TracedRandom):
    """A `Generator`: its methods take what NumPy's take."""

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._plain(size, lambda bits: bits.next_double(), dtype, out)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._plain(size, traced_copy(distributions.standard_normal), dtype, out)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        draw = distributions.standard_exponential if method == "zig" else distributions.inverted_exponential
        return self._plain(size, traced_copy(draw), dtype, out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(scale, size, traced_copy(distributions.standard_normal), loc)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(scale, size, traced_copy(distributions.standard_exponential))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._uniform(low, high, size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        return self._integers(low, high, size, dtype, endpoint, traced_copy(distributions.bounded))

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        if p is not None or not replace or not shuffle or axis != 0:
            raise UnsupportedError("Generator.choice with probabilities, or without replacement")
        if type(a) in (int, SymInt) or (type(a) is Traced and not a.ndim):
            index = self.integers(0, a, size)
            return as_number(self._tracer, index.node, int) if size is None else index
        array = of_array(a)
        index = self.integers(0, array.shape[0], size)
        if size is None:
            known = intervals.interval(self._tracer, array.shape[0])
            intervals.note(self._tracer, index.node, None if known is None else (0, known[1] - 1))
        return array[index]


class _KeptNormal:
    """The normal number that the polar method keeps back, if any."""

    def __init__(self, tracer: Tracer, arrays: Sequence[Any]) -> None:
        self.arrays = arrays
        self.is_there, self.number = (StateWord(tracer, array[0].node) for array in arrays)

    def write_back(self) -> None:
        for array, word in zip(self.arrays, (self.is_there, self.number), strict=True):
            if word.storage.written:
                array[0] = word.value


class TracedRandomState(TracedRandom):
    """The functions of `numpy.random`."""

    owner, is_global = "numpy.random", True
    _exponential = staticmethod(distributions.legacy_exponential)

    def __init__(self, tracer: Tracer, kind: str, arrays: Sequence[Any]) -> None:
        count = len(generator_states.PARTS[kind])
        super().__init__(tracer, kind, arrays[:count])
        self._kept = _KeptNormal(tracer, arrays[count:]) if arrays[count:] else None

    def write_back(self) -> None:
        super().write_back()
        if self._kept is not None:
            self._kept.write_back()

    def seed(self, seed: Any = None) -> None:
        """Seed the Mersenne twister with an int."""
        is_int = type(seed) in (int, SymInt) or (type(seed) is Traced and not seed.ndim and seed.dtype.kind == "i")
        if not is_int or type(self._bits) is not bit_generators.MT19937 or self._kept is None:
            raise UnsupportedError("numpy.random.seed of what is no int")
        traced_copy(distributions.check_seed)(seed)
        number = seed if type(seed) is int else fresh(self._tracer, as_int(self._tracer, seed), is_scalar=True)
        traced_copy(distributions.seed_twister)(self._bits, number)
        self._kept.is_there.value = self._kept.number.value = 0

    def _normal(self, bits: Any) -> Any:
        if self._kept is None:
            raise UnsupportedError("normal numbers of numpy.random, whose state lies elsewhere than in known NumPys")
        return traced_copy(distributions.legacy_normal)(bits, self._kept)

    _standard_normal = _normal

    def standard_normal(self, size: Any = None) -> Any:
        return self._drawn(size, self._normal)

    def randn(self, *shape: Any) -> Any:
        return self.standard_normal(shape or None)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(scale, size, self._normal, loc)

    def random_sample(self, size: Any = None) -> Any:
        return self._drawn(size, lambda bits: bits.next_double())

    random = ranf = sample = random_sample

    def rand(self, *shape: Any) -> Any:
        return self.random_sample(shape or None)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._uniform(low, high, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(scale, size, traced_copy(distributions.legacy_exponential))

    def standard_exponential(self, size: Any = None) -> Any:
        return self._drawn(size, traced_copy(distributions.legacy_exponential))

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        if type(replace) is not bool or not (type(size) in (int, SymInt) or size is None):
            raise UnsupportedError("numpy.random.choice of several dimensions")
        is_count = type(a) in (int, SymInt) or (type(a) is Traced and not a.ndim)
        array: Any = None if is_count else of_array(a)
        if array is not None and array.ndim != 1:
            raise UnsupportedError("numpy.random.choice of what is no vector")
        count = a if is_count else array.shape[0]
        if not replace and p is None:
            if size is not None and size > count:
                raise ValueError("Cannot take a larger sample than population when 'replace=False'")
            index = self.permutation(count)[0 if size is None else slice(size)]
        elif not replace:
            raise UnsupportedError("numpy.random.choice with probabilities, without replacement")
        elif p is None:
            index = self.randint(0, count, size)
        else:
            index = self._by_probability(p, count, size)
        if is_count:
            return as_number(self._tracer, index.node, int) if size is None else index
        return array[index]

    def _by_probability(self, p: Any, count: Any, size: Any) -> Any:
        """Indices drawn with probabilities. Calls with probabilities that NumPy may refuse bail out."""
        weights = METHODS["astype"](of_array(p), np.float64)
        if weights.ndim != 1 or weights.shape[0] != count:
            raise ValueError("'a' and 'p' must have same size")
        error = np.abs(np.sum(weights) - 1.0)
        is_right = np.all(weights >= 0) & (error <= 1e-9)  # NumPy: 1.5e-8
        self._tracer.checks.append(builder.elementwise("logical_not", is_right.node))
        running = np.cumsum(weights)
        running = running / running[-1]
        return METHODS["astype"](of_array(np.searchsorted(running, self.random_sample(size), side="right")), np.int64)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        result = self._integers(low, high, size, dtype, False, traced_copy(distributions.masked))
        if size is None and dtype is int:
            return as_number(self._tracer, result.node, int)
        return result


OF_OWNER = {"Generator": TracedGenerator, "RandomState": TracedRandomState}
