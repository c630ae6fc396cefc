"""Ordinary NumPy functions with arguments, and the forms that users of other compilers would write.

`jitkernels bench expressions` times them, and tests run them; neither depends on a particular program.
"""

import importlib
import pkgutil

from jitkernels.benchmarks.programs import benchmark_program
from jitkernels.benchmarks.programs.benchmark_program import Program


def all_programs() -> dict[str, Program]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(benchmark_program.known)
