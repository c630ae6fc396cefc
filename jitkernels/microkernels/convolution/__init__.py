"""Convolution and pooling of images with channels last: register tiles in LLVM IR, and the loops around them."""
