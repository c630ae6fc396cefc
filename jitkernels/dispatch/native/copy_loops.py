"""Runs of elements from one dtype and stride to another: what brings any operand into a kernel's form, and back.

Where the target has no gaps whole vectors are converted, of which elements with gaps between them are put together
first. The loops are in `jitkernels.native.copying`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import RUN
from jitkernels.native.words import address, load, stack


def copy_run(pair: int, to: int, to_step: int, start: int, step: int, count: int) -> int:
    """Elements at byte strides, which may be 0 or negative; a pair is ``4 * source + target``, see `copying.pair`."""
    form = load(address("jk_forms"), 8 * pair)
    if count < LANES or form >> 4 & 15 != to_step:
        whole = 0
        if form & SAME and form & 12:
            whole = count & -NEIGHBOURS
            if whole:
                spread(form & 15, to, to_step, start, step, whole)
        return each(pair, to + whole * to_step, to_step, start + whole * step, step, count - whole)
    return in_vectors(pair, to, to_step, start, step, count)


def in_vectors(pair: int, to: int, to_step: int, start: int, step: int, count: int) -> int:
    """Many elements to a place without gaps."""
    form = load(address("jk_forms"), 8 * pair)
    item = form & 15
    whole = count & -LANES
    if step == item:
        convert(pair, to, start, whole)
        if whole < count:
            rest = count - LANES  # some elements twice, so that none is left over
            convert(pair, to + rest * to_step, start + rest * item, LANES)
        return 0
    if form & SAME and step == -item:
        turn(item, to, start, whole)
    elif form & SAME:
        gather(item, to, start, step, whole, count)
    else:
        lying = stack(RUN)
        done = 0
        while done < whole:
            run = min(whole - done, RUN)
            gather(item, lying, start + done * step, step, run, count - done)
            convert(pair, to + done * to_step, lying, run)
            done += run
    return each(pair, to + whole * to_step, to_step, start + whole * step, step, count - whole)


FUNCTIONS = (
    copy_run,
    in_vectors,
)
