"""Runs of elements from one dtype and stride to another: what brings any operand into a kernel's form, and back.

Elements without gaps are converted as they lie, in whole vectors; all others through a buffer where they lie so. The
loops over elements are in `jitkernels.native.copying`.
"""

# mypy: disable-error-code="name-defined,no-any-return,assignment"
from jitkernels.native.layout import RUN
from jitkernels.native.words import address, load, stack


def copy_run(pair: int, to: int, to_step: int, start: int, step: int, count: int) -> int:
    """Elements at byte strides, which may be 0 or negative; a pair is ``4 * source + target``, see `copying.pair`."""
    form = load(address("jk_forms"), 8 * pair)
    item = form & 15
    wanted = form >> 4 & 15
    if count >= LANES and step == item and to_step == wanted:
        convert(pair, to, start, count & -LANES)
        if count & LANES - 1:
            rest = count - LANES  # some elements twice, so that none is left over
            convert(pair, to + rest * wanted, start + rest * item, LANES)
        return 0
    if form & SAME:
        if count >= LANES and step == -item and to_step == item:
            turn(item, to, start, count & -LANES)
            done = count & -LANES
            move(item, to + done * item, item, start - done * item, step, count - done)
            return 0
        move(item, to, to_step, start, step, count)
        return 0
    lying = stack(RUN)
    made = stack(RUN)
    while count > 0:
        run = min(count, RUN)
        move(item, lying, item, start, step, run)
        if to_step == wanted and run & LANES - 1 == 0:
            convert(pair, to, lying, run)
        else:
            convert(pair, made, lying, (run + LANES - 1) & -LANES)
            move(wanted, to, to_step, made, wanted, run)
        start += run * step
        to += run * to_step
        count -= run
    return 0


FUNCTIONS = (copy_run,)
