"""The families of schemas, one file each, imported when one of their schemas is first used.

An attr class is the schema of its kernel: fields, formula, arguments, input domain, tolerance, sweep. Nothing else in
the project lists kernels. Looking up one kernel by name imports its family only, found by scanning the text of the
modules; iterating `jitkernels.attrs.schema.base.schemas` imports all.
"""

import functools
import importlib
import re
from pathlib import Path

PACKAGE = __name__.rpartition(".")[0].rpartition(".")[0]
"""The package of the families: the parent of the schema."""
_ROW = re.compile(r"""^class (\w+)\([^()]*\bkernel_type="(\w+)"[^()]*\):""", re.MULTILINE)


@functools.cache
def _families() -> dict[str, str]:
    """The module of each schema by class name and by kernel name, read from the text of the modules."""
    families: dict[str, str] = {}
    for file in sorted(Path(__file__).parents[1].glob("*.py")):
        for names in _ROW.findall(file.read_text(encoding="utf-8")):
            families |= dict.fromkeys(names, file.stem)
    return families


def import_family(name: str) -> bool:
    """Import the family of a schema by class or kernel name; False if no family has it."""
    family = _families().get(name)
    if family is not None:
        importlib.import_module(f"{PACKAGE}.{family}")
    return family is not None


@functools.cache
def import_all() -> None:
    """Import every family."""
    import pkgutil

    for module in pkgutil.iter_modules([str(Path(__file__).parents[1])]):
        importlib.import_module(f"{PACKAGE}.{module.name}")
