"""LLVM's name and features of the host CPU, read without LLVM, whose import takes longer than a warm start may.

`tests/core/test_cpuid.py` compares the answer with LLVM's own.
"""

import functools
import platform
import sys


@functools.cache
def host() -> tuple[str, dict[str, bool]] | None:
    """LLVM's name of this CPU, and a bool per feature; None where only LLVM can tell."""
    machine = platform.machine().lower()
    try:
        if machine in ("x86_64", "amd64") and sys.platform != "win32":
            from jitkernels.core.cpuid import x86

            return x86.host()
        if machine in ("aarch64", "arm64") and sys.platform.startswith("linux"):
            from jitkernels.core.cpuid import arm

            return arm.host()
    except OSError:  # executable memory is denied, or there is no /proc
        pass
    return None
