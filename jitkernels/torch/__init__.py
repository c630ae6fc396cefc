"""PyTorch graphs as compiled functions: the backend `jitkernels` of `torch.compile`.

Each ATen operator is a few lines of NumPy, which `jk.jit` traces and compiles; what has no operator here stays torch's,
node by node. Tensors and arrays share their memory. No C compiler is needed. The package `torch` is not a dependency:
this folder is imported by `torch.compile(..., backend="jitkernels")`.
"""
