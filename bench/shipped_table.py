"""Measure all kernels here and write the tables that come with the package for this family of CPUs.

    python bench/shipped_table.py /tmp/table     # on a quiet machine; interrupted, it goes on where it was

Every number of threads up to the number of cores is measured in the cache folder that is named, by `jitkernels tune`;
what other packages add to the registry is left out. What is written is jitkernels/tuning/shipped/<CPU>/<kernel>.json.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CACHE = Path(sys.argv[1]).absolute()
os.environ["JITKERNELS_CACHE_DIR"] = str(CACHE)  # before anything of the package looks where its cache is

from jitkernels import machine, shipped, tables  # noqa: E402
from jitkernels.attrs.base import KernelAttr  # noqa: E402
from jitkernels.registry import all_rows, implementations  # noqa: E402

OURS = "jitkernels."


def main() -> None:
    ours = {row.kernel_type.name: row for row in all_rows() if row.__module__.startswith(OURS)}
    CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = [name.lower() for name in ours]
    for threads in range(1, machine.cpu_count() + 1):
        environment = {**os.environ, "JITKERNELS_NUM_THREADS": str(threads), "JITKERNELS_TUNE": "auto"}
        command = [sys.executable, "-m", "jitkernels", "tune", *names]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    path = CACHE / "table.json"
    tables.export(path, list(ours.values()))
    content = json.loads(path.read_text())
    content["entries"] = [
        without_others(entry, ours[entry["attr"]["kernel"]]) for entry in content["entries"]
    ]
    path.write_text(json.dumps(content))
    folder = shipped.FOLDER / machine.cpu_name()
    shutil.rmtree(folder, ignore_errors=True)
    found = tables.import_from(path, into=shipped.FOLDER)
    for file in folder.iterdir():
        file.chmod(0o644)
    print(f"{found.kept} classes in {folder}", *found.refused, *found.unknown, sep="\n")


def without_others(entry: dict[str, Any], row: type[KernelAttr]) -> dict[str, Any]:
    """An entry of a table less the implementations of other packages."""
    known = implementations(row)
    kept = [c for c in entry["candidates"] if _is_ours(known[c["implementation"]].function)]
    return {**entry, "candidates": kept}


def _is_ours(function: Any) -> bool:
    return bool(function.__module__.startswith(OURS))


if __name__ == "__main__":
    main()
