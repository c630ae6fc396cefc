"""NumPy's functions, operators and methods in compiled functions: each with every dtype, against NumPy."""

from typing import Any

import numpy as np
import pytest
from cases import Failures
from jitted import agree, array, notes

import jitkernels as jk
from jitkernels.compiler.api.jit import JitFunction

EXPRESSIONS = (
    "np.exp(x)", "x+1", "x*2.5", "x-x[0]", "x/3", "x//2", "x%3", "x**2", "x**0.5", "x**3", "-x", "abs(x)",
    "~x", "x&1", "x<<1", "x==1", "x>0.5", "np.sqrt(x)", "np.sign(x)", "np.add(x,1,dtype='f8')",
    "np.add(x,x,out=x)", "np.add.reduce(x)", "np.add.reduce(x,axis=(0,1))", "np.maximum.reduce(x,axis=1)",
    "np.add.accumulate(x,axis=1)", "np.multiply.outer(x[0],x[1])", "x.sum()", "x.sum(0)",
    "x.sum(axis=-1,keepdims=True)", "x.prod()", "x.min()", "x.max(0)", "x.any()", "x.all(1)", "x.mean()",
    "x.mean(0)", "x.var()", "x.std(axis=1,ddof=1)", "x.argmax()", "x.argmin(1)", "x.cumsum()",
    "x.cumsum(0)", "x.cumprod(1)", "np.ptp(x)", "np.count_nonzero(x,axis=0)", "np.where(x>1,x,0)",
    "np.where(x>1,x,0.5)", "np.clip(x,1,3)", "x.clip(1)", "np.clip(x,None,2.5)", "np.round(x,1)",
    "x.round()", "np.nan_to_num(x)", "np.isnan(x)", "np.isfinite(x)", "np.maximum(x,2)",
    "np.minimum(x,x[::-1])", "x.reshape(-1)", "x.reshape(2,6)", "x.T", "x.ravel()", "np.transpose(x)",
    "x.swapaxes(0,1)", "np.moveaxis(x,0,-1)", "x[None]", "x[...,None]", "x[1:,::-1]", "x[1]", "x[1,2]",
    "x[-1]", "x[::2]", "x[[0,2]]", "x[:,[1,1,0]]", "x[[0,1],[2,3]]", "x[np.array([[0,1],[1,0]])]",
    "x[1,[0,2]]", "x[[0,2],1:3]", "np.concatenate([x,x])", "np.stack([x,x],-1)", "np.hstack([x,x])",
    "np.vstack([x,x[0]])", "np.dstack([x,x])", "np.column_stack([x,x[:,0]])", "np.flip(x)", "np.flip(x,1)",
    "np.roll(x,1)", "np.roll(x,-1,axis=1)", "np.roll(x,(1,2),(0,1))", "np.tile(x,2)", "np.tile(x,(2,1,3))",
    "np.repeat(x,2)", "np.repeat(x,3,axis=1)", "np.pad(x,1)", "np.pad(x,((1,2),(0,1)),constant_values=3)",
    "np.pad(x,1,mode='edge')", "np.pad(x,1,mode='reflect')", "np.pad(x,((0,2),(1,0)),mode='symmetric')",
    "np.pad(x,1,mode='wrap')", "np.diff(x)", "np.diff(x,axis=0)", "np.tril(x)", "np.triu(x,1)",
    "np.diagonal(x)", "np.diag(x[0])", "np.diag(x)", "np.trace(x)", "np.take(x,[0,1])",
    "np.take(x,1,axis=0)", "x.take([0,2],axis=1)", "np.take_along_axis(x,np.argsort(x,axis=1),axis=1)",
    "np.sort(x,axis=0)", "np.argsort(x)", "np.rot90(x)", "np.rot90(x,3)", "np.split(x,3)",
    "np.array_split(x,3,axis=1)", "np.split(x,[1,2])", "np.expand_dims(x,1)", "np.squeeze(x[None])",
    "np.broadcast_to(x,(2,3,4))", "np.atleast_3d(x)", "np.append(x,x[0])", "np.fliplr(x)", "x@x.T",
    "np.dot(x,x.T)", "np.dot(x[0],x[1])", "x@x[0]", "np.outer(x[0],x[:,0])", "np.inner(x,x)",
    "np.tensordot(x,x,([0],[0]))", "np.tensordot(x,x,2)", "np.einsum('ij,kj->ik',x,x)",
    "np.einsum('ij->j',x)", "np.einsum('ij,ij->i',x,x)", "np.einsum('ij,j',x,x[0])",
    "np.einsum('ii',x[:,:3])", "np.vdot(x,x)", "np.kron(x,x)", "np.cross(x[:,:3],x[::-1,:3])",
    "np.zeros(x.shape)+x", "np.zeros_like(x)", "np.ones_like(x,dtype='i4')", "np.full_like(x,3)",
    "np.full(x.shape,2.5)", "np.arange(x.shape[0])", "np.arange(x.shape[1])*x", "np.eye(x.shape[0])",
    "np.linspace(0,1,x.shape[1])", "np.linspace(0,1,5)", "np.array([x[0,0],x[1,1],1])", "np.asarray(x)",
    "np.array(x)", "np.asarray(x,dtype='f4')", "np.tri(3)", "np.identity(3)", "np.indices(x.shape)",
    "np.meshgrid(x[0],x[:,0])", "np.arange(5)", "np.arange(0,1,0.25)", "x.astype('f4')", "x.astype(int)",
    "x.copy()", "x.flatten()", "x.shape", "x.ndim", "x.size", "x.dtype", "len(x)", "x.nbytes", "x.itemsize",
    "np.median(x)", "np.percentile(x,30)", "np.quantile(x,0.5,axis=0)", "np.cov(x)", "np.corrcoef(x)",
    "np.average(x,axis=0)", "np.average(x,weights=np.ones(4),axis=1)", "np.gradient(x,axis=0)",
    "np.nanmean(x)", "np.nansum(x,axis=1)", "np.nanmax(x)", "np.nanstd(x)", "np.linalg.norm(x)",
    "np.linalg.norm(x,axis=1)", "np.linalg.norm(x,ord=1,axis=0)", "np.linalg.inv(x@x.T+np.eye(3))",
    "np.linalg.det(x[:,:3])", "np.linalg.eigh(x@x.T)", "np.searchsorted(x[0],x[1])",
    "np.interp(x,[0,1,2],[3,4,5])", "np.histogram(x,bins=4)", "np.convolve(x[0],x[1])",
    "np.cumulative_sum(x[0])", "np.unwrap(x)", "np.trapezoid(x)", "np.sinc(x)", "np.hypot(x,2)",
    "np.arctan2(x,x+1)", "np.logaddexp(x,1)", "np.heaviside(x,0.5)", "np.modf(x)", "np.frexp(x)",
    "np.divmod(x,2)", "divmod(x,2)", "np.gcd(x,2)", "np.bitwise_count(x)", "np.float_power(x,2)",
    "np.deg2rad(x)", "x[x>1].sum()", "np.isclose(x,1)", "np.result_type(x,1.5)", "np.logical_and(x>1,x<3)",
    "np.any(x>100)", "np.select([x>2,x>1],[x,x*2],0)", "np.choose(x.astype(int)%2,[x,x*2])",
    "np.digitize(x,[0,1,2])", "np.bincount(x.astype(int).ravel()%5)", "np.vander(x[0])",
    "np.polyval([1,2,3],x)", "np.ravel(x,order='F')", "np.insert(x,1,5,axis=0)", "np.delete(x,1,axis=0)",
    "np.resize(x,(2,3))", "np.fmax.reduce(x)", "np.logaddexp.reduce(x)", "np.bitwise_or.reduce(x)",
    "np.sum([x,x],axis=0)", "np.max([x[0,0],x[1,1]])", "sum(x)", "list(x)", "[r*2 for r in x]",
    "{'a':x,'b':[x+1,(x,)]}", "np.sum(x,where=x>1)", "np.mean(x,where=x>1)",
    "np.max(x,initial=0,where=x>1)", "x.mean(dtype='f4')", "x.sum(dtype='f8')", "np.exp(x,dtype='f4')",
    "np.add(x,1,casting='unsafe',dtype='i4')", "np.sqrt(x.shape[0])*x", "x*np.float32(2)",
    "x*np.float64(2)", "np.float32(2)*x", "x+True", "x*np.int8(3)", "3-x", "2**x", "x+np.arange(4)",
    "x*np.array([1,2,3,4])", "[1,2,3,4]*x", "np.matmul(x,x.T)", "np.linalg.matrix_power(x[:,:3],2)",
    "np.linalg.solve(x[:,:3]+np.eye(3)*9,x)", "x.real", "x.imag", "np.abs(x)", "np.square(x)", "x is None",
    "np.unravel_index(3,x.shape)", "x[np.ix_([0,2],[1,3])]", "np.r_[x[0],x[1],1]", "np.c_[x[0],x[1]]",
    "np.nonzero(x)", "x[x>1]", "np.flatnonzero(x)", "np.where(x>1)", "x[x[:,0]>1,0]", "x.nonzero()",
    "np.unique(x)", "np.argwhere(x)", "np.allclose(x,x)", "np.array_equal(x,x)", "np.median(x)", "np.median(x,axis=0)",
    "np.mgrid[0:3,0:4][0]+x", "np.ravel_multi_index(([0],[1]),x.shape)",
)  # fmt: skip
"""Expressions of one array of 3 by 4."""
BY_NUMPY = (
    "np.fromiter(iter([1.0]),float)+x.sum()", "np.apply_along_axis(np.sum,0,x)", "np.extract(x>1,x)",
)  # fmt: skip
"""Those whose result has a size that depends on values, or is of a type that graphs do not know."""
TYPES = ("f8", "f4", "f2", "i8", "i4", "i1", "u1", "u8", "?")


