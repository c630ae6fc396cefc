"""The graph compiler: what a traced function computes, made into a few fused kernels called as one program."""
