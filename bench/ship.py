"""Turn this machine's measurements into the table that ships for its family of CPUs.

Run ``python bench/ship.py`` after ``jitkernels tune``. Writes ``jitkernels/tuning/shipped/<cpu>.json``: for each
attr of the ``full`` sweeps the implementations from best to worst, without the times, which are this machine's.
"""

import json

from jitkernels import machine
from jitkernels.native.threads import get_num_threads
from jitkernels.registry import all_rows
from jitkernels.shipped import FOLDER
from jitkernels.tuning import store


def main() -> None:
    picks: dict[str, list[str]] = {}
    for row in all_rows():
        for attr in dict.fromkeys(case.attr.tuning_class() for case in row.sweep() if "full" in case.tags):
            record = store.load(attr, get_num_threads())
            if record is not None and record.complete:
                names = [m.implementation for m in record.candidates if m.seconds is not None]
                picks[f"{attr.name}({attr.text()})"] = list(dict.fromkeys(names))
    path = FOLDER / f"{machine.cpu_name()}.json"
    path.write_text(json.dumps({"cpu": machine.cpu_name(), "picks": picks}, indent=0, sort_keys=True) + "\n")
    print(f"{len(picks)} picks in {path}")


if __name__ == "__main__":
    main()
