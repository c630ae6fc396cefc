"""The tables of what traced arrays do, filled by the modules that say so: who traces imports this."""

from jitkernels.frontends import (
    arranging,
    choosing,
    contraction,
    creation,
    floats,
    functions,
    indexing,
    joining,
    lacking,
    moments,
    numbers,
    reductions,
    shaping,
    universal,
)
from jitkernels.frontends.flow import listed_arrays as _listed_arrays  # noqa: F401  # lists for arrays
from jitkernels.frontends.flow.alternatives import taking_plain
from jitkernels.frontends.standin import CALLED
from jitkernels.frontends.tables import SERVICES
from jitkernels.frontends.watching import of_ours

for _name in ("operate", "ufunc", "function", "getitem", "setitem", "ints", "lists"):
    SERVICES[_name] = taking_plain(SERVICES[_name])
for _name in ("operate", "ufunc", "function", "getitem", "setitem", "ints", "lists", "sign", "truth"):
    SERVICES[_name] = of_ours(SERVICES[_name])
for _function in [*CALLED]:
    CALLED[_function] = taking_plain(CALLED[_function])

__all__ = [
    "arranging",
    "choosing",
    "contraction",
    "creation",
    "floats",
    "functions",
    "indexing",
    "joining",
    "lacking",
    "moments",
    "numbers",
    "reductions",
    "shaping",
    "universal",
]
