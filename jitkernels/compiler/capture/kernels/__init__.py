"""Registry kernels called inside compiled functions: inlined references and kernel nodes."""
