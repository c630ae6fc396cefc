"""The environment that determines machine code and measurements: CPU, versions, threads.

The hash of an environment names the cache directory of what was built or measured in it, so that a changed environment
is a cache miss.
"""

import functools
import platform
import sys

from jitkernels.core.cpu_target import cpu_features, cpu_name
from jitkernels.core.versions import version

PACKAGES_OF_CODE = ("jitkernels", "llvmlite", "numpy")
PACKAGES_OF_TIMINGS = ("mkl", "scipy-openblas32", "onednn-cpu-gomp", "onednn-cpu-iomp")


@functools.cache
def environment_of_code() -> dict[str, str]:
    """Everything besides the source that determines the machine code compiled from it."""
    return {
        "cpu": cpu_name(),
        "features": ",".join(sorted(cpu_features())),
        "system": f"{sys.platform}-{platform.machine()}",
        **{name: version(name) for name in PACKAGES_OF_CODE},
    }


def environment_of_timings(threads: int) -> dict[str, str]:
    """Everything besides the attr that determines which implementation is fastest."""
    python = f"{platform.python_implementation()}-{platform.python_version()}"
    versions = {name: version(name) for name in PACKAGES_OF_TIMINGS}
    return {**environment_of_code(), **versions, "python": python, "threads": str(threads)}
