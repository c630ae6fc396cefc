"""Sources from the C files beside this module: dtype and vector width become definitions at the top."""

import functools
from pathlib import Path
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.codegen import c_source
from jitkernels.runtime.loading import loader


def usable(attr: KernelAttr) -> bool | str:
    """`can_be_used` of kernels in C: every attr, where they can be built and run."""
    return c_source.reason_against_avx2() or True


@functools.cache
def _text(file: str) -> str:
    return (Path(__file__).parent / file).read_text(encoding="utf-8")


def source(
    family: str, function: str, dtype: str, arguments: tuple[str, ...], **definitions: object
) -> c_source.CSource:
    """The function of ``<family>.c`` for a dtype."""
    flags = c_source.simd_flags()
    defined = {"FLOAT64": 1} if dtype == "float64" else {}
    defined |= {"AVX512": 1} if "-mavx512f" in flags else {}
    top = "".join(f"#define {name} {value}\n" for name, value in {**defined, **definitions}.items())
    code = f"{top}{_text('simd.h')}\n{_text(f'{family}.c')}"
    return c_source.CSource(f"{function}_{dtype}", arguments, function, code, flags)


def external(built: c_source.CSource) -> Any:
    """The function of a source for range kernels to call."""
    return loader.entry_of(built, built.arguments)
