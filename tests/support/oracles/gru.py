"""The oracle of the cells of a GRU."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, oracle


@oracle
def gru_h1(attr: Any, gates: AnyArray) -> list[AnyArray]:
    d = attr.d
    return [ACTIVATIONS[attr.act_gate](gates[:d]) * ACTIVATIONS[attr.act_cand](gates[2 * d :])]


@oracle
def gru_ht_part1(attr: Any, gates: AnyArray, ht_1: AnyArray) -> list[AnyArray]:
    d = attr.d
    return [ACTIVATIONS[attr.act_gate](gates[d : 2 * d]) * ht_1]


@oracle
def gru_ht_part2(attr: Any, gates: AnyArray, ht_1: AnyArray) -> list[AnyArray]:
    d = attr.d
    u = ACTIVATIONS[attr.act_gate](gates[:d])
    return [u * ACTIVATIONS[attr.act_cand](gates[2 * d :]) + (1 - u) * ht_1]
