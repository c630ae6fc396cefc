"""What may vary in how a loop nest is compiled: what the tuner measures, and what the caller of the nest knows."""

from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class NestVariant:
    """What a schedule is chosen for: bytes of a vector, and the unroll factor of the lane loop.

    `stream`: outputs of at least so many bytes are stored by streaming stores; 0 for never. `prefetches`: operands come
    from memory, and reduced ones are prefetched. `keeps_fp_flags_exact`: inactive lanes must set no floating-point
    flag. `any_size`: emit code for all sizes, not only for sizes such as the traced ones. `halves_remainder`: compute
    the remainder of a row by half a vector, a quarter and so on, which is faster for few lanes than a masked vector.
    `jams_rows`: unroll and jam rows that load the same elements (see `RowJam`). `reads_recent_store`: the last
    element of a row may have been stored just before (see `PhaseSchedule`). `alternates`: the nest runs again and again
    in a loop, and its frame has a direction.
    """

    vector_bytes: int = 64
    unroll: int = 2
    stream: int = 0
    prefetches: bool = False
    keeps_fp_flags_exact: bool = False
    any_size: bool = False
    halves_remainder: bool = False
    jams_rows: bool = False
    reads_recent_store: bool = False
    alternates: bool = False
