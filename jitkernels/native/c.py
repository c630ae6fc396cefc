"""C sources built by cffi with the C compiler of this machine, for kernels written with SIMD intrinsics."""
