"""NumPy references of GRU_H1, GRU_HT_PART1 and GRU_HT_PART2."""

import numpy as np

from jitkernels.attrs.gru import GRUH1Attr, GRUHtPart1Attr, GRUHtPart2Attr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(GRUH1Attr, compiles=True)
def gru_h1(attr: GRUH1Attr, gates: AnyArray, ht: AnyArray) -> None:
    u, _, s = gates.reshape(3, attr.d)
    with np.errstate(all="ignore"):
        np.multiply(special_functions.activate(attr.act_gate, u), special_functions.activate(attr.act_cand, s), out=ht)


@implements(GRUHtPart1Attr, compiles=True)
def gru_ht_part1(attr: GRUHtPart1Attr, gates: AnyArray, ht_1: AnyArray, ht: AnyArray) -> None:
    _, r, _ = gates.reshape(3, attr.d)
    with np.errstate(all="ignore"):
        np.multiply(special_functions.activate(attr.act_gate, r), ht_1, out=ht)


@implements(GRUHtPart2Attr, compiles=True)
def gru_ht_part2(attr: GRUHtPart2Attr, gates: AnyArray, ht_1: AnyArray, ht: AnyArray) -> None:
    u, _, s = gates.reshape(3, attr.d)
    with np.errstate(all="ignore"):
        update = special_functions.activate(attr.act_gate, u)
        np.add(update * special_functions.activate(attr.act_cand, s), (1 - update) * ht_1, out=ht)
