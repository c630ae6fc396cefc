"""The schedule of a loop nest: which transforms run on its loops. Code generation reads it and decides nothing.

Heuristics or the tuner choose the first fields; `choose_schedule` derives the others.
"""

from enum import Enum

from jitkernels.core.frozen_dataclass import frozen_dataclass


class Remainder(Enum):
    """How the iterations of the lane loop behind the last full vector run.

    MASKED: by one masked vector. HOISTED: full single vectors, then a masked one whose mask is the same in all rows and
    phases. HALVED: full single vectors, half a vector, a quarter, and so on, which is faster than a masked one for few
    lanes, and for all where processors have no fast masks.
    """

    MASKED = "masked"
    HOISTED = "one mask for all rows"
    HALVED = "halved vectors"


class RecentStore(Enum):
    """Which element of a reduced row was stored just before it is loaded: it is loaded by itself, last."""

    FIRST = "first"
    LAST = "last"


@frozen_dataclass
class RowPacking:
    """How many rows are packed, the lanes for each, and the longest row if rows take several iterations."""

    rows: int
    columns: int
    limit: int = 0

    @property
    def longest(self) -> int:
        return self.limit or self.columns

    @property
    def is_in_steps(self) -> bool:
        return self.limit > 0


@frozen_dataclass
class RowJam:
    """Unroll and jam: `rows` rows run together, by vectors of `lanes`, the last of which overlaps the one before it.

    `vectors`: those of a row in specialized code, 0 for a loop of any length; `pairs`: that loop begins with two
    vectors at a time. `prefetches`: lines of the next rows are prefetched for stores.
    """

    rows: int
    lanes: int
    vectors: int = 0
    pairs: bool = False
    prefetches: bool = False


@frozen_dataclass
class PhaseSchedule:
    """How the inner loops of a phase run, outermost first.

    `blocked`: sums are accumulated in parts. `read_prefetch`: prefetch every n-th line of the arrays that the first
    phase reads, 0 for none. `prefetched_runs`: the frame words of arrays whose later runs are prefetched.
    `whole_lines`: the least lanes of an iteration for which unaligned runs are loaded by whole lines, and
    `held_scalars`: that for which scalars beside runs come from a rotating vector; 0 for never.
    """

    number: int
    loops: tuple[int, ...]
    blocked: bool = False
    jam: RowJam | None = None
    recent_store: RecentStore | None = None
    read_prefetch: int = 0
    prefetched_runs: frozenset[int] = frozenset()
    whole_lines: int = 0
    held_scalars: int = 0


@frozen_dataclass
class NestSchedule:
    """The schedule of a loop nest. Loops are numbers, targets their indices in the nest, arrays frame words.

    * order: `order` are the row loops, outermost first; ranges of the `parallel_loop` may run on several threads;
      `gathered_run` is the loop inside of the lane loop of a transpose;
    * vectorize: iterations of the `lane_loop` are `lanes` lanes of vectors of `vector_bytes` bytes, `unroll` vectors in
      an unrolled iteration; `is_short`: one vector takes all of them, which guards make sure of; `doubles_steps`: a
      first loop takes two of these at a time; `fills_step`: rows have at least as many iterations, which nothing tests;
      `remainder`: what is behind the last full vector; `keeps_fp_flags_exact`: inactive lanes must set no flag;
    * peel: iterations up to the first aligned store of the target `aligned`; `peels_long`: in all long loops, not only
      where streaming stores need it;
    * stream: the targets `streamed` are stored by streaming stores from `stream_bytes` bytes on, 0 for never;
    * prefetch: `prefetches_stores`: the next line of each output;
    * reverse: in loops, arrays at the frame words `serpentine` are traversed alternately forwards and backwards;
    * pack: several short rows in one vector, in each of the forms `packed`; `packs_all`: all rows are short;
    * chunk: `in_blocks`: a reduction of everything may run in blocks on several threads;
    * `phases`: the same for the loops of each phase.
    """

    vector_bytes: int = 64
    unroll: int = 2
    stream_bytes: int = 0
    remainder: Remainder = Remainder.MASKED
    keeps_fp_flags_exact: bool = False
    order: tuple[int, ...] = ()
    lane_loop: int | None = None
    parallel_loop: int | None = None
    gathered_run: int | None = None
    lanes: int = 1
    is_short: bool = False
    doubles_steps: bool = False
    fills_step: bool = False
    aligned: int | None = None
    peels_long: bool = False
    streamed: tuple[int, ...] = ()
    prefetches_stores: bool = False
    serpentine: frozenset[int] = frozenset()
    packed: tuple[RowPacking, ...] = ()
    packs_all: bool = False
    in_blocks: bool = False
    phases: tuple[PhaseSchedule, ...] = ()

    @property
    def step_lanes(self) -> int:
        """The lanes of an unrolled iteration."""
        return self.lanes * self.unroll

    def phase(self, number: int, loops: tuple[int, ...]) -> PhaseSchedule:
        """The schedule of a phase's loops, in any order."""
        return next(phase for phase in self.phases if phase.number == number and {*phase.loops} == {*loops})

    @property
    def description(self) -> str:
        """The schedule in a few words, as `explain` shows it."""
        jams = [phase.jam for phase in self.phases if phase.jam]
        words = [f"unroll {self.unroll}", f"{self.vector_bytes}-byte vectors"]
        words += [f"{jam.rows} rows of {jam.lanes} lanes at once" for jam in jams[:1]]
        words += [f"{max(form.rows for form in self.packed)} short rows at once"] if self.packed else []
        words += ["transposed in registers"] if self.gathered_run is not None else []
        words += ["streaming stores of large results"] if self.streamed else []
        words += ["alternating directions"] if self.serpentine else []
        return ", ".join(words)
