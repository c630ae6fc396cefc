"""Networks that benchmarks run: as ONNX models, as NumPy functions, and beside other runtimes."""
