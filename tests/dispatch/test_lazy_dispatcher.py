"""Parts of the dispatcher are loaded on first use: when, by several threads at once, and failures."""

from processes import python


def test_parts_are_loaded_on_first_use() -> None:
    """Plain calls build the launcher alone."""
    code = """
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
def parts():
    names = [symbol.rpartition("_")[0] for symbol in load._loaded]
    return sorted(name for name in names if name in ("jk_launcher", "jk_general", "jk_converting"))
x, m = np.ones(8, np.float32), np.ones((4, 4), np.float32)
for call in (lambda: jk.vexp(x), lambda: jk.matmul(m, m), lambda: jk.matmul(m, m.astype(np.float16))):
    for _ in range(3):
        call()
    print(parts())
"""
    assert python(code).splitlines() == [
        "['jk_launcher']",
        "['jk_general', 'jk_launcher']",
        "['jk_converting', 'jk_general', 'jk_launcher']",
    ]


def test_concurrent_first_uses_of_parts() -> None:
    """Whichever thread loads a part, all calls are right."""
    code = """
import threading
import numpy as np
import jitkernels as jk
x, m = np.arange(8.0), np.arange(16.0).reshape(4, 4)
CALLS = [
    (lambda: jk.vmul(x, x.astype(np.float32)), x * x),
    (lambda: jk.vmul(x[::2], x[::2]), x[::2] * x[::2]),
    (lambda: jk.matmul(m, m), m @ m),
    (lambda: jk.matmul(m, m[::-1].astype(np.int8)), m @ m[::-1]),
]
start, right = threading.Barrier(len(CALLS)), []
def work(call, expected):
    start.wait()
    right.extend(np.array_equal(call(), expected) for _ in range(50))
threads = [threading.Thread(target=work, args=pair) for pair in CALLS]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(right), all(right))
"""
    for _ in range(5):
        assert python(code) == "200 True\n"


def test_parts_that_cannot_be_loaded_raise() -> None:
    """No call gets a wrong result; once the part can be loaded, the call succeeds."""
    code = """
import numpy as np
import jitkernels as jk
from jitkernels.dispatch.native import dispatcher_modules as parts
m = np.ones((2, 2))
real = parts.loader.address_of
def refused(source):
    if source.name == "general":
        raise jk.errors.BuildError("forced by a test")
    return real(source)
parts.loader.address_of = refused
for _ in range(2):
    try:
        jk.matmul(m, m)
    except jk.errors.BuildError as error:
        print(error)
parts.loader.address_of = real
print(jk.matmul(m, m).tolist())
"""
    assert python(code).splitlines() == ["forced by a test", "forced by a test", "[[2.0, 2.0], [2.0, 2.0]]"]
