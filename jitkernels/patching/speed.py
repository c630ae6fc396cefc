"""Time calls of functions with and without their replacements, in turns."""

import contextlib
from collections.abc import Callable
from typing import Any

from jitkernels.patching.install import patch
from jitkernels.tuning.timer import Stopwatch, Timing

PATCHED, ORIGINAL = "patched", "original"
TIMING_ROUNDS = 5


def measure_patched(call: Callable[[], Any], names: tuple[str, ...] = (), *, seconds: float) -> dict[str, Timing]:
    """The times of a call by the pieces that `names` select, all by default, and by the originals.

    `seconds`: for each of the two.
    """
    watches = {name: Stopwatch(call, ()) for name in (PATCHED, ORIGINAL)}
    for done in range(TIMING_ROUNDS + 1):
        for name, watch in watches.items():
            with patch(*names) if name == PATCHED else contextlib.nullcontext():
                if done:
                    watch.turn(seconds / TIMING_ROUNDS)
                else:
                    watch.call()
    return {name: watch.timing for name, watch in watches.items()}
