"""TRANSPOSE, GATHER and SCATTER_ADD, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "transpose": {
        "matrices change places": ("x.swapaxes(1, 2)", "x[::-1].swapaxes(1, 2)"),
        "copied as it is": ("x.swapaxes(1, 2)", "x.reshape(y.shape)"),
        "rows are reversed": ("x.swapaxes(1, 2)", "x[:, ::-1].swapaxes(1, 2)"),
        "subnormal numbers are lost": ("x.swapaxes(1, 2)", "np.where(np.abs(x) < 1e-37, 0, x).swapaxes(1, 2)"),
        "the last square is left out": (
            "y[...] = x.swapaxes(1, 2)",
            "y[:, : attr.n - attr.n % 8] = x.swapaxes(1, 2)[:, : attr.n - attr.n % 8]",
        ),
    },
    "gather": {
        "ids are not checked": ("    attr.check_data((table, ids))", ""),
        "all ids but the last are checked": ("(table, ids))", "(table, ids[:-1]))"),
        "negative ids are let through": ("(table, ids))", "(table, np.maximum(ids, 0)))"),
        "writes before it checks": ("    attr.check_data", "    y[...] = 0\n    attr.check_data"),
        "the last row is not reached": ("(ids, axis=0", "(np.minimum(ids, max(0, len(table) - 2)), axis=0"),
        "rows in the order of the table": ("(ids, axis=0", "(np.sort(ids), axis=0"),
    },
    "scatter_add": {
        "ids are not checked": ("    attr.check_data((table, ids))", ""),
        "writes before it checks": ("    attr.check_data", "    y[...] = table\n    attr.check_data"),
        "of equal ids one is counted": ("np.add.at(sums, ids, x)", "sums[ids] += x"),
        "the table is forgotten": ("sums = table.astype(WIDE)", "sums = 0 * table.astype(WIDE)"),
        "rows are put there": ("np.add.at(sums, ids, x)", "sums[ids] = x"),
        "the last row is not added": ("(sums, ids, x)", "(sums, ids[:-1], x[:-1])"),
    },
}


def transpose(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = x.swapaxes(1, 2)


def gather(attr: Any, table: AnyArray, ids: AnyArray, y: AnyArray) -> None:
    attr.check_data((table, ids))
    if ids.size:
        y[...] = table.take(ids, axis=0, mode="clip")


def scatter_add(attr: Any, table: AnyArray, ids: AnyArray, x: AnyArray, y: AnyArray) -> None:
    attr.check_data((table, ids))
    sums = table.astype(WIDE)
    if ids.size:
        np.add.at(sums, ids, x)
    y[...] = sums
