"""C with AVX2 and AVX-512 intrinsics, built by the C compiler of this machine on first use."""
