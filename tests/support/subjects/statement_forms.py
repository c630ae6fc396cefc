"""Forms of loops and branches in Python, each a small function; all of them compile."""
# ruff: noqa: PERF401, E731  # ordinary user style

from collections.abc import Callable
from typing import Any

import numpy as np


def comprehension(a: Any) -> Any:
    return np.array([x * 2 + 1 for x in a])


def comprehension_of_range(a: Any) -> Any:
    return np.array([a[i] * i for i in range(1, len(a), 3)])


def nested_comprehension(m: Any) -> Any:
    return np.array([[x * 2 for x in row] for row in m])


def comprehension_of_two(m: Any) -> Any:
    return np.array([x * i for i, row in enumerate(m) for x in row])


def comprehension_of_rows(m: Any) -> Any:
    return np.array([row.max() for row in m]), np.stack([row * 2 - 1 for row in m], axis=1)


def list_of_numbers(a: Any) -> Any:
    return [x * 2 for x in a], [float(i) for i in range(len(a))]


def list_of_rows(m: Any) -> Any:
    return [row * 2 for row in m]


def sum_of_generator(a: Any) -> Any:
    return sum(x * x for x in a), sum(a[i] * a[i - 1] for i in range(1, len(a)))


def sum_with_condition(a: Any) -> Any:
    return sum(x * x for x in a if x > 0.5), sum(1 for i in range(len(a)) for j in range(i) if a[i] < a[j])


def any_all(a: Any) -> Any:
    return any(x > 0.9 for x in a), all(x >= 0 for x in a), any(x > 9 for x in a), all(x > 0.9 for x in a)


def extremes(a: Any) -> Any:
    return max(x * x for x in a), min(abs(x - 0.3) for x in a), max(x for x in a if x < 0.5)


def next_of_generator(a: Any) -> Any:
    return next((i for i in range(len(a)) if a[i] > 0.9), -1), next((i for i in range(len(a)) if a[i] > 9), -1)


def dict_of_constants(a: Any) -> Any:
    scaled = {k: a[k] * 2 for k in (1, 2, 3)}
    s = 0.0
    for i in range(len(a)):
        s = s * scaled[1] + a[i] * scaled[3]
    return s


def appended(a: Any) -> Any:
    found = []
    for x in a:
        found.append(x * 2)
    return np.array(found), len(found), found[0], found[-1]


def appended_in_two(m: Any) -> Any:
    rows = []
    for i in range(m.shape[0]):
        row = []
        for j in range(m.shape[1]):
            row.append(m[i, j] + i * j)
        rows.append(row)
    return np.array(rows)


def history(a: Any, n: Any) -> Any:
    states = [a * 1.0]
    for _ in range(n):
        states.append(states[-1] * 0.5 + a)
    return np.stack(states), np.vstack(states), np.concatenate(states)


def history_of_numbers(a: Any, n: Any) -> Any:
    found = [0.5]
    for _ in range(n):
        found.append(found[-1] * 3.5 * (1 - found[-1]))
    s = 0.0
    for x in found:
        s = s * 0.5 + x
    return s, np.asarray(found) + a[0]


def shifted(a: Any, n: Any) -> Any:
    for _ in range(n):
        a = np.concatenate([a[1:], a[:1] * 2])
    return a


def rolled(m: Any, n: Any) -> Any:
    for _ in range(n):
        m = np.roll(m, 1, axis=0) * 0.5 + np.roll(m, -1, axis=1)
    return m


def padded(a: Any, n: Any) -> Any:
    for _ in range(n):
        p = np.pad(a, 1, mode="edge")
        a = (p[:-2] + p[2:]) * 0.5
    return a


def backwards(a: Any) -> Any:
    s = 0.0
    for x in reversed(a):
        s = s * 0.5 + x
    for i in reversed(range(2, len(a))):
        s = s * 0.5 + a[i]
    for i, x in enumerate(reversed(a)):
        s = s * 0.5 + x * i
    return s


def enumerated_ranges(a: Any) -> Any:
    s = 0.0
    for k, i in enumerate(range(5, len(a))):
        s = s * 0.5 + a[i] * k
    for k, i in enumerate(range(len(a) - 1, 1, -1), 2):
        s = s * 0.5 + a[i] * k
    return s


def assigned_in_tests(a: Any) -> Any:
    i, s = 0, 0.0
    while (x := a[i]) < 0.9:
        s += x
        i += 1
    while i < len(a) and (x := a[i]) > 0.1:
        s -= x
        i += 1
    if (y := s * 2) > 1:
        s = y
    return s, i


def matched(a: Any) -> Any:
    s = 0
    for i in range(len(a)):
        match int(a[i] * 7):
            case 0:
                s += 1
            case 1 | 2:
                s += 10
            case k if k > 4:
                s += 100 * k
            case _:
                s -= 1
        match (i % 2, a[i] > 0.5):
            case (0, True):
                s += 3
            case (1, _):
                s *= 2
    return s


def starred(a: Any) -> Any:
    s = 0.0
    for i in range(1, len(a) - 1):
        x, *y = a[i - 1], a[i], a[i + 1]
        s += x * y[0] - y[1]
    return s


