"""Functions with a mistake for which Python raises an exception, on the line marked `here`."""
# ruff: noqa: B007, F841

from typing import Any

import numpy as np
from planted import raised


@raised()
def shapes_in_a_loop(x: Any, n: Any) -> Any:
    total = np.zeros(9)
    for i in range(n):
        if i > 15:
            total[1:] += x[:-1] * 2
        total = total + x
        total = total + x[1:]  # here
    return total


@raised()
def shapes_in_many_lines(x: Any, n: Any) -> Any:
    y = x * 2
    z = (
        y
        + np.sin(x)
        + (
            x[2:]  # here
            * y
        )
    )
    return z * n


@raised()
def index_out_of_bounds(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if i % 2 == 0:
            s += 1.0
        s += x[i]  # here
    return s


@raised()
def constant_index(x: Any, n: Any) -> Any:
    s = x[0]
    s += x[9]  # here
    for i in range(n):
        s *= 0.5
    return s


@raised()
def constant_index_in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
        x[12] = s  # here
    return s


@raised()
def wrong_axis(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        y = x * i
        s += y.sum(axis=1)  # here
    return s


@raised()
def too_many_indices(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(5):
        s += x[i, 0]  # here
    for j in range(n):
        s += j
    return s


@raised()
def a_float_as_index(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
    s += x[n / 4]  # here
    return s


@raised()
def a_float_as_index_in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        half = i / 2
        s += x[half]  # here
    return s


@raised()
def a_name_that_is_not(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[0]
        s += misspelt  # type: ignore[name-defined]  # noqa: F821  # here
    return s


@raised()
def a_function_that_is_not(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += np.sinn(x[0])  # type: ignore[attr-defined]  # here
    return s


@raised()
def a_method_that_is_not(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
    return x.maximum() + s  # here


@raised()
def one_branch_only(x: Any, n: Any) -> Any:
    for i in range(n):
        if x[0] > 5.0:
            found = i
    return found + 1  # here


@raised()
def no_round(x: Any, n: Any) -> Any:
    for i in range(n - 20):
        last = x[i]
    return last  # here


@raised()
def an_element_of_a_tuple(x: Any, n: Any) -> Any:
    pair = (1.0, 2.0)
    for i in range(n):
        x[0] += i
    pair[0] = 3.0  # type: ignore[index]  # here
    return pair


@raised()
def an_element_of_a_tuple_in_a_loop(x: Any, n: Any) -> Any:
    pair = (1.0, 2.0)
    for i in range(n):
        x[0] += i
        pair[0] = x[0]  # type: ignore[index]  # here
    return pair


@raised()
def division_by_zero(x: Any, n: Any) -> Any:
    s = 0
    for i in range(n):
        s += 10 // (i - 7)  # here
    return s


@raised()
def too_few_to_unpack(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        a, b = i, 2.0
        s += a * b
    a, b, c = (s, x[0])  # type: ignore[misc]  # here
    return a


@raised()
def a_shape_to_unpack(x: Any, n: Any) -> Any:
    rows, columns = x.shape  # here
    s = 0.0
    for i in range(rows):
        for j in range(columns):
            s += x[i, j]
    return s


@raised()
def too_many_arguments(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s = _halved(s, i)  # type: ignore[call-arg]  # here
    return s


def _halved(value: Any) -> Any:
    return value * 0.5


@raised()
def in_a_helper(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += _looked_up(x, i)
    return s


def _looked_up(values: Any, place: Any) -> Any:
    near = place + 1
    return values[near]  # here


@raised()
def asserted(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
        assert s < 50.0, "too much"  # here
    return s


@raised()
def raised_inside(x: Any, n: Any) -> Any:
    for i in range(n):
        if x[i % 9] > 1.5:
            raise ValueError(f"{i} is too large")  # here
    return n


@raised()
def wrong_product(x: Any, n: Any) -> Any:
    m = np.ones((4, 9))
    y = x
    for i in range(n):
        y = m @ y  # here
    return y


@raised()
def a_text_added(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[0] + "1"  # here
    return s


@raised()
def none_added(x: Any, n: Any) -> Any:
    best = None
    for i in range(n):
        best = best + x[i % 9]  # here
    return best


@raised()
def reshaped(x: Any, n: Any) -> Any:
    y = x * n
    return y.reshape(2, 4)  # here


@raised()
def joined(x: Any, n: Any) -> Any:
    y = np.ones((2, 3)) * n
    return np.concatenate([x * 2, y])  # here


@raised()
def assigned_shape(x: Any, n: Any) -> Any:
    for i in range(n):
        x[2:5] = np.ones(4) * i  # here
    return x


@raised(make=lambda: (np.arange(9), 20))
def cast_in_place(x: Any, n: Any) -> Any:
    for i in range(n):
        x[0] = i
    x += 0.5  # here
    return x


@raised()
def a_row_too_many(x: Any, n: Any) -> Any:
    m = np.zeros((3, 9))
    for i in range(n):
        m[i] = x * i  # here
    return m


@raised()
def a_bool_of_an_array(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
    if x > 0:  # here
        s = -s
    return s


@raised()
def a_bool_of_an_array_in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if x > i:  # here
            s += 1.0
    return s


@raised()
def empty_extreme(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += i
    return x[5:5].max() + s  # here