def written(expression: str) -> Any:
    """A function of x that gives an expression."""
    names: dict[str, Any] = {"np": np}
    exec(f"def function(x):\n    return {expression}", names)
    return names["function"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
def test_every_expression(dtype: str) -> None:
    failures = Failures()
    for expression in EXPRESSIONS:
        with failures.gathered(f"{expression} [{dtype}]"):
            check(expression, dtype, backend="interpreter")
    failures.tell()


def check(expression: str, dtype: str, **config: Any) -> None:
    """One expression; what NumPy computes in a way that graphs do not know may be left to it for ints and bools."""
    function = written(expression)
    try:
        agree(function, lambda: array(3, 4, dtype=dtype), **config)
    except AssertionError:
        if dtype in ("f8", "f4"):
            raise
        agree(function, lambda: array(3, 4, dtype=dtype), plain=True, **config)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_expression_in_machine_code() -> None:
    failures = Failures()
    for expression in EXPRESSIONS:
        with failures.gathered(expression):
            check(expression, "f8")
    failures.tell()


@pytest.mark.parametrize("expression", BY_NUMPY)
def test_expressions_that_fall_back(expression: str) -> None:
    agree(written(expression), lambda: array(3, 4), plain=True)


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 1), (1, 1), (2, 3, 4), ()])
def test_shapes(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return (
            x * 2 + x,
            np.exp(x).sum(),
            x.sum(-1) if x.ndim else x,
            x.reshape(-1),
            x.T,
            x[None],
            np.where(x > 0, x, -x),
        )

    agree(function, lambda: array(*shape))


@pytest.mark.per_push
@pytest.mark.parametrize("dtype", ["f8", "i1", "?"])
def test_products_of_vectors_are_numbers(dtype: str) -> None:
    """But for that of `tensordot`, which is an array without dimensions."""

    def function(x: Any) -> Any:
        return np.inner(x, x), np.dot(x, x), np.vdot(x, x), x @ x, np.matmul(x, x), np.einsum("i,i", x, x)

    x = np.array([1, 0, 3]).astype(dtype)
    for plain in (function, lambda x: np.tensordot(x, x, 1)):
        assert repr(jk.jit(plain, strict=True)(x)) == repr(plain(x))
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2,\) not aligned"):
        jk.jit(lambda x: np.inner(x, x[:2]))(x)


