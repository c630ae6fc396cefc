"""The rows of the registry, one file per family; importing this package imports them all.

An attr class is the row of its kernel: fields, formula, arguments, input domain, tolerance, sweep. Nothing
else in the project lists kernels.
"""

import importlib
import pkgutil

for _found in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_found.name}")
