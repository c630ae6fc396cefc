"""The dispatcher of everyday functions such as ``jk.softmax``: from a Python call to a kernel, in machine code.

One object serves every everyday function; the parameters of a function are in its table
(`jitkernels.runtime.abi_layout`). The stages of a call: sort arguments into slots, read inputs as operands (lists and
scalars through NumPy's own conversions), choose one dtype, infer extents from shapes, look up a context by (dtype,
options, size class), allocate or check results, call the entry. Operands in a layout that the kernel does not accept
(other dtypes, strides, broadcasts, an axis in the middle) pass through a buffer in blocks that fit in the L1 cache.
Invalid and rare calls fall back to Python, which raises the error or computes the same
(`jitkernels.attrs.schema.argument_binding`); nothing has been written then.

Functions call those of other files by name. Code that most programs never need is in separate objects
(`jitkernels.dispatch.native.dispatcher_modules`), which are built, or loaded, when a call first needs them.
"""

from inspect import isfunction

from jitkernels.dispatch.native import (
    broadcasting,
    buffer_io,
    buffered,
    copy_loops,
    data_movement,
    entry,
    fast_path,
    gather_rows,
    input_operands,
    lookup,
    materialize,
    mixed_dtypes,
    option_values,
    result_arrays,
    result_shapes,
    strided_rows,
)

MODULES = (
    entry,
    fast_path,
    mixed_dtypes,
    lookup,
    input_operands,
    option_values,
    result_shapes,
    broadcasting,
    result_arrays,
    materialize,
    gather_rows,
    buffered,
    buffer_io,
    strided_rows,
    data_movement,
    copy_loops,
)
FUNCTIONS = tuple(
    function
    for module in MODULES
    for function in vars(module).values()
    if isfunction(function) and function.__module__ == module.__name__
)
INLINED = (
    # the fast path, and the lookup
    "part_address", "bind_arguments", "try_fast_path", "run_fast_path", "read_arrays", "overlaps_arrays",
    "append_row_words",
    "call_entry_for", "context_at", "hash_key", "size_class", "count_down", "has_layout", "has_shape", "disjoint",
    "result_array", "call_few_words", "call_entry", "product",
    # the general path
    "dispatch_call", "operand_at", "argument_at", "argument_count", "to_array", "read_dtypes", "set_scalar",
    "dtype_width", "computes_float64", "is_sequence", "items_of", "kind_of", "bind_dimensions", "bind_extents",
    "derive_extent",
    "broadcast_to_leading", "bind_results", "prepare_result", "return_results", "ranges_overlap", "needs_buffer",
    "append_scalars", "is_dense", "swap",
    # casts and buffers
    "pack_forms", "overlaps_input", "find_nest", "convert_in_blocks", "prepare_operands",
    "assign_buffers", "lay_out_rows", "broadcast_scalar", "item_of", "is_same_dtype", "copy_between", "transfer_rows",
    "rows_at_once", "has_contiguous_rows", "is_transposed_matrix", "copy_rows_at_once", "contiguous_outer_dimension",
    "is_dense_float", "target_index", "cast_pair",
)  # fmt: skip
"""Functions that are small, or have one call site: parts are built by a light pipeline, which inlines no others."""
