"""Loops that numba compiles: plain Python functions over flat arrays, beside those that references make."""

WITHOUT = {
    "ARGSORT": "sorting networks in registers",
    "ATTENTION": "register tiles of two products with a softmax between: plain loops read all keys per query",
    "CONV2D_INT8_PACKED": "a layout for register tiles: plain loops compute CONV2D_INT8",
    "CONV2D_PACKED": "a layout for register tiles: plain loops compute CONV2D",
    "CONV2D_TRANSPOSE_PACKED": "a layout for register tiles: plain loops compute CONV2D_TRANSPOSE",
    "CONV2D_WINOGRAD": "a layout for register tiles: plain loops compute CONV2D",
    "HISTOGRAM": "its edges are rounded as numpy.linspace rounds them, in vectors of its own",
    "LAYER_NORM": "sums in parts with compensation, which its error bound needs; a plain loop adds element by element",
    "MATMUL_EPILOGUE": "register tiles, whose results an epilogue takes before they are stored",
    "MATMUL_INT4": "instructions that multiply and add bytes, which no Python expression is",
    "MATMUL_INT8": "instructions that multiply and add bytes, which no Python expression is",
    "MATMUL_INT8_WEIGHTS": "instructions that multiply and add bytes, which no Python expression is",
    "ORDER_STATISTICS": "sorting networks in registers",
    "SORT": "sorting networks in registers",
    "STRIDE_ASUM": "sums in parts, which its error bound needs; a plain loop adds element by element",
    "TOPK": "sorting networks in registers",
    "UNIFORM": "counters of Philox, multiplied in halves of vectors",
    "NORMAL": "counters of Philox, multiplied in halves of vectors",
    "LSTM": "a program of matrix products and cells, which are rows of their own",
    "GRU": "a program of matrix products and cells, which are rows of their own",
    "LSTM_PACKED": "a layout for register tiles: LSTM is a program of others",
    "GRU_PACKED": "a layout for register tiles: GRU is a program of others",
}
"""By the names of kernels whose generated implementation is no plain loop: why there is none by numba."""
