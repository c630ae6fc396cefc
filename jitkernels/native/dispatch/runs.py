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
    item = form & 15
    wanted = form >> 4 & 15
    if count >= LANES and to_step == wanted:
        whole = count & -LANES
        if step == item:
            convert(pair, to, start, whole)
            if whole < count:
                rest = count - LANES  # some elements twice, so that none is left over
                convert(pair, to + rest * wanted, start + rest * item, LANES)
            return 0
        if form & SAME and step == -item:
            turn(item, to, start, whole)
        elif form & SAME:
            gather(item, to, start, step, whole)
        else:
            lying = stack(RUN)
            done = 0
            while done < whole:
                run = min(whole - done, RUN)
                gather(item, lying, start + done * step, step, run)
                convert(pair, to + done * wanted, lying, run)
                done += run
        to += whole * wanted
        start += whole * step
        count -= whole
    each(pair, to, to_step, start, step, count)
    return 0


FUNCTIONS = (copy_run,)
