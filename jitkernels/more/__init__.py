"""Implementations backed by libraries, C with intrinsics, or other kernels; each folder is one method."""
