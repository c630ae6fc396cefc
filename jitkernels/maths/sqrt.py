"""sqrt for float32 and float64: the processor's own instruction, correctly rounded.

numba would call the C library's function, which the vectoriser cannot reach.
"""

from jitkernels.native.source import IRFunction


def _sqrt(c_type: str, suffix: str) -> IRFunction:
    text = f"""declare {c_type} @llvm.sqrt.{suffix}({c_type})
define {c_type} @jk_sqrt_{suffix}({c_type} %x) alwaysinline {{
  %root = call {c_type} @llvm.sqrt.{suffix}({c_type} %x)
  ret {c_type} %root
}}
"""
    return IRFunction(f"jk_sqrt_{suffix}", c_type, (c_type,), text)


sqrt_float32 = _sqrt("float", "f32")
sqrt_float64 = _sqrt("double", "f64")
