"""The languages that generated code is written in, which are both parts of Python, and their way to LLVM IR.

Loop nests are typed (`loops`), what stands between Python and the kernels knows 64-bit words alone (`words`); both
share their control flow. Translating takes about a millisecond, so that a first call waits for LLVM alone.
"""
