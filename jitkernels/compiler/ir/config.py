"""How graphs are compiled: what `jit` takes as keywords, and passes and back ends read."""

from dataclasses import dataclass, field
from typing import Any

from jitkernels import settings
from jitkernels.errors import AttrError, shown

LEVELS = range(-3, 4)
BACKENDS = ("native", "interpreter")


def _level() -> int:
    return int(settings.read("JITKERNELS_OPT_LEVEL"))


def _backend() -> str:
    return settings.read("JITKERNELS_BACKEND")


@dataclass(frozen=True)
class JitConfig:
    """What the compiler may do.

    `opt_level`: 0 nothing, 1 local rewrites, 2 passes over the whole graph, 3 fusion. A negative level does as its
    absolute value says, and each call is done by NumPy as well: `DifferenceError` says what differs by more than
    rounding. `fuse_reduce`: reductions are computed inside of what reads them. `fuse_dimshuffle`: views move to what
    they are views of. `max_fusion_size`: nodes that one result of a loop nest is computed from, about. `max_inputs`:
    arrays that a loop nest reads, unless one operation has more. `fast_math`: what holds for real numbers holds.
    `backend`: ``native``, or ``interpreter``, by which NumPy runs one operation after the other. `cache`: whether code
    is looked for on the disk, and kept there. `profile`: calls are counted, and the time of each kernel in them; they
    go through Python then. `memory_limit`: bytes that arrays between kernels may take, above which values are computed
    again. `exact_sizes`: extents of arrays are constants of the code, which is made anew for others. `strict`: a
    function that would be left to NumPy raises TracingError. `rules` are rewriting rules of one's own.
    """

    opt_level: int = field(default_factory=_level)
    fuse_reduce: bool = True
    fuse_dimshuffle: bool = True
    max_fusion_size: int = 400
    max_inputs: int = 32
    fast_math: bool = False
    backend: str = field(default_factory=_backend)
    cache: bool = True
    profile: bool = False
    memory_limit: int | None = None
    exact_sizes: bool = False
    strict: bool = False
    rules: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if type(self.opt_level) is not int or self.opt_level not in LEVELS:
            raise AttrError(f"opt_level: expected an int from -3 to 3, got {shown(self.opt_level)}")
        if self.backend not in BACKENDS:
            raise AttrError(f"backend: expected {' or '.join(BACKENDS)}, got {shown(self.backend)}")
        for name in ("max_fusion_size", "max_inputs"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise AttrError(f"{name}: expected an int of at least 1, got {shown(value)}")
        limit = self.memory_limit
        if limit is not None and (type(limit) is not int or limit < 0):
            raise AttrError(f"memory_limit: expected None or an int of at least 0, got {shown(limit)}")
        for name in (
            "fuse_reduce",
            "fuse_dimshuffle",
            "fast_math",
            "cache",
            "profile",
            "exact_sizes",
            "strict",
        ):
            if type(getattr(self, name)) is not bool:
                raise AttrError(f"{name}: expected a bool, got {shown(getattr(self, name))}")
        object.__setattr__(self, "rules", tuple(self.rules))

    @property
    def is_checked(self) -> bool:
        """Whether each call is compared with NumPy."""
        return self.opt_level < 0

    @property
    def sees_calls(self) -> bool:
        """Whether each call goes through Python, however small its arrays are."""
        return self.profile or self.is_checked or self.backend != "native"
