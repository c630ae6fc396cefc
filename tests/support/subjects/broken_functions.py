"""Functions that break: beside jumps, handlers, aliases, closures and unbound names."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

SINK = io.StringIO()
LOG: list[Any] = []
COUNTER = 0


def note(*values: Any) -> None:
    """Have an effect that no trace can have."""
    print(*values, file=SINK)
    LOG.append(values)


def nested_loops(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        y = np.exp(-x) * i + 1
        for j in range(n):
            z = y * j + np.sqrt(y)
            if j == i:
                note(i, j)
            total += z.sum()
        total -= y.max() * 2
    return total, z


def in_branches(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    if n > 2:
        note("large")
        y = np.exp(-y) + y * 3
    elif n > 1:
        y = y * y - 1
    else:
        note("small")
    return (y * y + 1).sum()


def comprehension(x: Any, n: Any) -> Any:
    y = np.sqrt(x * x + 1)
    texts = [f"{(y * i + 1).sum():.3f}" for i in range(n)]
    z = y * y + len(texts)
    return texts, z.sum() * 2 + z


def jumps(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        y = x * i + 1
        if i == 1:
            note("skip")
            continue
        total += (y * y + 1).sum()
        if i > 3:
            note("stop")
            break
    else:
        total += 1000
    return total


def early_return(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    if n > 3:
        return y * y + 2
    note("late")
    for i in range(len(x)):
        if x[i] * 20 + i > 40:
            return x[i] * 2
    return (y * y).sum() + 1


def returns_from_loop(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    count = 0
    for i in range(len(x)):
        y[i] += i * 0.5
        if x[i] * n > 1.0:
            return x[i] * 2
        count += i
    note(count)
    return y.sum() * 2 + 1


def unbound_after_loop(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    for i in range(n):
        last = y * i + 2
        found = (last * last).sum() + 1
    note("n", n)
    z = y * y + 1
    if n:
        return (last * z + 1).sum() + found, i
    return z


def maybe_unbound(x: Any, n: Any) -> Any:
    if n > 1:
        extra = x * 2 + 1
    note(n)
    return (extra * x + 1).sum()


def deleted(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    note(1)
    z = y * y + n
    del y
    note(2)
    try:
        y = y + 1  # type: ignore[misc]  # noqa: F821, F841  # which is the error
    except UnboundLocalError as error:
        note(str(error))
    return z * 2 + 1


def handled(x: Any, n: Any) -> Any:
    done = 0
    y = x * 2 + 1
    try:
        done = 1
        z = y * y + 1
        done = 2
        value = z[n] * 2 + 1
        done = 3
        note("reached")
    except IndexError:
        note("caught", done)
        value = -1.0
    finally:
        note("finally", done)
    return (y * value + done).sum()


def passes_through(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    note("before")
    z = y * y + 1
    return z[n] * 2 + 1


def raises_between(x: Any, n: Any) -> Any:
    x += 1.0
    note("wrote")
    if n > 3:
        raise ValueError(f"n is {n}")
    x *= 2.0
    return x.sum() * 2 + 1


def writes_arguments(x: Any, n: Any) -> Any:
    x[1:] += x[:-1] * 2 + 1
    note(float(x[0]))
    y = x[::2]
    note(y.shape)
    y *= 3.0
    y += 1.0
    return y, x


def swaps(x: Any, n: Any) -> Any:
    a = x * 1.0
    b = np.zeros_like(x)
    for i in range(n):
        b[1:-1] = (a[:-2] + a[2:]) * 0.5 + i
        a, b = b, a
        note(i)
    return a, b


def same_object(x: Any, n: Any) -> Any:
    y = x
    z = x * 2 + 1
    note("y is x", y is x)
    y += z * 2 + 1
    return y is x, y, x


def closure(x: Any, n: Any) -> Any:
    scale = 2.0

    def scaled(v: Any) -> Any:
        return v * scale + 1

    y = scaled(x) * 2 + 1
    note("scale")
    scale = 3.0
    return scaled(y) * y + 1


def counts(x: Any, n: Any) -> Any:
    global COUNTER
    y = x * 2 + 1
    COUNTER += n
    return (y * COUNTER + 1).sum()


def growing(x: Any, n: Any) -> Any:
    history: list[float] = []
    y = x * 1.0
    while len(history) < n:
        y = np.exp(-y) * 2 + 1
        history.append(float((y * y).sum()))
        note(len(history))
    z = y * y + 1
    return history, np.array(history) * 2 + z.sum()


class Managed:
    """A context manager that suppresses an IndexError, which compiled code cannot read."""

    __slots__ = ("factor",)

    def __init__(self) -> None:
        self.factor = 2.0

    def __enter__(self) -> float:
        note("enter")
        return self.factor

    def __exit__(self, kind: object, *_: object) -> bool:
        note("exit")
        return kind is IndexError


MANAGED = Managed()


def suppressed(x: Any, n: Any) -> Any:
    y = x * 2 + 1
    z = y
    with MANAGED as factor:
        z = y * factor + 1
        w = z[n] * 2 + 1
        z = z * w + 1
    return z * 2 + 1


def recursive(x: Any, n: Any) -> Any:
    y = x * 0.5 + 1
    if n > 0:
        note(n)
        y = recursive(y, n - 1) * 2 + y
    return y * y * 0.01 + 1


def imports(x: Any, n: Any) -> Any:
    import math

    import numpy as other  # noqa: ICN001

    y = other.exp(-x) * 2 + 1
    note("imported")
    return (other.sqrt(y * y + 1) * math.sqrt(n)).sum()


def shadows(x: Any, n: Any) -> Any:
    sum = x * 2 + 1  # noqa: A001
    note("shadowed")
    max = sum * sum + n  # noqa: A001
    return max * 2 + sum


def mixed_types(x: Any, n: Any) -> Any:
    kind = "none"
    y = x * 2 + 1
    for i in range(n):
        if i == 2:
            kind = "two"
            y = y * y + i
    note(kind)
    return kind, y * 2 + 1, None if n else 1


def keywords_only(x: Any, n: Any, *, scale: float = 2.0, **others: Any) -> Any:
    y = x * scale + 1
    note(sorted(others))
    return (y * y + n).sum()


def defaults(x: Any, n: Any = 3, *rest: Any) -> Any:
    y = x * 2 + n
    note(len(rest))
    return (y * y + 1).sum()


def deleted_before(x: Any, n: Any) -> Any:
    """A variable that the statements before a break assign and delete, and those behind it look for."""
    y = x * 2 + n
    total = (y * y + 1).sum()
    del y
    note(total)
    try:
        return y
    except NameError:
        return (x * total + 1).sum()


def x_of(count: int = 40) -> Callable[[], Any]:
    """Return a maker of an array."""
    return lambda: np.linspace(0.5, 1.5, count)


def operands_of_operands(x: Any, n: Any) -> Any:
    """A part is divided again: the variables of its operands have other names than those around it."""
    return x + n, np.abs(x - 1) * 2, np.extract(np.round(x, n), x)


FUNCTIONS: dict[Callable[..., Any], tuple[int, ...]] = {
    nested_loops: (3, 1), in_branches: (3, 2, 0), comprehension: (3, 0), jumps: (2, 7), early_return: (5, 1),
    returns_from_loop: (1, 0),
    unbound_after_loop: (3, 0), maybe_unbound: (2, 0), deleted: (1,), handled: (3, 99), passes_through: (3, 99),
    raises_between: (1, 5), writes_arguments: (1,), swaps: (3, 4), same_object: (1,), closure: (1,), counts: (1,),
    growing: (5, 0), suppressed: (3, 99), recursive: (3,), imports: (2,), shadows: (1,), mixed_types: (4, 1),
    keywords_only: (1,), defaults: (1, 2), operands_of_operands: (1, 2), deleted_before: (1,),
}  # fmt: skip
"""Each function with values of its second argument."""
