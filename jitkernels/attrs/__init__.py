"""The rows of the registry, one file per family, each imported when one of its rows is first asked for.

An attr class is the row of its kernel: fields, formula, arguments, input domain, tolerance, sweep. Nothing
else in the project lists kernels. Who asks for one kernel by name gets its family alone, which the text of the
modules tells; whoever goes through `jitkernels.attrs.base.rows` gets all.
"""

import functools
import importlib
import re
from pathlib import Path

_ROW = re.compile(r"""^class (\w+)\([^()]*\bkernel_type="(\w+)"[^()]*\):""", re.MULTILINE)


@functools.cache
def _families() -> dict[str, str]:
    """The module of each row by the names of its class and of its kernel, as far as the text of the modules tells."""
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        for names in _ROW.findall(file.read_text(encoding="utf-8")):
            found |= dict.fromkeys(names, file.stem)
    return found


def import_family(name: str) -> bool:
    """Import the family of a row by the name of its class or kernel; whether it is known where that is."""
    family = _families().get(name)
    if family is not None:
        importlib.import_module(f"{__name__}.{family}")
    return family is not None


@functools.cache
def import_all() -> None:
    """Import every family."""
    import pkgutil

    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
