"""The larger of two numbers that are not NaN, in the form that LLVM's vectoriser takes for a reduction.

A comparison and a selection written in Python lose their fast-math flags on the way and stay scalar.
"""

from jitkernels.native.source import IRFunction


def _maximum(c_type: str, suffix: str) -> IRFunction:
    text = f"""declare {c_type} @llvm.maxnum.{suffix}({c_type}, {c_type})
define {c_type} @jk_maximum_{suffix}({c_type} %a, {c_type} %b) alwaysinline {{
  %larger = call nnan nsz {c_type} @llvm.maxnum.{suffix}({c_type} %a, {c_type} %b)
  ret {c_type} %larger
}}
"""
    return IRFunction(f"jk_maximum_{suffix}", c_type, (c_type, c_type), text)


maximum_float32 = _maximum("float", "f32")
maximum_float64 = _maximum("double", "f64")
