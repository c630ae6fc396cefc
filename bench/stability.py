"""Do two full tunes agree? Tunes the whole ``full`` sweep twice, in caches of their own, and compares picks.

Run ``python bench/stability.py``. Objects are shared, so that the second tune measures and builds nothing.
"""

import sys

from jitkernels.kernel_funcs import candidates
from jitkernels.registry import all_rows, row
from jitkernels.tuning.tuner import tune


def main() -> None:
    chosen = [row(name) for name in sys.argv[1:]] or all_rows()
    attrs = list(
        dict.fromkeys(
            case.attr.tuning_class() for found in chosen for case in found.sweep() if "full" in case.tags
        )
    )
    picks = []
    for number in (1, 2):
        found = {}
        for attr in attrs:
            record = tune(attr, candidates(attr), budget=0.3, build_budget=120.0)
            found[attr] = record.pick
        picks.append(found)
        print(f"tune {number}: {len(found)} attrs", flush=True)
    differing = [attr for attr in attrs if picks[0][attr].implementation != picks[1][attr].implementation]
    for attr in differing:
        first, second = picks[0][attr], picks[1][attr]
        print(f"  {attr}: {first.label} {first.seconds:.3g} s, then {second.label} {second.seconds:.3g} s")
    print(f"same implementation for {1 - len(differing) / len(attrs):.1%} of {len(attrs)} attrs")


if __name__ == "__main__":
    main()
