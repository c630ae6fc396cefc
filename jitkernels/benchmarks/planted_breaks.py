"""Functions with one construct in the middle that cannot be compiled, each in a straight line, a loop and a branch.

Tests compare their results with Python's, and the benchmark ``graph-breaks`` their times. They are written to a file,
as the compiler reads the source of functions.
"""

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

HEAD = """
import collections, contextlib, copy, datetime, decimal, fractions, functools, hashlib, io, itertools, json, logging
import math, operator, os, pickle, random, re, statistics, string, struct, tempfile, textwrap, threading, time, uuid
import warnings, zlib
import numpy as np

LOGGER = logging.getLogger("planted")
SINK = io.StringIO()
SEEN = []
COUNT = 0


class Opaque:
    __slots__ = ("last", "scale")

    def __init__(self):
        self.scale, self.last = 2.0, 0.0

    def of(self, values):
        return float(values[0]) + self.scale

    @property
    def doubled(self):
        return self.scale * 2

    def __enter__(self):
        SEEN.append("enter")
        return self

    def __exit__(self, *_):
        SEEN.append("exit")

    def __iter__(self):
        return iter((1.0, 2.0))


OPAQUE = Opaque()
TABLE = {"a": "b", ("c", 1): "d"}


def foreign(values):
    SEEN.append(round(float(values[0]), 6))
    return float(values[0]) * 2
"""
CONSTRUCTS = {
    "print": "print('y', y[0], file=SINK); k = 1.0",
    "print_of_expression": "print(np.exp(-y * 2).sum() * 3, file=SINK); k = 1.0",
    "open": "with open(os.devnull, 'w') as stream:\n    k = stream.write(str(y[0])) * 0 + 2.0",
    "logging": "LOGGER.info('y %s', y[0]); k = 3.0",
    "string_key": "k = len({'a': 'b', str(y[0]): 'c'}) * 1.0",
    "unknown_attribute": "k = OPAQUE.scale",
    "unknown_property": "k = OPAQUE.doubled",
    "unknown_method": "k = OPAQUE.of(y)",
    "assigned_attribute": "OPAQUE.last = float(y[0]); k = OPAQUE.last",
    "set_of_values": "k = len({round(float(v), 1) for v in y}) * 1.0",
    "set_of_list": "k = len(set(y.tolist())) * 1.0",
    "frozenset": "k = len(frozenset(np.round(y, 1).tolist())) * 1.0",
    "extract": "k = np.extract(np.round(y, 1), y).size * 1.0",
    "union1d": "k = np.union1d(np.round(y, 1), np.round(x, 1)).size * 1.0",
    "nonzero_mask": "k = y[y > 0.5].tolist()[0] if (y > 0.5).any() else 0.0",
    "json": "k = json.loads(json.dumps(y.tolist()))[0]",
    "hashlib": "k = len(hashlib.sha256(y.tobytes()).hexdigest()) * 1.0",
    "pickle": "k = float(pickle.loads(pickle.dumps(y))[0])",
    "regex": "k = float(re.sub('[^0-9.]', '', f'{y[0]:.3f}'))",
    "decimal": "k = float(decimal.Decimal(str(y[0])) * 2)",
    "fraction": "k = float(fractions.Fraction(float(y[0])).limit_denominator(10))",
    "statistics": "k = statistics.median(y.tolist())",
    "datetime": "k = float(datetime.date(2020, 1, 1).toordinal()) if datetime.datetime.now().year > 2000 else 0.0",
    "time": "k = 1.0 if time.perf_counter() > 0 else 0.0",
    "getpid": "k = os.getpid() * 0.0 + 1.5",
    "environ": "k = float(os.environ.get('JK_PLANTED', '2.5'))",
    "random": "k = random.Random(3).random()",
    "numpy_random": "k = float(np.random.default_rng(0).poisson(3.0))",
    "numpy_seed": "np.random.seed([4]); k = float(np.random.rand())",
    "uuid": "k = float(len(str(uuid.uuid4())))",
    "thread": "k = 1.0 if threading.get_ident() else 0.0",
    "counter": "k = float(collections.Counter(np.round(y, 0).tolist()).most_common(1)[0][1])",
    "deque": "d = collections.deque(y.tolist(), maxlen=3); k = d[0]",
    "struct": "k = struct.unpack('d', struct.pack('d', y[0]))[0]",
    "crc": "k = float(zlib.crc32(y.round().tobytes()) % 7)",
    "deepcopy": "k = float(copy.deepcopy(OPAQUE).scale)",
    "try_except": "try:\n    k = float(str(y[0]) + 'x')\nexcept ValueError:\n    k = 4.0",
    "try_finally": "try:\n    k = float(str(y[0]))\nfinally:\n    SEEN.append('done')",
    "try_else": "try:\n    float(str(y[0]))\nexcept ValueError:\n    k = 1.0\nelse:\n    k = 2.0",
    "context_manager": "with OPAQUE as o:\n    k = o.scale",
    "suppress": "k = 1.0\nwith contextlib.suppress(KeyError):\n    k = TABLE[str(y[0])]",
    "format": "k = float(f'{y[0]:.3f}')",
    "percent": "k = float('%.2f' % y[0])",
    "str_format": "k = float('{:.2f}'.format(float(y[0])))",
    "template": "k = float(len(string.Template('$a').substitute(a=y[0])))",
    "textwrap": "k = float(len(textwrap.wrap(str(y.round(2).tolist()[:99]), 20)))",
    "join": "k = float(len(','.join(str(round(v, 3)) for v in y.tolist())))",
    "sorted_key": "k = sorted(y.tolist(), key=lambda v: -v)[0]",
    "sort_list": "values = y.tolist(); values.sort(key=abs); k = values[0]",
    "generator": "k = next((v for v in y.tolist() if v > 1.0), 0.0)",
    "isinstance": "k = 1.0 if isinstance(OPAQUE, Opaque) else 2.0",
    "type_name": "k = float(len(type(OPAQUE).__name__))",
    "global": "global COUNT; COUNT += 1; k = COUNT * 0.0 + 1.0",
    "import": "import email.utils; k = float(len(email.utils.quote('a')))",
    "vectorize": "k = float(np.vectorize(lambda v: float(str(v)))(y)[0])",
    "fromiter": "k = float(np.fromiter((v for v in y.tolist()), np.float64)[0])",
    "savetxt": "stream = io.StringIO(); np.savetxt(stream, y); k = float(len(stream.getvalue()))",
    "array2string": "k = float(len(np.array2string(y)))",
    "histogram": "k = float(np.histogram(y, bins=3)[0][0])",
    "printoptions": "with np.printoptions(precision=2):\n    k = float(len(str(y)))",
    "catch_warnings": "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    k = 1.0",
    "bytes": "k = float(np.frombuffer(y.tobytes())[0])",
    "getattr": "k = getattr(OPAQUE, 'sca' + 'le')",
    "setattr": "setattr(OPAQUE, 'last', 3.0); k = OPAQUE.last",
    "id": "k = 1.0 if id(y) else 0.0",
    "foreign_function": "k = foreign(y)",
    "foreign_of_expression": "k = foreign(np.exp(y * 0.5) + 1.0)",
    "appended_global": "SEEN.append(float(y[0])); k = 1.0",
    "changed_dict": "TABLE['z'] = str(y[0]); k = float(len(TABLE))",
    "object_array": "k = float(np.array([y[0], None], dtype=object)[0])",
    "complex_root": "k = float(np.roots([1.0, float(y[0]) + 3.0, 1.0]).real[0])",
    "reduce": "k = functools.reduce(lambda a, b: a + b, map(float, y.tolist()))",
    "tempfile": "with tempfile.TemporaryFile() as stream:\n    k = float(stream.write(y.tobytes()))",
    "iterated_object": "k = sum(v for v in OPAQUE)",
    "starred": "k = max(*y.tolist())",
    "walrus_foreign": "k = (v := foreign(y)) + v",
    "chained": "k = float(np.unique(np.round(np.exp(y * 0.1), 1)).astype(str)[0])",
}
"""Statements that read the arrays `x` and `y`, and set the number `k`."""
ALONE = """
def alone_{name}(x, n):
    y = x
{construct}
    return k
"""
SKELETONS = {
    "straight": """
def {name}(x, n):
    y = np.exp(-x) * 2 + 1
    z = y * y - x
{construct}
    return (np.sqrt(z * z + 1) * k + y).sum(), y
""",
    "loop": """
def {name}(x, n):
    total = 0.0
    y = x * 1.0
    for i in range(n):
        y = np.exp(-y) * 2 + i
{inner}
        total += (np.sqrt(y * y + 1) + k).sum()
    for i in range(len(y)):
        total += y[i] * y[i] + i
    return total, y
""",
    "branch": """
def {name}(x, n):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] * 0.5 + i
    if n > 1:
{inner}
        y = y * k + 1 / (y + 9)
    else:
        k = 0.0
    return (np.sqrt(y * y + 1) + k).sum(), y
""",
}


def planted_module(folder: Path) -> ModuleType:
    """Import, from a file in `folder`, functions called ``straight_print``, ``loop_print``, ..., and ``alone_print``.

    The last ones consist of the construct alone. Raises OSError if the file cannot be written.
    """
    texts = [
        skeleton.format(
            name=f"{kind}_{name}", construct=textwrap.indent(text, " " * 4), inner=textwrap.indent(text, " " * 8)
        )
        for kind, skeleton in SKELETONS.items()
        for name, text in CONSTRUCTS.items()
    ]
    texts += [ALONE.format(name=name, construct=textwrap.indent(text, " " * 4)) for name, text in CONSTRUCTS.items()]
    path = folder / "planted_breaks.py"
    path.write_text(HEAD + "\n".join(texts))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
