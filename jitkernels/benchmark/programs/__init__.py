"""What people compute: ordinary NumPy functions, with arguments, and with what users of other compilers would write.

`jitkernels bench expressions` times them, and tests run them; neither knows any of them by name.
"""

import importlib
import pkgutil

from jitkernels.benchmark.programs import program
from jitkernels.benchmark.programs.program import Program


def all_programs() -> dict[str, Program]:
    """All programs by name."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
    return dict(program.known)