@pytest.mark.per_push
@pytest.mark.parametrize("dtype", ["f8", "i1", "?"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_masked_extremes_need_an_initial_value(name: str, dtype: str) -> None:
    x = np.array([1, 0, 3]).astype(dtype)
    with pytest.raises(ValueError, match="does not have an identity, so to use a where mask"):
        jk.jit(lambda x: getattr(np, name)(x, where=x > 0))(x)
    agree(lambda x: getattr(np, name)(x, where=x > 0, initial=1), lambda: x)


def test_callouts_are_explained() -> None:
    assert any("argpartition" in note for note in notes(agree(lambda x: np.argpartition(x, 2) + 1, lambda: array(5))))
    assert any("numpy.pinv" in note for note in notes(agree(lambda x: np.linalg.pinv(x), lambda: array(12, 12))))


def test_one_specialization_serves_all_sizes() -> None:
    compiled = agree(lambda x: np.diff(np.concatenate([x, x[::-1]])) / x.size, lambda: array(5))
    for size in range(2, 40):
        compiled(array(size))
    assert sum(map(len, compiled._specializations.values())) == 1


def _made(k: Any, how: Any) -> Any:
    return lambda t, y: -k * y + how(t)


class EntersPythonError(Exception):
    """A call that no compiled entry accepts."""


def _enters_python(*_: Any) -> Any:
    raise EntersPythonError


def _doubling() -> Any:
    return lambda t: t * 2


def _stepped(f: Any, y: Any, n: Any) -> Any:
    for i in range(n):
        y = y + f(i * 0.1, y) * 0.1
    return y


def test_functions_recreated_for_each_call_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards compare their code, and read their cells, which may hold other functions."""
    compiled = jk.jit(_stepped)
    for k in (1.0, 2.0):
        for _ in range(3):
            f = _made(k, _doubling())
            assert compiled(f, 1.0, 20) == pytest.approx(_stepped(f, 1.0, 20), rel=1e-14)
    monkeypatch.setattr(JitFunction, "look_up", _enters_python)
    f = _made(3.0, _doubling())
    assert compiled(f, 1.0, 20) == pytest.approx(_stepped(f, 1.0, 20), rel=1e-14)
    for how in (lambda t: t * 3, None, np.sin):
        with pytest.raises(EntersPythonError):
            compiled(_made(3.0, how), 1.0, 20)
    with pytest.raises(EntersPythonError):
        compiled(np.sin, 1.0, 20)


def test_dicts_with_number_keys_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with string keys that are equal but not identical."""
    compiled = jk.jit(lambda table: sum(table.values()))
    for _ in range(3):
        assert compiled({10**12: 2.0, "name": 3.0}) == 5
    monkeypatch.setattr(JitFunction, "look_up", _enters_python)
    assert compiled({10**12: 2.5, "x name"[2:]: 3.0}) == 5.5
    for other in ({10**12 + 1: 2.5, "name": 3.0}, {"name": 2.5, 10**12: 3.0}):
        with pytest.raises(EntersPythonError):
            compiled(other)
