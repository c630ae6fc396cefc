"""Calls with constants that come from a branch are inlined whole: what they compute of a selection stays one."""

import llvmlite.binding as llvm

from jitkernels.codegen import llvm_backend

TEXT = """
define private double @minus(double %a, double %b) alwaysinline {
  %at = alloca double
  store double %a, ptr %at
  %c = load double, ptr %at
  %d = fsub double %c, %b
  ret double %d
}
define double @error(double %x, ptr %p) {
  %is_large = fcmp ogt double %x, 127.5
  br i1 %is_large, label %yes, label %no
yes:
  br label %after
no:
  br label %after
after:
  %y = phi double [255.0, %yes], [0.0, %no]
  %d = call double @minus(double %x, double %y)
  store double %y, ptr %p
  ret double %d
}
"""


def test_selection_stays() -> None:
    target = llvm_backend.target_machine(32)
    module = llvm.parse_assembly(TEXT)
    module.triple = llvm.get_process_triple()
    llvm_backend.optimize(module, target)
    text = str(module)
    assert text.count("select") == 1
    assert "br " not in text
