"""C with AVX2 and AVX-512 intrinsics, built through cffi on first use."""
