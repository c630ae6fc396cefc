"""Programs of science as their authors write them, without knowing the compiler; each in several spellings.

One module a domain. `jitkernels bench science` times every spelling; tests run all of them at several sizes.
"""

import importlib
import pkgutil

from jitkernels.benchmarks.science import science_program
from jitkernels.benchmarks.science.science_program import ScienceProgram


def science_programs() -> dict[str, ScienceProgram]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(science_program.known)
