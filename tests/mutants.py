"""The table of mistakes: for each kernel of `subjects` by name, the text that is replaced, and by what."""

MUTANTS: dict[str, dict[str, tuple[str, str]]] = {
    "vmul": {
        "tail is forgotten": ("    z[main:] = x[main:] * y[main:]", ""),
        "tail of one element is forgotten": ("z[main:] =", "z[main + (attr.n - main == 1) :] ="),
        "rounds to float32": ("z[:main] = x[:main] * y[:main]", "z[:main] = (x * y)[:main].astype('f4')"),
        "flushes subnormal numbers": (
            "z[main:] = x[main:] * y[main:]",
            "z[main:] = flushed(x[main:] * y[main:])",
        ),
        "loses the sign of zero": ("x[:main] * y[:main]", "x[:main] * y[:main] + 0"),
        "drops NaN": (
            "x[main:] * y[main:]",
            "np.nan_to_num(x[main:] * y[main:], posinf=np.inf, neginf=-np.inf)",
        ),
        "stops at the largest number": ("x[:main] * y[:main]", "clipped(x[:main] * y[:main])"),
        "reads what it has written": ("    main =", "    z[...] = x; x = z\n    main ="),
        "writes one element too many": (
            "    z[main:] =",
            "    np.lib.stride_tricks.as_strided(z, (attr.n + 1,), (z.itemsize,))[attr.n] = 0\n    z[main:] =",
        ),
        "changes its input": ("    main =", "    y += 0.0 * (y == 0)\n    y[:1] *= 1.5\n    main ="),
    },
    "vexp": {
        "tail is forgotten": (" slice(main, attr.n)", ""),
        "first element of the tail is forgotten": ("slice(main, attr.n)", "slice(main + 1, attr.n)"),
        "clamps large arguments": ("np.exp(x[part])", "np.exp(np.minimum(x[part], 88))"),
        "clamps small arguments": ("np.exp(x[part])", "np.exp(np.maximum(x[part], -87))"),
        "loses accuracy with size": (
            "np.exp(x[part])",
            "np.exp2(x[part] * x.dtype.type(1.4426950408889634))",
        ),
        "drops NaN": ("np.exp(x[part])", "np.exp(np.fmax(x[part], -np.inf))"),
        "computes in float32": ("np.exp(x[part])", "np.exp(x[part].astype('f4'))"),
        "loses subnormal results": ("np.exp(x[part])", "flushed(np.exp(x[part]))"),
    },
    "vsigmoid": {
        "overflows for small arguments": ("sigmoid(x)", "1 / (1 + np.exp(-x))"),
        "clamps as Paddle does": ("sigmoid(x)", "sigmoid(np.clip(x, -40, 13))"),
        "by tanh, absolute accuracy only": ("sigmoid(x)", "0.5 * np.tanh(0.5 * x) + 0.5"),
        "drops infinity": ("sigmoid(x)", "sigmoid(np.where(np.isinf(x), 0, x))"),
    },
    "softmax": {
        "maximum without the last element": ("x.max(", "x[:, : max(1, attr.n - 1)].max("),
        "maximum without the first element": ("x.max(", "x[:, min(1, attr.n - 1) :].max("),
        "maximum of absolute values": ("x.max(", "np.abs(x).max("),
        "maximum of all rows": ("x.max(axis=-1", "x.max(axis=(0, 1)"),
        "no maximum": ("x.max(axis=-1, keepdims=True)", "0"),
        "sum in one chain": (
            "terms.sum(axis=-1, keepdims=True, dtype=WIDE)",
            "np.cumsum(terms, axis=-1, dtype=x.dtype)[:, -1:]",
        ),
        "sum without the last element": ("terms.sum(", "terms[:, : max(1, attr.n - 1)].sum("),
        "last row is forgotten": (
            "y[...] = terms / total",
            "y[: max(1, attr.rows - 1)] = (terms / total)[: max(1, attr.rows - 1)]",
        ),
        "half precision on the way": (
            "np.exp(x - largest)",
            "np.exp((x - largest).astype('f2')).astype(x.dtype)",
        ),
        "drops NaN": ("np.exp(x - largest)", "np.exp(np.fmax(x - largest, -200))"),
        "takes an infinity for the largest number": (
            "np.exp(x - largest)",
            "np.exp(np.nan_to_num(x) - np.nan_to_num(largest))",
        ),
    },
    "layer_norm": {
        "eps hard-coded": ("attr.eps", "1e-5"),
        "eps outside the root": ("np.sqrt(variance + attr.eps)", "(np.sqrt(variance) + attr.eps)"),
        "mean divided by n + 1 for long rows": (
            "keepdims=True) / attr.n\n    variance",
            "keepdims=True) / (attr.n + (attr.n > 1000))\n    variance",
        ),
        "variance divided by n - 1": ("attr.n\n    z =", "max(1, attr.n - 1)\n    z ="),
        "variance in one pass": (
            "np.square(centred).sum(axis=-1, keepdims=True) / attr.n",
            "(np.square(x).mean(axis=-1, keepdims=True) - np.square(x.mean(axis=-1, keepdims=True)))",
        ),
        "mean in one chain": (
            "near.sum(axis=-1, keepdims=True) / attr.n",
            "(np.cumsum(x, axis=-1)[:, -1:] / x.dtype.type(attr.n) - wide[:, :1])",
        ),
        "mean without the last element": ("near.sum(", "near[:, : max(1, attr.n - 1)].sum("),
        "scale is ignored": ("z * affine[0]", "z"),
        "bias is ignored": (" + affine[1]", ""),
        "scale of the neighbour": ("affine[0]", "np.roll(affine[0], 1)"),
        "reads what it has written": ("    wide =", "    y[...] = np.abs(x)\n    wide ="),
        "last element is not scaled": ("z * affine[0]", "z * np.append(affine[0][:-1], 1)"),
    },
    "seq_pool": {
        "mean divided by h + 1 for long columns": ('"mean": attr.h', '"mean": attr.h + (attr.h > 1000)'),
        "divided by h instead of its root": ("np.sqrt(WIDE(attr.h))", "attr.h"),
        "sum in one chain": (
            "x.sum(axis=0, dtype=WIDE)",
            "np.cumsum(x, axis=0, dtype=x.dtype)[-1] if attr.h else 0",
        ),
        "maximum begins at zero": ("x.max(axis=0)", "np.maximum(x.max(axis=0), 0)"),
        "maximum begins at the least positive number": (
            "x.max(axis=0)",
            "np.maximum(x.max(axis=0), np.finfo(x.dtype).tiny)",
        ),
        "maximum drops NaN": ("x.max(axis=0)", "np.fmax.reduce(x, axis=0)"),
        "maximum without the last row": ("x.max(axis=0)", "x[: max(1, attr.h - 1)].max(axis=0)"),
        "sum without the first row": ("x.sum(", "x[1:].sum("),
        "last column is forgotten": ("y[...] = total / divisor", "y[:-1] = (total / divisor)[:-1]"),
        "adds pairs and loses the odd row": ("x.sum(", "x[: attr.h - attr.h % 2].sum("),
    },
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
        "last id is not reached": (
            "table.take(ids,",
            "table.take(np.minimum(ids, max(0, attr.table_h - 2)),",
        ),
        "maximum begins at zero": ("rows.max(axis=0)", "np.maximum(rows.max(axis=0), 0)"),
        "sum in one chain": ("rows.sum(axis=0, dtype=WIDE)", "np.cumsum(rows, axis=0)[-1]"),
        "columns come out in turned order": ("pooled.reshape(-1)", "pooled.T.reshape(-1)"),
        "of equal ids one is counted": (
            "    if attr.pool",
            "    rows[1:][ids[1:] == ids[:-1]] = 0\n    if attr.pool",
        ),
    },
    "lstm_ctht": {
        "gates swapped": ("c, i, f, o =", "c, f, i, o ="),
        "no peephole of the output gate": ("o = o + w_o * new", "pass"),
        "peephole of the output gate sees the old cell": ("w_o * new", "w_o * ct_1"),
        "weights swapped": ("w_i, w_f, w_o =", "w_f, w_i, w_o ="),
        "relu drops NaN": ('"relu": relu', '"relu": lambda x: np.where(x > 0, x, x.dtype.type(0))'),
        "identity is relu": ('"identity": identity', '"identity": relu'),
        "sigmoid clamped": ('"sigmoid": sigmoid', '"sigmoid": lambda x: sigmoid(np.clip(x, -40, 13))'),
        "tanh of half precision": (
            '"tanh": np.tanh',
            '"tanh": lambda x: np.tanh(x.astype("f2")).astype(x.dtype)',
        ),
        "cell activation is always tanh": ("act[attr.act_cell](new)", "np.tanh(new)"),
        "candidate goes through the gate": ("act[attr.act_cand](c)", "act[attr.act_gate](c)"),
        "hidden state of the old cell": ("act[attr.act_cell](new)", "act[attr.act_cell](ct_1)"),
        "reads what it has written": (
            "    if peephole:\n        w_i",
            "    ct[...] = c\n    if peephole:\n        w_i",
        ),
        "last element is forgotten": (
            "ht[...] = act[attr.act_cell](new) * act[attr.act_gate](o)",
            "ht[:-1] = (act[attr.act_cell](new) * act[attr.act_gate](o))[:-1]",
        ),
    },
    "matmul": {
        "square matrices are never transposed": (
            "a.T if attr.trans_a else a",
            "a.T if attr.trans_a and attr.m != attr.k else a",
        ),
        "second transpose is ignored": ("b.T if attr.trans_b", "b.T if attr.trans_b and attr.n != attr.k"),
        "reads c though beta is 0": ("    if attr.beta:\n", "    if True:\n"),
        "beta is 1 unless it is 0": ("a.dtype.type(attr.beta) * c", "c"),
        "sign of beta is lost": ("a.dtype.type(attr.beta)", "abs(a.dtype.type(attr.beta))"),
        "c is overwritten": ("product += a.dtype.type(attr.beta) * c", "pass"),
        "last product is lost where k is odd": (
            "left @ right",
            "left[:, : attr.k - attr.k % 2] @ right[: attr.k - attr.k % 2]",
        ),
        "last product is lost where k is long": (
            "left @ right",
            "left[:, : attr.k - (attr.k > 1000)] @ right[: attr.k - (attr.k > 1000)]",
        ),
        "computes in float32": ("left @ right", "(left.astype('f4') @ right.astype('f4')).astype(a.dtype)"),
        "last row of a tile is forgotten": (
            "c[...] = product",
            "c[: attr.m - (attr.m % 8 == 1)] = product[: attr.m - (attr.m % 8 == 1)]",
        ),
        "NaN times zero is zero": (
            "left @ right",
            "np.nan_to_num(left, posinf=np.inf, neginf=-np.inf) @ right",
        ),
    },
}
