"""The options of `jit`, which passes and backends read."""

from dataclasses import dataclass, field, fields
from typing import Any

from jitkernels.core import settings
from jitkernels.errors import AttrError, shown

LEVELS = range(-3, 4)
BACKENDS = ("native", "numba", "interpreter")
MAX_FUSION_SIZE = 400
"""The most nodes of a fusion region: bounds compile time, and cuts programs of many thousand nodes."""
MAX_NEST_INPUTS = 32
"""The most arrays that a nest reads: more streams than hardware prefetchers follow, more pointers than registers."""


def _level() -> int:
    return int(settings.read("JITKERNELS_OPT_LEVEL"))


def _backend() -> str:
    return settings.read("JITKERNELS_BACKEND")


@dataclass(frozen=True)
class JitConfig:
    """Options of the compiler.

    `opt_level`: 0 no optimization, 1 local rewrites, 2 passes over the whole graph, 3 fusion. A negative level compiles
    as its absolute value does and also runs each call with NumPy: `DifferenceError` reports results that differ by more
    than rounding. `fuse_reduce`: compute reductions inside the loop nests that read them. `fuse_dimshuffle`: move views
    towards the inputs. `max_fusion_size`: about how many nodes one result of a loop nest may recompute. `max_inputs`:
    arrays that a loop nest may read, unless one operation has more. `fast_math`: assume real arithmetic without NaNs.
    `backend`: ``native`` prints loops as LLVM IR, ``numba`` as Python that numba compiles, ``interpreter`` runs one
    NumPy operation after the other. `cache`: look up and store code in the disk cache. `profile`: count calls and time
    each kernel; calls then go through Python.
    `memory_limit`: bytes of the arrays between kernels, above which values are rematerialized. `exact_sizes`:
    specialize code to the extents of the arrays and recompile for others. `strict`: raise TracingError for a function
    that would fall back to NumPy. `winograd`: compute `conv2d` by Winograd's algorithm where that
    is faster, for float32 and constant filters of 3 x 3: other rounding errors, of up to some three times the usual
    ones; an infinity or NaN in an image makes whole tiles of results NaN. `rules`: rewriting rules of users.
    """

    opt_level: int = field(default_factory=_level)
    fuse_reduce: bool = True
    fuse_dimshuffle: bool = True
    max_fusion_size: int = MAX_FUSION_SIZE
    max_inputs: int = MAX_NEST_INPUTS
    fast_math: bool = False
    backend: str = field(default_factory=_backend)
    cache: bool = True
    profile: bool = False
    memory_limit: int | None = None
    exact_sizes: bool = False
    strict: bool = False
    winograd: bool = False
    rules: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if type(self.opt_level) is not int or self.opt_level not in LEVELS:
            raise AttrError(f"opt_level: expected an int from -3 to 3, got {shown(self.opt_level)}")
        if self.backend not in BACKENDS:
            known = f"{', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}"
            raise AttrError(f"backend: expected {known}, got {shown(self.backend)}")
        for name in ("max_fusion_size", "max_inputs"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise AttrError(f"{name}: expected an int of at least 1, got {shown(value)}")
        limit = self.memory_limit
        if limit is not None and (type(limit) is not int or limit < 0):
            raise AttrError(f"memory_limit: expected None or an int of at least 0, got {shown(limit)}")
        for option in fields(self):
            if option.type is bool and type(getattr(self, option.name)) is not bool:
                raise AttrError(f"{option.name}: expected a bool, got {shown(getattr(self, option.name))}")
        object.__setattr__(self, "rules", tuple(self.rules))

    @property
    def is_compiled(self) -> bool:
        """Whether machine code runs the function, whichever generator makes it."""
        return self.backend != "interpreter"

    @property
    def is_checked(self) -> bool:
        """Whether each call is compared with NumPy."""
        return self.opt_level < 0

    @property
    def requires_python_calls(self) -> bool:
        """Whether every call goes through Python, however small its arrays are."""
        return self.profile or self.is_checked or not self.is_compiled
