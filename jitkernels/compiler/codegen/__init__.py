"""From loop nests of a schedule to LLVM IR, in vectors of the machine; LLVM finds no loops to improve here."""
