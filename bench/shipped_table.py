"""Measure all kernels here and write the tables that come with the package for this family of CPUs.

    python bench/shipped_table.py /tmp/table     # on a quiet machine; interrupted, it goes on where it was

Every number of threads up to the number of cores is measured in the cache folder that is named, by `jitkernels tune`;
what other packages add to the registry is left out. What is written is
jitkernels/selection/shipped/<CPU>/<kernel>.json.
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

from jitkernels.attrs.schema.base import KernelAttr  # noqa: E402
from jitkernels.attrs.schema.registry import all_schemas, implementations  # noqa: E402
from jitkernels.core import cpu_target  # noqa: E402
from jitkernels.selection import shipped_tables, table_io  # noqa: E402

OURS = "jitkernels."


def main() -> None:
    ours = {row.kernel_type.name: row for row in all_schemas() if row.__module__.startswith(OURS)}
    CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = [name.lower() for name in ours]
    for threads in range(1, cpu_target.cpu_count() + 1):
        environment = {**os.environ, "JITKERNELS_NUM_THREADS": str(threads), "JITKERNELS_TUNE": "auto"}
        command = [sys.executable, "-m", "jitkernels", "tune", *names]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    path = CACHE / "table.json"
    table_io.export(path, list(ours.values()))
    content = json.loads(path.read_text())
    content["entries"] = [without_peers(entry, ours[entry["attr"]["kernel"]]) for entry in content["entries"]]
    path.write_text(json.dumps(content))
    folder = shipped_tables.FOLDER / cpu_target.cpu_name()
    shutil.rmtree(folder, ignore_errors=True)
    imports = table_io.import_from(path, into=shipped_tables.FOLDER)
    for file in folder.iterdir():
        file.chmod(0o644)
    print(f"{imports.kept} classes in {folder}", *imports.refused, *imports.unknown, sep="\n")


def without_peers(entry: dict[str, Any], row: type[KernelAttr]) -> dict[str, Any]:
    """An entry of a table less the implementations of other packages."""
    known = implementations(row)
    candidates = [c for c in entry["candidates"] if _is_ours(known[c["implementation"]].function)]
    return {**entry, "candidates": candidates}


def _is_ours(function: Any) -> bool:
    return bool(function.__module__.startswith(OURS))


if __name__ == "__main__":
    main()
