"""The two kernel languages, both subsets of Python, and their translation to LLVM IR.

Range kernels are typed (`kernel_module`); the code between Python and the kernels has 64-bit words only
(`i64_functions`); both share their control flow. Translation takes about a millisecond, so that a first call waits
for LLVM alone.
"""
