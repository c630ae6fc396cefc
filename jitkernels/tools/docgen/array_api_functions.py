"""The table of the functions of `jk.xp`, generated from the tables by which they run."""

from jitkernels import xp
from jitkernels.xp import elementwise_functions, fft, linalg, manipulation_functions, statistical_functions

FUSED = frozenset({*elementwise_functions.FUSED, *statistical_functions.FUSED})
KERNELS = manipulation_functions.KERNELS | statistical_functions.KERNELS | linalg.KERNELS
FOURIER = "the kernels `fft_c2c`, `fft_r2c`, `fft_c2r`"
MODULES = {"data_type_functions": "data types", "creation_functions": "memory"}
"""What functions of some modules are about, which compute nothing."""


def listed_functions() -> str:
    """Every function by name, and what computes it."""
    lines = ["| function | computed by |", "|---|---|"]
    names = {name: _route(name, function) for name, function in xp.FUNCTIONS.items()}
    names |= {f"linalg.{name}": _route(name, None) for name in linalg.FUNCTIONS}
    names |= {f"fft.{name}": FOURIER if name in fft.KERNEL_NAMES else "NumPy" for name in fft.FUNCTIONS}
    lines += [f"| `{name}` | {names[name]} |" for name in sorted(names)]
    return "\n".join(lines) + "\n"


def _route(name: str, function: object) -> str:
    if name in FUSED:
        return "fused loops"
    if name in KERNELS:
        return f"the kernel `{KERNELS[name]}`"
    return MODULES.get(getattr(function, "__module__", "").rpartition(".")[2], "NumPy")
