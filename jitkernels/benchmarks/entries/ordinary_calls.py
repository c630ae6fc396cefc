"""``jitkernels bench ordinary-calls``: everyday functions against NumPy's, in all forms of arguments that users pass.

Everyday functions return floating-point numbers, float64 for integers. If NumPy's equivalent returns another dtype, it
is made to return the same one: by ``dtype=`` if it is a ufunc, else by converting the arrays first. Results in the
other byte order are converted to native order.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.schema_queries import inputs_of
from jitkernels.benchmarks.peers import OrdinaryCall, equivalent_of, has_equivalent, ordinary_calls_of
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean, settled_calls

ELEMENTS = {TINY_TAG: (8,), "ci": (8, 960), "full": (8, 960, 99_840)}
"""Sizes of the calls, by the tag of the run."""
PROMISED_LEAST, PROMISED_CALL_MEAN = 1.0, 2.0
SECONDS_PER_CALL = 0.2
"""Share of a line's seconds for a call: there are hundreds, all short."""


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = {f"{line.group} {line.case}": line.speed_over("numpy") or 0.0 for line in lines}
    if not ratios:
        return Verdict("no call has an equivalent")
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < PROMISED_LEAST)
    mean, (least, worst) = geometric_mean(list(ratios.values())), min((r, n) for n, r in ratios.items())
    return Verdict(
        f"{len(ratios)} ordinary calls: geometric mean {mean:.2f} times NumPy's speed (promised: "
        f"{PROMISED_CALL_MEAN}), lowest {least:.2f} ({worst}), {len(slower)} slower than NumPy (promised: none)",
        not slower and mean >= PROMISED_CALL_MEAN,
    )


@benchmark("ordinary-calls", verdict=verdict, against="numpy")
def ordinary_calls(settings: Settings) -> Iterator[Line]:
    """Every everyday function against NumPy's equivalent: forms, dtypes, broadcasts, axes, every kind of out."""
    for schema in settings.schemas:
        numpy, name = equivalent_of(schema), schema.kernel_type.name.lower()
        if numpy is None or not has_equivalent(schema):
            continue
        indices = [i for i, argument in enumerate(inputs_of(schema)) if argument.dtype is not None]
        for elements in ELEMENTS[settings.tag]:
            pairs = zip(ordinary_calls_of(schema, elements), ordinary_calls_of(schema, elements), strict=True)
            for own, other in settings.limited(pairs, 3):
                ours_call = partial(getattr(jk, name), *own.arguments, **own.named)
                form = f"{elements} elements, {own.form}"
                with np.errstate(all="ignore"):
                    calls = {"jitkernels": ours_call, "numpy": of_the_same_dtype(numpy, other, ours_call(), indices)}
                    line = settled_calls(name, form, calls, SECONDS_PER_CALL * settings.seconds)
                yield line


def of_the_same_dtype(
    numpy: Callable[..., Any], call: OrdinaryCall, wanted: Any, integers: Sequence[int] = ()
) -> partial[Any]:
    """Return a call of NumPy's equivalent with results of dtype `wanted`, converting arguments if it has no ``dtype=``.

    The arguments at the indices `integers` stay integers, as for the kernel.
    """
    plain = partial(numpy, *call.arguments, **call.named)
    converting = partial(_converting, numpy, np.float64, integers, *call.arguments, **call.named)
    try:
        plain_result = plain()
    except (TypeError, OverflowError):  # a difference of bools, or -1 in an unsigned type
        return converting
    if isinstance(plain_result, tuple) or isinstance(wanted, tuple) or call.named.get("out") is not None:
        return plain
    dtype, own = np.asarray(wanted).dtype, np.asarray(plain_result).dtype
    if not own.isnative and own.newbyteorder("=") == dtype:
        return partial(_in_own_order, numpy, *call.arguments, **call.named)
    floats = [value for i, value in enumerate(call.arguments) if i not in integers]
    if dtype == own or dtype.kind != "f" or not any(map(_is_converted, floats)):
        return plain
    if isinstance(numpy, np.ufunc):
        return partial(numpy, *call.arguments, **call.named, dtype=dtype)
    return partial(_converting, numpy, dtype, integers, *call.arguments, **call.named)


def _is_converted(value: Any) -> bool:
    """Return whether jitkernels converts an argument to float64 or float32: arrays of integers, bools or float16."""
    return isinstance(value, np.ndarray) and (value.dtype.kind in "iub" or value.dtype == np.float16)


def _in_own_order(numpy: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    result = numpy(*arguments, **named)
    return result.astype(result.dtype.newbyteorder("="))


def _converting(
    numpy: Callable[..., Any], dtype: Any, integers: Sequence[int], /, *arguments: Any, **named: Any
) -> Any:
    floats = [i not in integers and _is_converted(value) for i, value in enumerate(arguments)]
    return numpy(*(v.astype(dtype) if f else v for f, v in zip(floats, arguments, strict=True)), **named)
