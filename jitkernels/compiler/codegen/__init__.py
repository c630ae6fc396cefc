"""From loop nests of a schedule to LLVM IR with explicit vectors; LLVM's loop passes run on control flow alone.

Segments without control flow get only the passes that inline functions. Those with loops or branches of the user's
function get all passes, without loop unrolling where there are many (`Fused.unrolls`).
"""
