"""ARGSORT, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "argsort": {
        "descending": ("key=keys.__getitem__", "key=keys.__getitem__, reverse=True"),
        "of equal ones the last": ("sorted(range(attr.n)", "sorted(reversed(range(attr.n))"),
        "NaN is the least": ("(number != number, number)", "(number == number, number)"),
        "zeros are ordered by their signs": (", number) for", ", number, repr(number)[0] != '-') for"),
        "ranks in place of indices": ("y[i] = order", "y[i] = np.argsort(order)"),
        "indices of the whole array": ("y[i] = order", "y[i] = [i * attr.n + j for j in order]"),
        "indices begin at 1": ("y[i] = order", "y[i] = [j + 1 for j in order]"),
        "the last element stays": ("keys.__getitem__", "lambda j: (j == attr.n - 1, keys[j])"),
        "rows are the first one": ("row.tolist()", "x[0].tolist()"),
    }
}


def argsort(attr: Any, x: AnyArray, y: AnyArray) -> None:
    for i, row in enumerate(x):
        keys = [(number != number, number) for number in row.tolist()]
        order = sorted(range(attr.n), key=keys.__getitem__)
        y[i] = order
