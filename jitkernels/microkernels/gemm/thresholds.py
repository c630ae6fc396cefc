"""Thresholds of GEMM: every number by which an algorithm or a block size is chosen, with its unit and its origin.

They were measured on AVX-512: those of static shapes on Zen 5, those of runtime selection on Zen 4. Both have caches of
the sizes below, from which block sizes follow. Guesses affect speed alone: the tuner may measure what they decide.
"""

L1_BYTES, L2_BYTES = 32 << 10, 1 << 20
"""Data caches of one core of these machines."""
CONFLICT_BYTES = 4096
"""Rows whose stride is a multiple of so many bytes map to the same few sets of the L1 cache: a panel evicts itself."""

# Block sizes.
ROW_BLOCK_BYTES = L2_BYTES // 2
"""Rows of A and of C in one row block of a static shape."""
TRANSPOSED_OPERAND_BYTES = L1_BYTES // 2
"""The short operand of a skinny product, once it is transposed to be contiguous along k."""
A_PANEL_SHARE, B_BLOCK_SHARE = 1 / 2, 3 / 8
"""The part of the L1 cache for a panel of A, and of the L2 cache for a block of B, in a packed product.

C is read and written once for each panel's steps along k: with a quarter of L1, of 32 KB, products of 1024 to 2048 come
to 92 % of the peak, with half of it to 94 %, with three quarters to the same.

On Emerald Rapids, 48 KB and 2 MB, blocks of B from 0.7 to 1 MB do as well, and 1.5 MB a twentieth less.
"""
PREFETCHED_PANEL_SHARE = 3 / 8
"""The part of the L1 cache for a panel of A where the next one is prefetched into it: both lie beside the stream of B.

On Zen 3, products of 2048: 75 GFLOP/s of 95 from panels of half of L1 without the prefetch, 82 with it from these; on
16 registers a block of B is a few panels wide, so that each panel of A is read from L3 for a few tiles only.
"""
PACKED_STEPS = 8
"""Rows of B that are packed for all panels of a block before the next: half the time on Zen 3, for rows of 2 KB."""
A_BLOCK_ROWS = 4096
"""The most rows of A that are packed at a time: packing B again takes a hundredth of their product."""
PACKED_BAND_BYTES, SMALL_BAND_BYTES = L2_BYTES // 2, L1_BYTES // 2
"""C in a band that a packed, or a small, product hands to its consumer."""

# Threads.
MIN_PARALLEL_STATIC_MULTIPLY_ADDS = 160**3
"""Multiply-adds of a product of static shape that ends before a second thread has helped."""
RUNTIME_PARALLEL_WORK = 80**3
"""Least multiply-adds of parallel execution at run time.

They take 9 us on one thread and 5 to 6 us on two that are awake; half as many gain as much, but not where a thread has
to be woken first, which takes the caller a microsecond or two.
"""

# Static shapes.
IN_PLACE_BYTES = 4 * L2_BYTES
"""Operands of up to so many bytes are read in place where C is skinny: their panels live in the L2 cache anyway."""
IN_PLACE_SHARE = 1 / 4
"""The part of the L2 cache that the larger operand of any other product read in place may take.

On Emerald Rapids, of 2 MB, packing pays from 0.5 MB of float64, and from 0.7 MB of float32.
"""
TRANSPOSED_BYTES = L2_BYTES // 4
"""The same limit for a transposed B, which has to be packed whole."""
SKINNY = 32
"""A C with at most so many rows or columns has too little arithmetic per element of B or A to pay for packing it."""
COMPACT = 128
"""Up to this extent nothing has to be packed, so that one object can serve all sizes without packing."""
NARROW = 8
"""Fewer columns than this fill so little of a vector that computing the transposed result is cheaper."""

# Runtime selection.
UNPACKED_ELEMENTS = 65536
"""Elements of B up to which packing does not pay."""
PACKED_ROWS = 64
"""Least rows of a packed product, and of a band for a consumer: fewer do not pay for packing."""
SYMMETRIC_ROWS = 128
"""From so many rows on, half of a symmetric product by panels takes less time than all of it in place."""
MIRROR_DEPTH = 32
"""From so many steps along k on, computing a tile takes longer than mirroring it across the diagonal."""
DOT_DEPTH = 24
"""From so many steps along k on, the horizontal sums of dot products cost little."""
FEW_ROWS = 4
"""Up to so many rows of C are one tile that reads B in long runs, whatever cache B is in."""
LARGE_MATRIX_STEPS = 256
"""Steps along k of a pass over a B that no L2 cache holds: C is read and written once for each.

Twice as many rows of B, each on pages of their own, take as long; half as many a thirtieth longer.
"""
ROW_MATRIX_BYTES, ROW_BYTES = 1 << 20, 1 << 10
"""Least bytes of a matrix that a single row is multiplied by, and of its rows, for which rows are read whole."""
