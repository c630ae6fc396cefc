"""Arguments of elementwise everyday functions of any dtypes, and bitwise comparison of results."""

from collections.abc import Sequence
from typing import Any

import cases
import numpy as np
from test_everyday import Row

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch import operators
from jitkernels.runtime.abi_layout import OperatorTable, Plain


def rows() -> Sequence[Any]:
    """Return the rows whose arrays need nothing but conversion."""
    tables = {param.id: operators._holder(param.id)._table for param in cases.every_row()}
    words = {name: table.words for name, table in tables.items() if table is not None}
    return [
        param
        for param in cases.every_row()
        if words.get(param.id, [0] * 99)[OperatorTable.PLAIN] == Plain.ELEMENTWISE
        and not words[param.id][OperatorTable.MOVES]  # these have no kernel
    ]


def numbers(n: int, dtype: str, seed: int) -> AnyArray:
    """Return numbers of both signs, with zeros, the largest and the smallest, and special floats."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, n).astype(bool)
    if np.dtype(dtype).kind == "f":
        values = generator.uniform(-9, 9, n).astype(dtype)
        special = [np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    else:
        limits = np.iinfo(dtype)
        values = generator.integers(max(limits.min, -9), 10, n).astype(dtype)
        special = [limits.min, limits.max, limits.max - 1, 0]
    indices = generator.integers(0, max(n, 1), n // 3)
    values[indices] = generator.choice(np.array(special, dtype), len(indices))
    return values


def wide(arrays: Sequence[AnyArray]) -> str:
    return "float32" if np.result_type(*arrays) in (np.float16, np.float32) else "float64"


def bits(result: AnyArray) -> tuple[Any, ...]:
    """Return the bits of a result, with all NaN equal."""
    return result.dtype, result.shape, np.where(np.isnan(result), np.nan, result).tobytes()


def arguments(row: Row, kinds: Sequence[str], n: int) -> list[AnyArray]:
    return [numbers(n, kind, 100 * n + number) for number, kind in enumerate(kinds)]


def inputs_of(row: Row) -> int:
    return sum(argument.role == "in" for argument in row.arrays)
