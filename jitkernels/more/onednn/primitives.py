"""Primitives of oneDNN as C functions: the C code beside this module creates and caches one per shape."""

import functools
from pathlib import Path
from typing import Any

from jitkernels.codegen.c_source import CSource, compiler, reason_against_avx2, simd_flags
from jitkernels.codegen.source_protocol import External
from jitkernels.errors import NotUsableError
from jitkernels.more.onednn import library
from jitkernels.runtime.cffi_library import function_at
from jitkernels.runtime.loading import loader

SETUP, SOFTMAX, LAYER_NORM, LAYER_NORM_PLAIN, LSTM, GRU = range(6)
MAX_PRIMITIVE_ELEMENTS = 1 << 16
"""Most elements per primitive, unless a row has more."""
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
    """`can_be_used`: as for the library itself, if there is a C compiler."""
    can = library.usable(attr)
    if can is not True:
        return can
    command, reason = compiler()
    return bool(command) or reason


@functools.cache
def _source(family: str, arguments: tuple[str, ...]) -> CSource:
    """Return the source of the function in its file, behind the code that caches primitives."""
    constants = {
        "NO_MEMORY": library.NO_MEMORY,
        "UNKNOWN": library.UNKNOWN,
        "MAX_PRIMITIVE_ELEMENTS": MAX_PRIMITIVE_ELEMENTS,
    }
    top = "".join(f"#define {name} ({value}LL)\n" for name, value in constants.items()) + "#include <stddef.h>\n"
    folder = Path(__file__).parent
    files = ("prototypes.h", "primitive_cache.c", f"{family}.c")
    code = "".join((folder / name).read_text(encoding="utf-8") for name in files)
    flags = simd_flags() if reason_against_avx2() is None else ()
    return CSource(f"onednn_{family}", arguments, family, f"{top}{code}", flags)


@functools.cache
def _address(family: str, arguments: tuple[str, ...]) -> int:
    """Return the address of a C function, after its table of oneDNN's functions is set."""
    source = _source(family, arguments)
    function = loader.address_of(source)
    ffi = library.demanded().ffi
    table = ffi.new("void *[]", [ffi.cast("void *", library.address(name)) for name in FUNCTIONS])
    call = function_at(function, source.prototype)
    status = call(SETUP, table, *[ffi.NULL if kind == "void*" else 0 for kind in arguments[2:]])
    if status:
        raise NotUsableError(f"oneDNN cannot be used: it creates no engine: status {status}")
    return function


def function_of(family: str, arguments: tuple[str, ...]) -> Any:
    """Return the function of the C file of that name, for range kernels to call: it takes a kind, returns a status."""
    return External(f"jk_onednn_{family}", "int64", arguments, functools.partial(_address, family, arguments))


primitives: Any = function_of("primitives", ARGUMENTS)
"""``primitives(kind, x, scale, shift, y, rows, n, eps)``"""
