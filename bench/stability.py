"""Do two full tunes agree? Compares the picks of two cache folders of one machine.

Run ``JITKERNELS_CACHE_DIR=A jitkernels tune``, the same with ``B``, then ``python bench/stability.py A B``.
"""

import sys
from pathlib import Path

from jitkernels.native.threads import get_num_threads
from jitkernels.registry import all_rows
from jitkernels.tuning import store


def main() -> None:
    folders = [Path(argument) for argument in sys.argv[1:3]]
    same: list[bool] = []
    for row in all_rows():
        for attr in dict.fromkeys(case.attr.tuning_class() for case in row.sweep() if "full" in case.tags):
            path = store.path_of(attr, get_num_threads())
            if path is None:
                raise SystemExit("no cache folder")
            records = [
                store.read(folder / path.parent.parent.name / "tuning" / path.name, attr, None)
                for folder in folders
            ]
            if None in records or len(records) < 2:
                raise SystemExit(f"{attr} is not measured in both folders")
            first, second = (record.pick for record in records if record)
            same.append(first.implementation == second.implementation)
            if not same[-1]:
                print(
                    f"  {attr}: {first.label} {first.seconds:.3g} s, then {second.label} {second.seconds:.3g} s"
                )
    print(f"same implementation for {sum(same) / len(same):.1%} of {len(same)} attrs")


if __name__ == "__main__":
    main()
