"""What the processor is and has, in LLVM's words, read without LLVM: to import that takes longer than a warm start may.

`tests/test_processor.py` holds the answer against LLVM's own.
"""

import functools
import platform
import sys


@functools.cache
def host() -> tuple[str, dict[str, bool]] | None:
    """LLVM's name of this CPU, and whether it has each feature that is asked for; None where LLVM has to be asked."""
    machine = platform.machine().lower()
    try:
        if machine in ("x86_64", "amd64") and sys.platform != "win32":
            from jitkernels.processor import x86

            return x86.host()
        if machine in ("aarch64", "arm64") and sys.platform.startswith("linux"):
            from jitkernels.processor import arm

            return arm.host()
    except OSError:  # no memory for code is granted, or there is no /proc
        pass
    return None
