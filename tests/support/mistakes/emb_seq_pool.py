"""EMB_SEQ_POOL, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "emb_seq_pool": {
        "ids are not checked": ("    attr.check_data((table, ids, out))", ""),
        "ids of the first column are checked": (
            "attr.check_data((table, ids, out))",
            "attr.check_data((table, ids[:, :1], out))",
        ),
        "ids of all but the last row are checked": (
            "attr.check_data((table, ids, out))",
            "attr.check_data((table, ids[:-1], out))",
        ),
        "negative ids are let through": ("(table, ids, out)", "(table, np.maximum(ids, 0), out)"),
        "writes before it checks": ("    attr.check_data", "    out[...] = 0\n    attr.check_data"),
        "mean divided by the width": ("attr.idx_h if", "attr.idx_w if"),
        "last id is not reached": ("table.take(ids,", "table.take(np.minimum(ids, max(0, attr.table_h - 2)),"),
        "maximum begins at zero": ("rows.max(axis=0)", "np.maximum(rows.max(axis=0), 0)"),
        "sum in one chain": ("rows.sum(axis=0, dtype=WIDE)", "np.cumsum(rows, axis=0)[-1]"),
        "columns come out in transposed order": ("pooled.reshape(-1)", "pooled.T.reshape(-1)"),
        "of equal ids one is counted": ("    if attr.pool", "    rows[1:][ids[1:] == ids[:-1]] = 0\n    if attr.pool"),
    }
}


def emb_seq_pool(attr: Any, table: AnyArray, ids: AnyArray, out: AnyArray) -> None:
    attr.check_data((table, ids, out))
    if ids.size == 0:
        out[...] = 0
        return
    rows = table.take(ids, axis=0, mode="clip")
    if attr.pool == "max":
        pooled = rows.max(axis=0)
    else:
        pooled = rows.sum(axis=0, dtype=WIDE) / (attr.idx_h if attr.pool == "mean" else 1)
    out[...] = pooled.reshape(-1)
