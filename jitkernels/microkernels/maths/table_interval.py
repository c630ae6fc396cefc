"""Intervals of the functions that have a table of polynomials for 1/2 <= x < 8: four for each power of two."""

import numpy as np

from jitkernels.codegen.source_protocol import inlined

LEAST, MOST = np.float64(0.5), np.float64(7.999999999999999)
PLACES = np.int64(50)  # bits behind those that select the interval
INTERVAL = np.int64(-(2**50))
MIDDLE = np.int64(2**49)


@inlined()
def interval(x: np.float64) -> tuple[np.int64, np.float64]:
    """The row of the table, and the distance from the middle of the interval; NaN for NaN."""
    inside = min(max(x, LEAST), MOST)
    bits = inside.view(np.int64)
    return bits >> PLACES, inside - (bits & INTERVAL | MIDDLE).view(np.float64)