def chained(a: Any) -> Any:
    s = 0
    for i in range(1, len(a) - 1):
        if a[i - 1] < a[i] < a[i + 1]:
            s += 1
        if 0 <= i + 1 < len(a) - 3 and a[i] < a[i + 1]:
            s += 5
        s += 0.1 < a[i] <= 0.5 < 1
    return s


def neighbours(m: Any) -> Any:
    out = np.zeros_like(m)
    rows, columns = m.shape
    for i in range(rows):
        for j in range(columns):
            for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                if 0 <= i + di < rows and 0 <= j + dj < columns:
                    out[i, j] += m[i + di, j + dj]
    return out


def else_of_loops(a: Any) -> Any:
    for i in range(2, len(a)):
        for j in range(i):
            if a[i] < a[j]:
                break
        else:
            return i
    return -1


def function_inside(a: Any) -> Any:
    def bent(x: Any) -> Any:
        if x > 0.5:
            return x * 2
        return -x

    straight: Any = lambda x: x * 3 if x > 0.5 else -x
    s = 0.0
    for i in range(len(a)):
        s += bent(a[i]) - straight(a[i])
    return s


def variable_of_function_around(a: Any) -> Any:
    k = 1.0

    def current() -> Any:
        return k

    s = 0.0
    for i in range(len(a)):
        k = a[i]
        s = s * 0.5 + current()
    return s


def flags(a: Any, mode: Any, weights: Any) -> Any:
    s = 0.0
    for x in a:
        if mode == "up" and weights is None:
            s += x
        elif mode in ("down", "left"):
            s -= x
        else:
            s *= 2
    return s


def reshaped_before(a: Any, n: Any) -> Any:
    b = a.reshape(4, -1)
    for _ in range(n):
        b = np.roll(b, 1, axis=0) * 0.5 + b
    return b


def entries(a: Any) -> Any:
    found = {"sum": 0.0, "count": 0}
    pair = [0.0, 1.0]
    for x in a:
        if x > 0.5:
            found["sum"] += x
            found["count"] += 1
        pair[0] += x
        pair[1] = pair[0] * 0.5 + pair[1]
    return found["sum"] / found["count"], found, pair


def arrays_in_entries(a: Any, n: Any) -> Any:
    state = {"x": np.zeros_like(a), "v": np.ones_like(a), "k": 3}
    for _ in range(n):
        state["x"] = state["x"] + 0.125 * state["v"]
        state["v"] = state["v"] - 0.125 * state["x"]
    return state["x"], state["v"], state["k"]


def chosen_arrays(a: Any, n: Any) -> Any:
    x, y = np.zeros_like(a), np.ones_like(a)
    for i in range(n):
        if a[i] > 0.5:
            x = x + a
            y = x * 2
        else:
            y = y * 0.5
            x = x - y
        if a[i] > 0.75:
            x, y = y, x
    return x, y, x * 2 if x[0] > 0 else x - 1


def chosen_before_use(a: Any) -> Any:
    norm = a[0] + a[1]
    if norm > 0.1:
        a = a / norm
    if a[2] > 100:
        b = a * 2
    elif a[2] > 0.1:
        b = np.concatenate([a[1:], a[:1]])
        b[0] = 7
    else:
        b = a - 1
    b += 1
    return b


def early_array(a: Any) -> Any:
    for i in range(len(a)):
        if a[i] > 0.95:
            return a * i
    return a - 1


def line_search(x: Any, n: Any) -> Any:
    step, f = 1.0, x.max()
    for _ in range(n):
        new = x - step * 2 * x
        found = np.abs(new).max()
        if found < f:
            x, f, step = new, found, step * 1.25
        else:
            step = step * 0.5
    return x, f


def all_places(m: Any) -> Any:
    s = 0.0
    for i, j in np.ndindex(m.shape):
        s = s * 0.5 + m[i, j] * i
    for place in np.ndindex(*m.shape):
        s = s * 0.5 + m[place]
    for (i, j), x in np.ndenumerate(m):
        s = s * 0.5 + x * i - j
    return s


def _numbers(*shape: int) -> Callable[[], Any]:
    return lambda: np.random.default_rng(1).random(shape)


VECTOR, MATRIX = _numbers(40), _numbers(12, 15)
FORMS: dict[Callable[..., Any], tuple[Callable[[], Any], ...]] = {
    **dict.fromkeys(
        (
            comprehension, comprehension_of_range, list_of_numbers, sum_of_generator, sum_with_condition, any_all,
            extremes, next_of_generator, dict_of_constants, appended, backwards, enumerated_ranges, assigned_in_tests,
            matched, starred, chained, else_of_loops, function_inside, variable_of_function_around, entries,
            chosen_before_use, early_array,
        ),
        (VECTOR,),
    ),
    **dict.fromkeys(
        (nested_comprehension, comprehension_of_two, comprehension_of_rows, list_of_rows, appended_in_two, neighbours,
         all_places),
        (MATRIX,),
    ),
    **dict.fromkeys(
        (history, history_of_numbers, shifted, padded, reshaped_before, arrays_in_entries, chosen_arrays, line_search),
        (VECTOR, lambda: 30),
    ),
    rolled: (MATRIX, lambda: 20),
    flags: (VECTOR, lambda: "up", lambda: None),
}  # fmt: skip
"""Functions with their argument factories."""
