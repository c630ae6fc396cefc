"""Building what is going to be measured, by as many processes as there are cores: nothing is timed meanwhile.

The processes share nothing but the cache, which builds each object once and hands it to whoever waits for it.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from jitkernels.attrs.base import KernelAttr
from jitkernels.machine import cpu_count
from jitkernels.measuring import candidates
from jitkernels.native.cache import objects_directory
from jitkernels.tuning.classes import measured_member

WORTH_A_PROCESS = 4
"""Attrs that repay starting a process for them."""


def build(attr: KernelAttr) -> None:
    """Build all candidates of an attr's tuning class. What cannot be built is left to those who measure it."""
    for candidate in candidates(measured_member(attr)):
        try:
            candidate.callable()
        except Exception:  # noqa: BLE001  # any implementation's: measuring it will say so
            continue


def build_all(attrs: Sequence[KernelAttr]) -> Iterator[KernelAttr]:
    """Each attr when its candidates have been built; without a cache or other cores there is nothing to gain."""
    workers = min(cpu_count(), len(attrs) // WORTH_A_PROCESS)
    if workers < 2 or objects_directory() is None:
        yield from attrs
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for attr, _ in zip(attrs, pool.map(build, attrs, chunksize=1), strict=True):
            yield attr
