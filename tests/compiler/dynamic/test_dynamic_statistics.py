"""Statistics of arrays of computed length, at the outside, in branches and in loops, against NumPy's."""

import warnings
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

X = np.random.default_rng(0).random(60)
GAPS = X.copy()
GAPS[[3, 17, 40]] = np.nan
LENGTHS = np.array([5, 60, 2, 0, 30, 1])

STATISTICS = {
    "median": np.median, "nanmedian": np.nanmedian, "sort": lambda v: np.sort(v)[len(v) // 2],
    "percentile": lambda v: np.percentile(v, 95), "nanpercentile": lambda v: np.nanpercentile(v, 5),
    "quantile": lambda v: np.quantile(v, 0.3), "nanquantile": lambda v: np.nanquantile(v, 0.7),
    "nansum": np.nansum, "nanprod": np.nanprod, "nanmax": np.nanmax, "nanmin": np.nanmin, "nanmean": np.nanmean,
    "nanvar": np.nanvar, "nanstd": lambda v: np.nanstd(v, ddof=1), "count_nonzero": np.count_nonzero,
    "cumsum": lambda v: np.cumsum(v)[len(v) - 1], "cumprod": lambda v: v.cumprod()[0],
    "zeros_like": lambda v: np.zeros_like(v).sum() + len(v),
    "ones_like": lambda v: np.ones_like(v, dtype=np.int32).sum(),
    "full_like": lambda v: np.full_like(v, 2.5)[len(v) - 1],
}  # fmt: skip


def selected(statistic: Any) -> Any:
    def function(x: Any, limit: float) -> Any:
        return statistic(x[x > limit])

    return function


def in_rows(statistic: Any) -> Any:
    def function(x: Any, lengths: Any) -> Any:
        out = np.zeros(len(lengths))
        for j in range(len(lengths)):
            chosen = x[: lengths[j]]
            chosen = chosen[chosen > 0.2]
            if len(chosen) > 1:
                out[j] = statistic(chosen)
        return out

    return function


def in_windows(statistic: Any) -> Any:
    def function(x: Any, size: int) -> Any:
        out = np.full(len(x), np.nan)
        for i in range(len(x)):
            window = x[max(0, i + 1 - size) : i + 1]
            window = window[~np.isnan(window)]
            if len(window) > 1:
                out[i] = statistic(window)
        return out

    return function


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("make", [selected, in_rows, in_windows], ids=lambda one: one.__name__)
def test_statistics(make: Any, name: str) -> None:
    function = make(STATISTICS[name])
    compiled = jk.jit(function, strict=True)
    cases: dict[str, Any] = {"selected": [0.5, 0.1, 0.9], "in_rows": [LENGTHS, LENGTHS[:3]], "in_windows": [7, 60]}
    for values in (X, GAPS):
        for other in cases[make.__name__]:
            np.testing.assert_allclose(compiled(values, other), function(values, other), rtol=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("values", [X, GAPS, X[:0], np.full(5, np.nan)], ids=["none", "gaps", "empty", "nan"])
def test_no_elements(name: str, values: Any) -> None:
    """What NumPy raises, warns of and returns where nothing is selected."""
    function = selected(STATISTICS[name])
    compiled = jk.jit(function)
    compiled(X, 0.1)

    def outcome(run: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = run(values, 5.0)
            except (IndexError, ValueError) as error:
                result = repr(error)
        return result, sorted(str(one.message) for one in caught)

    (result, warned), (expected, expected_warnings) = outcome(compiled), outcome(function)
    assert warned == expected_warnings
    if isinstance(expected, str):
        assert result == expected
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "float64"])
def test_dtypes(dtype: str) -> None:
    def function(x: Any, limit: Any) -> Any:
        chosen = x[x > limit]
        return (
            np.sort(chosen), np.cumsum(chosen), np.zeros_like(chosen), np.full_like(chosen, 3), np.nansum(chosen),
            np.nanmean(chosen), np.nanvar(chosen), np.nanmax(chosen), np.count_nonzero(chosen),
        )  # fmt: skip

    values = (X * 50).astype(dtype)
    for got, expected in zip(jk.jit(function, strict=True)(values, 9), function(values, 9), strict=True):
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_a_vector_of_quantiles() -> None:
    def function(x: Any, quantiles: Any, limit: float) -> Any:
        return np.percentile(x[x > limit], quantiles * 100), np.percentile(x, quantiles * 100)

    compiled, quantiles = jk.jit(function, strict=True), np.array([0.1, 0.25, 0.5, 1.0])
    for limit in (0.5, 0.1):
        np.testing.assert_allclose(compiled(X, quantiles, limit), function(X, quantiles, limit), rtol=1e-13)
    with pytest.raises(ValueError, match="Percentiles must be in"):
        compiled(X, quantiles + 0.5, 0.5)


def changed_copy(x: Any, bounds: Any) -> Any:
    total = 0.0
    for i in range(len(bounds) - 1):
        if bounds[i + 1] > bounds[i]:
            row = x[bounds[i] : bounds[i + 1]].copy()
            row[0] = 7.0
            for j in range(1, len(row)):
                row[j] = row[j - 1] * 0.5 + row[j]
            total += row.sum()
    return total


def source_changes(x: Any, bounds: Any) -> Any:
    x = x.copy()
    total = 0.0
    for i in range(len(bounds) - 1):
        row = x[bounds[i] : bounds[i + 1]] * 2.0
        x[bounds[i] : bounds[i + 1]] += 1.0
        total += row.sum() + row[1:3].sum() * 3.0
    return total + x.sum()


def histograms(x: Any, bounds: Any) -> Any:
    out = np.zeros(len(bounds))
    for j in range(len(bounds)):
        counts = np.zeros(bounds[j] + 1, dtype=np.int64)
        for value in x:
            counts[int(value * bounds[j])] += 1
        out[j] = counts.max() + counts[0]
    return out


def rows_of_matrix(x: Any, bounds: Any) -> Any:
    matrix = x.reshape(12, 5).copy()
    marked = np.zeros((12, 5))
    for i in range(5):
        chosen = np.flatnonzero(matrix[:, i] > 0.5)
        marked[chosen, i] = 1.0
        marked[0, i] += matrix[chosen, i].sum()
    return marked


def windows(x: Any, bounds: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        window = x[max(0, i - 4) : i + 1]
        if window.shape[0] > 2:
            out[i] = np.nanstd(window) + window[0]
        else:
            out[i] = -1.0
    return out


def branch(x: Any, bounds: Any) -> Any:
    number = int(x.max() * bounds[1]) + 1
    if number < 5:
        return -1.0
    sums = np.zeros(number)
    for value in x:
        sums[int(value * bounds[1])] += value
    best = 0.0
    for i in range(number):
        best = max(best, sums[i] * i)
    return best


@pytest.mark.parametrize(
    "function",
    [changed_copy, source_changes, histograms, rows_of_matrix, windows, branch],
    ids=lambda one: one.__name__,
)
def test_memory_in_loops_and_branches(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    for bounds in (np.array([0, 0, 5, 9, 9, 60]), np.array([0, 40, 50]), np.array([0, 3])):
        np.testing.assert_allclose(compiled(X, bounds), function(X, bounds), rtol=1e-12)


def test_items() -> None:
    def function(x: Any, i: int) -> Any:
        return x[i].item() + 1, (x > 3).any().item(), x.argmax().item()

    compiled, values = jk.jit(function, strict=True), np.array([3, 1, 5])
    result, expected = compiled(values, 2), function(values, 2)
    assert result == expected
    assert list(map(type, result)) == list(map(type, expected))


def test_a_range_to_a_computed_end() -> None:
    def function(n: int, begin: int, step: int) -> Any:
        out = np.zeros(2**n)
        for i in range(begin, 2**n, step):
            out[i] = i
        return out

    compiled = jk.jit(function, strict=True)
    for arguments in ((5, 0, 1), (5, 1, 2), (6, 3, 5)):
        np.testing.assert_array_equal(compiled(*arguments), function(*arguments))


def tail_mean(x: Any, cutoff: float) -> Any:
    chosen = x[~np.isnan(x)]
    if len(chosen) == 0:
        return np.nan
    place = int((len(chosen) - 1) * cutoff)
    return np.mean(np.partition(chosen, place)[: place + 1])


def around_a_place(x: Any, cutoff: float) -> Any:
    place = int(cutoff * 10)
    ordered = np.partition(x[x > 0.1], place)
    return ordered[place], ordered[:place].max(), ordered[place + 1 :].sum(), ordered[place:].min()


@pytest.mark.parametrize("function", [tail_mean, around_a_place], ids=lambda one: one.__name__)
def test_partitions(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    for cutoff in (0.3, 0.9, 0.1):
        for values in (X, GAPS):
            np.testing.assert_allclose(compiled(values, cutoff), function(values, cutoff), rtol=1e-13)


def test_the_order_of_a_partition_is_numpys() -> None:
    def function(x: Any, place: int) -> Any:
        return np.partition(x[x > 0.1], place)

    compiled = jk.jit(function)
    np.testing.assert_array_equal(compiled(X, 3), function(X, 3))
    with pytest.raises(ValueError, match="out of bounds"):
        compiled(X, 100)


def groups_of_columns(a: Any, lengths: Any) -> Any:
    a = a.copy()
    out = np.empty((a.shape[0], len(lengths)))
    begin = 0
    for group in range(len(lengths)):
        end = begin + lengths[group]
        out[:, group] = np.sum(a[:, begin:end], axis=1)
        a[:, begin:end] = group
        begin = end
    return out, a


def elements_of_columns(a: Any, lengths: Any) -> Any:
    begin, total = 0, 0.0
    for group in range(len(lengths)):
        end = begin + lengths[group]
        total += a[:, begin:end].sum(axis=-1)[2] + a[:, begin:end][1, 0] + a[1:, begin:end].T[0].sum()
        begin = end
    return total, begin


@pytest.mark.parametrize("function", [groups_of_columns, elements_of_columns], ids=lambda one: one.__name__)
@pytest.mark.parametrize("order", ["C", "F"])
def test_groups_of_columns(order: Any, function: Any) -> None:
    values = np.asarray(X[:45].reshape(5, 9), order=order)
    compiled = jk.jit(function, strict=True)
    for lengths in (np.array([2, 3, 4]), np.array([9]), np.array([1, 1, 1, 2])):
        results = zip(compiled(values, lengths), function(values, lengths), strict=True)
        for result, expected in results:
            np.testing.assert_allclose(result, expected, rtol=1e-13)


def sorted_sum(x: Any) -> Any:
    values = np.zeros(int(x.sum() * 20) + 1)
    values[-1] = 3.0
    return np.sort(values)[len(values) - 1] + np.sort(values[: len(x)]).sum()


def sorted_in_a_branch(x: Any) -> Any:
    if x.sum() < 1:
        return -1.0
    values = np.zeros(int(x.sum() * 20) + 1)
    for i in range(len(values)):
        values[i] = -i
    return np.median(values) + np.sort(values[: len(x)])[0]


@pytest.mark.parametrize("function", [sorted_sum, sorted_in_a_branch], ids=lambda one: one.__name__)
def test_sorts_of_arrays_that_grow(function: Any) -> None:
    """The call restarts with more memory than the code for few elements is for."""
    compiled = jk.jit(function, strict=True)
    for values in (X[:3], X, X[:5]):
        np.testing.assert_allclose(compiled(values), function(values), rtol=1e-13)


def test_shifts() -> None:
    def function(x: Any, i: int) -> Any:
        levels = 0
        while (1 << (levels + 1)) <= len(x):
            levels += 1
        return levels, 3 << int(x[i])

    compiled = jk.jit(function)
    for number in (0, 3, 60, 61, 62, 200):
        values = np.array([number, 1, 2])
        assert compiled(values, 0) == function(values, 0)
    with pytest.raises(ValueError, match="negative shift count"):
        compiled(np.array([-1]), 0)


def test_selected_elements_at_indices() -> None:
    def function(x: Any, indices: Any, limit: float) -> Any:
        out = np.zeros((3, indices.size))
        for i in range(3):
            chosen = x[x > limit * i]
            out[i] = (chosen * 2)[indices.reshape(-1)]
        return out, x[x > limit][indices]

    compiled = jk.jit(function)
    for indices in (np.array([0, -1, 5]), np.array([[0, 1], [2, 3]], np.int32), np.array([], np.int64)):
        for got, expected in zip(compiled(X, indices, 0.2), function(X, indices, 0.2), strict=True):
            np.testing.assert_array_equal(got, expected)
    for index in (60, 45, -61):
        with pytest.raises(IndexError, match="out of bounds"):
            compiled(X, np.array([0, index]), 0.3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STATISTICS)
def test_infinities(name: str) -> None:
    function = selected(STATISTICS[name])
    compiled = jk.jit(function)
    for infinities in ((np.inf,), (-np.inf,), (np.inf, -np.inf)):
        x = X.copy()
        x[[5, 30][: len(infinities)]] = infinities
        for limit in (0.5, -np.inf):
            np.testing.assert_allclose(compiled(x, limit), function(x, limit))
