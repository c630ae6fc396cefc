"""Primitives of oneDNN as C functions: made and kept per shape by the C code beside this module."""

import ctypes
import functools
from pathlib import Path
from typing import Any

from jitkernels.errors import NotUsableError
from jitkernels.more.onednn import library
from jitkernels.native import load
from jitkernels.native.c import CSource, compiler, reason_against_avx2, simd_flags
from jitkernels.native.source import External

SETUP, SOFTMAX, LAYER_NORM, LAYER_NORM_PLAIN, LSTM, GRU = range(6)
CHUNK = 1 << 16
"""Elements that a primitive works on at most, unless a row has more."""
ARGUMENTS = ("int64", "void*", "void*", "void*", "void*", "int64", "int64", "double")
FUNCTIONS = (
    "omp_get_max_threads",
    "omp_set_num_threads",
    "dnnl_engine_create",
    "dnnl_stream_create",
    "dnnl_stream_destroy",
    "dnnl_primitive_attr_create",
    "dnnl_primitive_attr_destroy",
    "dnnl_primitive_attr_set_scratchpad_mode",
    "dnnl_memory_desc_create_with_strides",
    "dnnl_memory_desc_destroy",
    "dnnl_memory_desc_get_size",
    "dnnl_memory_create",
    "dnnl_memory_destroy",
    "dnnl_memory_set_data_handle",
    "dnnl_softmax_forward_primitive_desc_create",
    "dnnl_layer_normalization_forward_primitive_desc_create",
    "dnnl_memory_desc_create_with_tag",
    "dnnl_lstm_forward_primitive_desc_create",
    "dnnl_lbr_gru_forward_primitive_desc_create",
    "dnnl_reorder_primitive_desc_create",
    "dnnl_primitive_desc_query_md",
    "dnnl_primitive_desc_destroy",
    "dnnl_primitive_create",
    "dnnl_primitive_destroy",
    "dnnl_primitive_execute",
)


def usable(attr: Any) -> bool | str:
    """What `can_be_used` answers: as for the library itself, and the C compiler is here."""
    can = library.usable(attr)
    if can is not True:
        return can
    command, reason = compiler()
    return bool(command) or reason


@functools.cache
def _source(family: str, arguments: tuple[str, ...]) -> CSource:
    """The function of that name in its file, with what keeps primitives before it."""
    constants = {"NO_MEMORY": library.NO_MEMORY, "UNKNOWN": library.UNKNOWN, "CHUNK": CHUNK}
    top = "".join(f"#define {name} ({value}LL)\n" for name, value in constants.items())
    here = Path(__file__).parent
    code = "".join((here / name).read_text(encoding="utf-8") for name in ("kept.c", f"{family}.c"))
    flags = simd_flags() if reason_against_avx2() is None else ()
    return CSource(f"onednn_{family}", arguments, family, f"{top}{code}", flags)


@functools.cache
def _address(family: str, arguments: tuple[str, ...]) -> int:
    """A C function, which has been told where oneDNN's are."""
    found = load.address_of(_source(family, arguments))
    table = (ctypes.c_void_p * len(FUNCTIONS))(*map(library.address, FUNCTIONS))
    kinds = {"int64": ctypes.c_int64, "void*": ctypes.c_void_p, "double": ctypes.c_double}
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[kinds[kind] for kind in arguments])(found)
    status = call(SETUP, ctypes.addressof(table), *[None if kind == "void*" else 0 for kind in arguments[2:]])
    if status:
        raise NotUsableError(f"oneDNN cannot be used: it makes no engine: status {status}")
    return found


def function_of(family: str, arguments: tuple[str, ...]) -> Any:
    """The function of the C file of that name, for loop nests to call; it takes a kind first, and returns a status."""
    return External(f"jk_onednn_{family}", "int64", arguments, functools.partial(_address, family, arguments))


primitives: Any = function_of("primitives", ARGUMENTS)
"""``primitives(kind, x, scale, shift, y, rows, n, eps)``"""
