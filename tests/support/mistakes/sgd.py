"""SGD, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "sgd": {
        "row numbers are not checked": ("    attr.check_data((param, grad, rows, out))\n", ""),
        "all but the last row number are checked": ("grad, rows, out))", "grad, rows[:-1], out))"),
        "negative row numbers are let through": ("grad, rows, out))", "grad, abs(rows), out))"),
        "of several steps of a row the last counts": ("wide[row] - step", "param[row] - step"),
        "of several steps of a row the first counts": (
            "        wide[row] =",
            "        if row in list(rows[:i]):\n            continue\n        wide[row] =",
        ),
        "the gradient of the row's own number": ("grad[i]", "grad[row % len(grad)]"),
        "up the gradient": ("wide[row] - step", "wide[row] + step"),
        "rate is forgotten": ("WIDE(attr.lr) * grad", "grad"),
        "other rows are left as they are": ("out[...] = wide", "out[rows] = wide[rows]"),
        "other rows take a step of zero only where there are some": (
            "    for i, row",
            "    if not len(rows):\n        return\n    for i, row",
        ),
        "the last column is forgotten": ("out[...] = wide", "out[:, : out.shape[1] - 1] = wide[:, : out.shape[1] - 1]"),
    }
}


def sgd(attr: Any, param: AnyArray, grad: AnyArray, rows: AnyArray, out: AnyArray) -> None:
    attr.check_data((param, grad, rows, out))
    wide = param.astype(WIDE)
    for i, row in enumerate(rows):
        step = WIDE(attr.lr) * grad[i]
        wide[row] = wide[row] - step
    out[...] = wide
