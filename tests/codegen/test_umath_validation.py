"""NumPy's validation files of elementary functions: hard inputs with the correctly rounded results."""

from pathlib import Path

import numpy as np
import pytest
from elementary import DTYPES, Array, computed

from jitkernels.microkernels.maths import function_table

FILES = {path.stem.rpartition("-")[2]: path for path in Path(np.__file__).parent.glob("**/umath-validation-set-*.csv")}
MOST = 2
"""Units that any of our functions may be off."""


def cases(path: Path, dtype: str) -> tuple[Array, Array, int]:
    """Inputs and outputs of a type, and how many units NumPy itself may be off."""
    rows = [line.split(",") for line in path.read_text().splitlines() if line.startswith(f"np.{dtype},")]
    bits = np.array([[int(text, 16) for text in row[1:3]] for row in rows], np.uint64).reshape(-1, 2).T
    given, expected = bits.astype(f"uint{8 * np.dtype(dtype).itemsize}").view(dtype)
    return given, expected, max((int(row[3]) for row in rows), default=0)


def steps_between(one: Array, other: Array) -> Array:
    """How many numbers apart two arrays are."""
    kind = f"int{8 * one.itemsize}"
    bits = (one.view(kind), other.view(kind))
    least = np.iinfo(kind).min
    ordered = [np.where(b < 0, (least - b).astype(kind), b).astype(object) for b in bits]
    distance: Array = np.abs(ordered[0] - ordered[1])
    distance[np.isnan(one) & np.isnan(other)] = 0
    return distance


def test_validation_files_exist() -> None:
    assert len(FILES) == 20
    assert {"sin", "arctanh", "log1p", "exp2"} <= set(FILES)
    given, _, most = cases(FILES["sin"], "float32")
    assert given.size > 500
    assert most >= MOST
    assert steps_between(
        np.array([1, -0.0, np.nan], np.float32), np.array([np.nextafter(np.float32(1), 2), 0, np.nan], np.float32)
    ).tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(FILES))
def test_within_the_bound(name: str, dtype: str) -> None:
    given, expected, most = cases(FILES[name], dtype)
    assert given.size
    for lanes, got in computed(function_table.MODULES[name][1], given, lanes=(1, 8)).items():
        distance = steps_between(got, expected)
        worst = int(np.argmax(distance))
        assert distance[worst] <= min(most, MOST), (lanes, given[worst], got[worst], expected[worst])
        assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()
