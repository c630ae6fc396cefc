"""Functions with unsupported constructs, on the line marked `here`."""
# ruff: noqa: B006, NPY002

from typing import Any

import numpy as np
from planted import falls_back, refused


@falls_back("numpy.extract")
def unknown_function(x: Any, n: Any) -> Any:
    y = x * n
    z = np.extract(y, y)  # here
    return z + 1


@falls_back("'names'", "list")
def growing_list(x: Any, n: Any) -> Any:
    names = []
    i = 0
    while x[i % 9] < 1.5:
        names.append(x * i)  # here
        i += 1
    return len(names)


@falls_back("'names'", "list")
def growing_now_and_then(x: Any, n: Any) -> Any:
    names = []
    for one in x:
        if one > 0.5:
            names.append(x * one)  # noqa: PERF401  # here
    return len(names)


@falls_back("dict of keys")
def growing_dict(x: Any, n: Any) -> Any:
    seen = {}
    i = 0
    while x[i % 9] < 1.5:
        seen[i] = 1  # here
        i += 1
    return len(seen)


@falls_back("yield")
def yielding(x: Any, n: Any) -> Any:
    for i in range(n):
        yield x[i % 9]  # here


@falls_back("async")
async def awaited(x: Any, n: Any) -> Any:  # here
    return x * n


COUNTER = 0


@falls_back("COUNTER", "global")
def writes_a_global(x: Any, n: Any) -> Any:
    global COUNTER
    for i in range(n):
        x[0] += i
    COUNTER = n  # here
    return x


@falls_back("print")
def printing(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[i % 9]
        if s > 1e9:
            print(s)  # noqa: T201  # here
    return s


@refused("'value'")
def other_types(x: Any, n: Any) -> Any:
    value = 0
    for i in range(n):
        if x[i % 9] > 0.5:
            value = x[1:]  # here
    return value


@falls_back("value of an expression", "shape (8)")
def other_shapes(x: Any, n: Any) -> Any:
    y = x
    for i in range(n):
        y = y[1:] if i < 3 else y  # here
        y = y * 2
    return y


@falls_back("'y'")
def other_dtypes(x: Any, n: Any) -> Any:
    y = np.zeros(9, np.float32)
    for i in range(n):
        if i > 3:
            x[0] += 1.0
        y = y + x  # here
    return y


@refused("the result", "np.where")
def returned_shapes(x: Any, n: Any) -> Any:
    for i in range(n):
        if x[i % 9] > 1.0:
            return x[1:]
    return x  # here


@falls_back("a power")
def large_power(x: Any, n: Any) -> Any:
    s = 0
    for i in range(n):
        s += 2 ** (i % 5)  # here
    return s


@falls_back("an operand of dtype")
def long_doubles(x: Any, n: Any) -> Any:
    z = x * np.longdouble(2)  # here
    return z * n


@falls_back("`del`")
def deleted(x: Any, n: Any) -> Any:
    y, parts = x * 2, [1.0, 2.0]
    for i in range(n):
        if y[i % 9] > 0:
            y[0] += i
    del parts[0]  # here
    return y * parts[0]


@falls_back("'store'", "list")
def default_that_changes(x: Any, n: Any, store: Any = []) -> Any:
    s = 0.0
    for i in range(n):
        s += i
    store.append(0)  # here
    return s + len(store) * 0


@falls_back("'recursive'", "recurs")
def recursive(x: Any, n: Any) -> Any:
    if x[0] > 1e9:
        return recursive(x * 0.5, n)  # here
    return x


@falls_back("numpy.random")
def drawing(x: Any, n: Any) -> Any:
    np.random.seed([0])  # here
    return x + np.random.random() * 0 + n


@refused("'y'", "np.where")
def array_of_a_branch(x: Any, n: Any) -> Any:
    y = x
    if x[0] > 0.5:
        y = x[1:]  # here
    return y


@refused("'total'", "int")
def an_int_of_the_running_code(x: Any, n: Any) -> Any:
    total = x.sum()
    return np.ones((4, 6)).reshape(int(total * 0 + 3), 8)  # here


@falls_back("`try`", "another function")
def left_by_finally(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        try:  # here
            if x[i % 9] > 0.5:
                s += 1.0
        finally:
            continue  # noqa: B012
    return s
