"""Steps of a schedule that are calls: of GEMM kernels, of other kernels, of NumPy; and GEMM epilogues."""
