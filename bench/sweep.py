"""The pick of every ``full`` attr against its reference, and how far it is from the fastest candidate.

Run ``python bench/sweep.py [KERNEL ...]`` after ``jitkernels tune``. Prints the geometric mean and the lowest
of the speed-ups over refer, and the median and 95th percentile of the regret: how much slower the pick is
than the fastest candidate timed now.
"""

import math
import sys

import numpy as np

import jitkernels as jk
from jitkernels.registry import all_rows, row
from jitkernels.tuning.timer import measure


def main() -> None:
    chosen = [row(name) for name in sys.argv[1:]] or all_rows()
    speed_ups: list[float] = []
    regrets: list[float] = []
    for found in chosen:
        own = []
        for case in found.sweep():
            if "full" not in case.tags:
                continue
            pick = jk.KernelFuncs.cache().at(case.attr)
            calls = dict(jk.get_all_candidates(case.attr))
            calls["pick"] = pick
            timings = measure(calls, case.attr.signature().sample(), budget=0.25, rounds=(3, 21))
            fastest = min(timing.seconds for timing in timings.values())
            own.append(timings["refer"].seconds / timings["pick"].seconds)
            regrets.append(timings["pick"].seconds / fastest - 1)
            if own[-1] < 1 or regrets[-1] > 0.1:
                details = {name: f"{timing.seconds * 1e6:.2f}" for name, timing in timings.items()}
                print(f"  {found.kernel_type.name} {case.name}: {pick.__self__} us: {details}")  # type: ignore[attr-defined]
        speed_ups += own
        print(f"{found.kernel_type.name:>14}: {len(own)} attrs, {_summary(own)}", flush=True)
    print(f"{'all':>14}: {len(speed_ups)} attrs, {_summary(speed_ups)}")
    print(f"regret: median {np.median(regrets):.1%}, 95th percentile {np.percentile(regrets, 95):.1%}")


def _summary(ratios: list[float]) -> str:
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"pick over refer: geometric mean {mean:.2f}, lowest {min(ratios):.2f}"


if __name__ == "__main__":
    main()
