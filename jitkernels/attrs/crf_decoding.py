"""CRF_DECODING: the scores of the best paths through a linear chain of tags, and their backpointers."""

from collections.abc import Iterable

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid
from jitkernels.attrs.schema.signature import Argument


class CRFDecodingAttr(KernelAttr, kernel_type="CRF_DECODING"):
    """alpha[k, i] = x[k, i] + max over j of alpha[k - 1, j] + w[j + 2, i]; track[k, i] is that j.

    This is the forward pass of Viterbi's algorithm. x [seq_len, tag] scores tags, w[2:] scores the transition from tag
    j to tag i, and w[0] that a sequence begins with it: alpha[0] = w[0] + x[0]. The caller adds w[1], which scores
    that a sequence ends with a tag, to the last row before backtracking along track. Of equal sums the first wins, and
    NaN wins over all others, as in np.argmax. Every sum is rounded once, to the dtype, so that results are the same
    everywhere. Row 0 of track, which has no predecessor, is 0. Paddle leaves that row unwritten, does not support NaN,
    and where nothing is above -3.4e38 returns that as the maximum.
    """

    seq_len: int
    tag: int
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "seq_len tag"),
        Argument("w", "in", "tag+2 tag"),
        Argument("alpha", "out", "seq_len tag"),
        Argument("track", "out", "seq_len tag", dtype="int32"),
    )

    def tolerance(self) -> Tolerance:
        """Sums of two, rounded in one order, and a maximum."""
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 3.0 * self.seq_len * self.tag * self.tag

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (2, 3), (3, 8), (5, 31), (11, 70)]
        full = [(seq_len, tag) for seq_len in (1, 11, 50) for tag in (4, 8, 16, 37, 64, 100, 256, 1000)]
        return cases(grid(cls, "seq_len tag", full, dtype=FLOATS), ci=grid(cls, "seq_len tag", ci, dtype=FLOATS))
