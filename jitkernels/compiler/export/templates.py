"""Text templates of a bundle: the C header, and the examples in C and Python."""

from collections.abc import Iterable, Sequence

from jitkernels.compiler.export.manifest import Description, Tensor, in_c
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

C_TYPES = {
    "float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t",
    "complex64": "float _Complex", "complex128": "double _Complex",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def header(of: Description) -> str:
    """The header, which documents the whole interface for a caller."""
    upper = of.name.upper()
    lists = "\n".join(
        [
            *_listed("inputs", of.inputs, of.written),
            *_listed("outputs", of.outputs),
            *(
                _listed("weights", of.weights)
                if of.weights
                else [" * There are no weights: that argument may be NULL."]
            ),
        ]
    )
    sizes = "\n".join(
        f"#define {upper}_{kind}_{name.upper()}_BYTES {tensor.nbytes}"
        for kind, arrays in (("INPUT", of.inputs), ("OUTPUT", of.outputs))
        for name, tensor in zip(in_c(array.name for array in arrays), arrays, strict=True)
    )
    line = CACHE_LINE_BYTES
    return f"""/* {of.name}: one compiled function.
 *
 * Arguments: an array of pointers to the inputs, one of pointers to the outputs, the content of {of.name}.weights,
 * and an arena of scratch memory. Arrays are contiguous in C order. Weights and the arena are aligned to {line} bytes.
 * Outputs overlap no other array. The function runs on the calling thread and is reentrant: threads may call it
 * concurrently, each with an arena of its own.
 *
{lists}
 *
 * It returns 0 for success, 1 if a kernel cannot allocate its workspace, 2 if an index is out of bounds; the outputs
 * are then undefined.
 *
 * The code targets {of.target}. On a processor without all of these features it raises SIGILL:
{_folded(of.features)}
 */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#define {upper}_INPUTS {len(of.inputs)}
#define {upper}_OUTPUTS {len(of.outputs)}
#define {upper}_WEIGHTS_BYTES {of.weights_bytes}
#define {upper}_ARENA_BYTES {of.arena_bytes}
{sizes}

#ifdef __cplusplus
extern "C" {{
#endif
int32_t {of.name}_run(const void *const *inputs, void *const *outputs, const void *weights, void *arena);
#ifdef __cplusplus
}}
#endif

#endif
"""


def _listed(title: str, arrays: Sequence[Tensor], written: Sequence[str] = ()) -> list[str]:
    lines = [f" * {title}:" if arrays else f" * There are no {title}: that argument may be NULL."]
    for number, array in enumerate(arrays):
        shape = "".join(f"[{extent}]" for extent in array.shape)
        offset = f", at byte {array.offset}" if title == "weights" else ""
        change = ", which is changed" if array.name in written else ""
        lines.append(f" *   {number}  {C_TYPES[array.dtype]} {array.name}{shape}{offset}{change}")
    return lines


def _folded(words: Iterable[str]) -> str:
    lines = [" *  "]
    for word in words:
        if len(lines[-1]) + len(word) > 110:
            lines.append(" *  ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def c_example(of: Description) -> str:
    """A C program that reads weights and inputs from files and writes the outputs one after another."""
    upper = of.name.upper()
    inputs = ", ".join(str(operand.nbytes) for operand in of.inputs) or "0"
    outputs = ", ".join(str(node.nbytes) for node in of.outputs) or "0"
    line = CACHE_LINE_BYTES
    return f"""/* Reads the weights and each input from a file of raw numbers, writes the outputs to standard output.
 *
 *   cc -O2 example.c {of.name}.o -o example && ./example {of.name}.weights INPUT...
 */
#include <stdio.h>
#include <stdlib.h>

#include "{of.name}.h"

static const size_t input_bytes[] = {{{inputs}}}, output_bytes[] = {{{outputs}}};

static void *memory(size_t bytes) {{
  void *made = aligned_alloc({line}, (bytes + {2 * line - 1}) / {line} * {line});
  if (!made) {{ fputs("no memory\\n", stderr); exit(1); }}
  return made;
}}

static void *content(const char *path, size_t bytes) {{
  void *made = memory(bytes);
  FILE *file = fopen(path, "rb");
  if (!file || fread(made, 1, bytes, file) != bytes) {{
    fprintf(stderr, "%s: expected %zu bytes\\n", path, bytes);
    exit(1);
  }}
  fclose(file);
  return made;
}}

int main(int count, char **given) {{
  const void *inputs[{upper}_INPUTS + 1];
  void *outputs[{upper}_OUTPUTS + 1];
  if (count != {upper}_INPUTS + 2) {{
    fprintf(stderr, "usage: %s {of.name}.weights and %d files of inputs\\n", given[0], {upper}_INPUTS);
    return 1;
  }}
  void *weights = content(given[1], {upper}_WEIGHTS_BYTES);
  for (int i = 0; i < {upper}_INPUTS; i++) inputs[i] = content(given[i + 2], input_bytes[i]);
  for (int i = 0; i < {upper}_OUTPUTS; i++) outputs[i] = memory(output_bytes[i]);
  int status = {of.name}_run(inputs, outputs, weights, memory({upper}_ARENA_BYTES));
  if (status) {{ fprintf(stderr, "{of.name}_run: %d\\n", status); return status; }}
  for (int i = 0; i < {upper}_OUTPUTS; i++) fwrite(outputs[i], 1, output_bytes[i], stdout);
  return 0;
}}
"""


def python_example(of: Description) -> str:
    """A Python module that calls the function with NumPy and cffi only."""
    return f'''"""Calls {of.name} out of a shared library, with NumPy and cffi, and nothing else.

    cc -shared -o lib{of.name}.so {of.name}.o && python example.py INPUT.npy...
"""

import json
import sys
from pathlib import Path

import cffi
import numpy as np

HERE = Path(__file__).parent
ABOUT = json.loads((HERE / "{of.name}.json").read_text())
FFI = cffi.FFI()
FFI.cdef("""
    int32_t {of.name}_run(const void *const *inputs, void *const *outputs, const void *weights, void *arena);
""")
LIBRARY = FFI.dlopen(str(HERE / "lib{of.name}.so"))


def aligned(size):
    """Memory aligned to {CACHE_LINE_BYTES} bytes."""
    whole = np.zeros(size + {CACHE_LINE_BYTES}, np.uint8)
    begin = -whole.ctypes.data % {CACHE_LINE_BYTES}
    return whole[begin : begin + size]


def pointer(array):
    """The address of the first element."""
    return FFI.cast("void *", array.ctypes.data)


WEIGHTS = aligned({of.weights_bytes})
WEIGHTS[:] = np.fromfile(HERE / "{of.name}.weights", np.uint8)


def run(*inputs):
    """The outputs for inputs of the dtypes and shapes in {of.name}.json."""
    given = []
    for array, wanted in zip(inputs, ABOUT["inputs"], strict=True):
        array = np.ascontiguousarray(array)
        if array.dtype != wanted["dtype"] or list(array.shape) != wanted["shape"]:
            raise ValueError(f"{{wanted['name']}}: expected {{wanted}}, got {{array.dtype}} {{array.shape}}")
        given.append(array)
    made = [np.empty(one["shape"], one["dtype"]) for one in ABOUT["outputs"]]
    arena = aligned({of.arena_bytes})
    lists = [FFI.new("void *[]", [*map(pointer, arrays), FFI.NULL]) for arrays in (given, made)]
    status = LIBRARY.{of.name}_run(*lists, pointer(WEIGHTS), pointer(arena))
    if status:
        raise RuntimeError(f"{of.name}_run: {{status}}")
    return made


if __name__ == "__main__":
    for one, output in zip(ABOUT["outputs"], run(*map(np.load, sys.argv[1:])), strict=True):
        print(one["name"], output)
'''
