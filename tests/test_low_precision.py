"""float16 and bfloat16 outside of kernels: promotion, casts, eager values, derivatives, other libraries."""

import importlib.util
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as extra

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax, nn
from functrans.core import (
    Primitive,
    complex_dtype,
    dtype_kind,
    finfo,
    is_float,
    is_inexact,
    is_low,
    promote,
    unusual,
)
from functrans.core.dtypes import SUPPORTED, resolve_ufunc
from functrans.testing import gradcheck

HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None
needs_bfloat16 = pytest.mark.skipif(not HAS_BFLOAT16, reason="ml_dtypes is not installed")
LOW = ["float16", pytest.param("bfloat16", marks=needs_bfloat16)]
both = pytest.mark.parametrize("name", LOW)
NATIVE = [d for d in SUPPORTED if d != np.float16]


def low(name):
    return np.dtype(getattr(ft, name))


def same(got, expected):
    """Equal values, NaN equal to NaN, which NumPy's own assertions do not see in bfloat16."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    wide = got.dtype if got.dtype.kind in "biuc" else float
    np.testing.assert_array_equal(got.astype(wide), expected.astype(wide))


def every(dtype):
    """All 65,536 values."""
    return np.arange(65536).astype(np.uint16).view(dtype)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# --- the dtypes -------------------------------------------------------------------------------------------------


def test_without_ml_dtypes_the_error_names_the_extra():
    with mock.patch.dict("sys.modules", ml_dtypes=None):
        for use in (
            lambda: ft.bfloat16,
            lambda: fnp.bfloat16,
            lambda: ft.dtypes.bfloat16,
            lambda: fnp.zeros(3, "bfloat16"),
            lambda: fnp.finfo("bfloat16"),
            lambda: ft.autocast("bfloat16"),
            lambda: ft.custom_fwd(cast_inputs="bfloat16"),
            lambda: ft.config.patch(backward_pass_autocast={"dtype": "bfloat16"}).__enter__(),
        ):
            with pytest.raises(
                errors.MissingLibraryError, match=r"pip install 'functrans\[lowp\]'"
            ) as caught:
                use()
            assert isinstance(caught.value, ImportError)
    assert ft.float16 is ft.dtypes.float16 is np.float16
    assert fnp.float16 == np.float16


@both
def test_queries(name):
    dtype = low(name)
    assert is_float(dtype)
    assert is_inexact(dtype)
    assert is_low(dtype)
    assert dtype_kind(dtype) == "f"
    assert complex_dtype(dtype) == np.complex64
    assert fnp.zeros(2, name).dtype == fnp.asarray([1], dtype.type).dtype == dtype
    assert fnp.issubdtype(dtype, np.floating)
    assert fnp.issubdtype(name, np.inexact)
    assert not fnp.issubdtype(dtype, np.integer)
    assert not fnp.issubdtype(np.float32, dtype)
    assert fnp.isdtype(dtype, "real floating")
    assert fnp.isdtype(dtype, (np.int8, dtype))
    assert not fnp.isdtype(dtype, ("complex floating", "integral"))
    assert fnp.can_cast(name, np.float32)
    assert fnp.promote_types(name, np.complex64) == np.complex64
    one, info = dtype.type(1), fnp.finfo(name)
    assert one + info.eps > one == one + dtype.type(float(info.eps) / 2)  # ties go to even
    assert np.isinf(dtype.type(2) * info.max)
    assert info.bits == 16
    assert fnp.finfo(np.complex64).eps == np.finfo(np.complex64).eps
    assert str(ft.make_jaxpr(lambda x: x)(fnp.ones(3, dtype))).startswith(
        f"lambda a:{'f16' if name == 'float16' else 'bf16'}[3]"
    )


# --- what asks for them -------------------------------------------------------------------------------------------

FIRST_USES = {
    "argument": "fnp.sum(ones, 0)",
    "differentiated": "ft.vjp(lambda x: fnp.cumsum(x, 0)[-1], ones)[0]",
    "cast": "fnp.sum(fnp.ones((4096, 2), 'int8').astype('float16'), 0)",
    "ufunc": "fnp.sum(np.exp(fnp.zeros((4096, 2), 'int8')), 0)",
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_the_first_operation_of_a_process_adds_in_float32(use):
    """In float16, 2048 + 1 is 2048."""
    program = (
        "import numpy as np, functrans as ft, functrans.numpy as fnp;"
        f"ones = np.ones((4096, 2), np.float16); out = {use}; print(out.dtype, *out.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.stdout.decode().split() == ["float16", "4096.0", "4096.0"], done.stderr.decode()


def test_a_process_without_them_does_not_ask_for_them():
    x = np.array([[0.5, 2.0], [1.5, 0.25]])
    with (
        mock.patch.object(unusual, "used", False),
        mock.patch.object(Primitive, "impl_for", side_effect=AssertionError),
    ):
        assert fnp.sum(fnp.power(x, x) @ x) == np.sum(np.power(x, x) @ x)


# --- promotion ----------------------------------------------------------------------------------------------------

UFUNCS = (np.add, np.power, np.true_divide, np.arctan2, np.maximum, np.less, np.logaddexp, np.copysign)


@both
def test_promotion_of_dtypes(name):
    """As NumPy and ml_dtypes promote; tests/core/test_dtypes.py has float16 with the others."""
    dtype = low(name)
    for other in NATIVE:
        for a, b in ((dtype, other), (other, dtype)):
            try:
                expected = np.result_type(a, b)
            except TypeError:  # bfloat16 and wide integers
                with pytest.raises(errors.DtypeError, match=r"no common dtype.*astype"):
                    promote([(a, False), (b, False)])
            else:
                assert promote([(a, False), (b, False)]) == (expected, False)
            for ufunc in UFUNCS:
                try:
                    loop = ufunc.resolve_dtypes((a, b, None))
                except TypeError:
                    continue
                assert resolve_ufunc(ufunc, ((a, False), (b, False)))[1] == loop[2:]


@both
def test_python_numbers_are_weak(name):
    dtype = low(name)
    x = fnp.full((2, 3), 0.5, dtype)
    functions = [
        lambda x: 2.0 * x + 1,
        lambda x: (x - 0.1) / 3,
        lambda x: x**0.5,
        lambda x: 1.5**x,
        lambda x: x % 0.3,
        lambda x: x // 2,
        lambda x: fnp.where(x > 0.1, x, 0.0),
        lambda x: np.where(x > 0.1, x, 0.0),
        lambda x: np.maximum(x, 0.0),
        lambda x: np.multiply(x, 0.25),
        lambda x: fnp.clip(x, 0.1, 0.4),
        lambda x: x.clip(0.1, 0.4),
        lambda x: abs(-x),
        lambda x: x @ (x.T * 0.1),
        lambda x: x.at[0].multiply(1.5),
        lambda x: lax.scan(lambda c, r: (0.5 * c + r.sum(), c), 0.0, x)[0],
        lambda x: lax.cond(x.sum() > 0, lambda: x.mean(), lambda: 0.0),
    ]
    for k, f in enumerate(functions):
        assert f(x).dtype == dtype, k
        assert ft.make_jaxpr(f)(x).out_avals[0].dtype == dtype, k
    assert (x * 1j).dtype == np.complex64
    assert (ft.jit(lambda: 2.5)() * x).dtype == dtype
    assert x.sum().dtype == x.mean(0).dtype == x.astype(float).astype(name).dtype == dtype
    assert np.isinf(fnp.float16(1) + 70000.0)


@needs_bfloat16
def test_bfloat16_beside_float16():
    x, y = fnp.ones(2, ft.bfloat16), fnp.ones(2, np.float16)
    assert fnp.add(x, y).dtype == (x + y).dtype == np.float32
    for f in (fnp.matmul, lambda a, b: fnp.concatenate([a, b])):
        with pytest.raises(errors.DtypeError, match="float16 have no common dtype"):
            f(x, y)


def test_small_integers_become_float16_as_in_numpy():
    for x in (np.int8([1, 2]), np.uint8([0, 3]), np.array([True, False])):
        assert fnp.sin(x).dtype == ft.jit(fnp.sin)(x).dtype == np.sin(x).dtype == np.float16


# --- casts ---------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("other", [*map(str, NATIVE), "float16"])
def test_casts_of_all_values(name, other):
    dtype, to = low(name), np.dtype(other)
    x = every(dtype)
    if to.kind in "iu":
        x = x[np.abs(x.astype(float)) < min(np.iinfo(to).max, 2.0**62)]
        x = np.abs(x) if to.kind == "u" else x
    same(lax.convert_element_type(x, to), x.astype(to))
    source = x.astype(to) if to.kind != "f" else np.concatenate([x.astype(to), _between(x).astype(to)])
    same(lax.convert_element_type(source, dtype), source.astype(dtype))


def _between(x):
    """Halfway between neighbours, and just beside, where rounding decides."""
    wide = np.sort(x.astype(float)[np.isfinite(x.astype(float))])
    middle = (wide[1:] + wide[:-1]) / 2
    return np.concatenate([middle, np.nextafter(np.float32(middle), np.float32(np.inf)).astype(float)])


@both
def test_casts_are_differentiated(name):
    dtype = low(name)
    g = ft.grad(lambda v: fnp.sum(v.astype(dtype) ** 2))(np.float64([1, 0.1]))
    assert g.dtype == np.float64
    np.testing.assert_array_equal(g, 2 * np.array([1, 0.1]).astype(dtype).astype(float))
    assert ft.grad(lambda v: fnp.sum(v.astype(np.float32) ** 2))(fnp.ones(2, dtype)).dtype == dtype


# --- values --------------------------------------------------------------------------------------------------------

ELEMENTWISE = {
    "sin": np.sin,
    "exp": np.exp,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "cbrt": np.cbrt,
    "abs": np.abs,
    "negative": np.negative,
    "floor": np.floor,
    "rint": np.rint,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "sign": np.sign,
}


@both
@pytest.mark.parametrize("function", ELEMENTWISE)
def test_functions_of_all_values(name, function):
    """The float32 result, rounded: at most one unit in the last place away, as float32 functions have errors."""
    x = every(low(name))
    got = np.asarray(getattr(fnp, function)(x))
    wide = ELEMENTWISE[function](x.astype(np.float32))
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wide))
    good = ~np.isnan(wide)
    exact = wide.astype(x.dtype)
    apart = np.abs(got[good].view(np.int16).astype(int) - exact[good].view(np.int16).astype(int))
    apart[got[good] == exact[good]] = 0  # zeros of either sign
    assert apart.max() <= 1
    assert np.mean(apart > 0) < 1e-2


@both
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_binary_functions_of_any_shape_and_stride(name, data):
    dtype = low(name)
    shape = data.draw(extra.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    bits = extra.arrays(np.uint16, shape)
    x, y = (data.draw(bits).view(dtype) for _ in range(2))
    if x.ndim:
        x, y = x[::-1], np.asfortranarray(y)
    for f in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum):
        got = getattr(fnp, f.__name__)(x, y)
        assert (got.dtype, got.shape) == (dtype, shape)
        same(got, f(x.astype(np.float32), y.astype(np.float32)).astype(dtype))
    for f in (np.less, np.equal, np.not_equal):
        np.testing.assert_array_equal(
            getattr(fnp, f.__name__)(x, y), f(x.astype(np.float32), y.astype(np.float32))
        )
    finite = np.nan_to_num(x.astype(np.float32), nan=0.0, posinf=1.0, neginf=1.0).astype(dtype)
    for axis in (None, *range(x.ndim)):
        exact = finite.astype(np.float32).sum(axis)
        same(fnp.sum(finite, axis=axis), exact.astype(dtype))


SUMS = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(0),
    "cumsum": lambda x: x.cumsum(0)[-1],
    "prod": lambda x: (x * 0 + 1.001).prod(0),
    "matmul": lambda x: x.T @ x,
    "einsum": lambda x: fnp.einsum("ij,ik->jk", x, x),
    "norm": lambda x: fnp.linalg.norm(x, axis=0),
    "logsumexp": lambda x: nn.logsumexp(x, axis=0),
    "scatter": lambda x: fnp.zeros(2, x.dtype).at[np.zeros(len(x), int)].add(x[:, 0]),
    "conv": lambda x: lax.conv_general_dilated(x.T[None], x.T[None], (1,), "VALID"),
}


@both
@pytest.mark.parametrize("operation", SUMS)
def test_sums_round_once(name, operation):
    """Each within a unit in the last place, where a sum of two bytes stops growing."""
    dtype, f = low(name), SUMS[operation]
    x = fnp.asarray(np.random.default_rng(0).uniform(0.5, 1.0, (5000, 2)).astype(dtype))
    exact = np.asarray(f(fnp.asarray(np.asarray(x).astype(float)))).astype(float)
    if operation == "prod":
        exact = np.full(2, float(dtype.type(1.001)) ** 5000)
    got = f(x)
    assert got.dtype == dtype
    np.testing.assert_allclose(np.asarray(got).astype(float), exact, rtol=2 * float(finfo(dtype).eps))


@both
def test_linear_algebra_refuses(name):
    x = fnp.eye(2, dtype=low(name))
    calls = [
        fnp.linalg.inv,
        fnp.linalg.cholesky,
        fnp.linalg.svd,
        fnp.linalg.eigh,
        fnp.linalg.det,
        fnp.linalg.qr,
    ]
    calls += [lambda x: fnp.linalg.solve(x, x), lax.linalg.lu, fnp.linalg.pinv]
    for f in calls:
        for g in (f, ft.jit(f), ft.make_jaxpr(f)):
            with pytest.raises(errors.DtypeError, match=rf"{name} are unsupported.*astype\('float32'\)"):
                g(x)
    assert fnp.linalg.matrix_power(x, 3).dtype == fnp.linalg.norm(x).dtype == x.dtype
    for f in (ft.scipy.linalg.inv, ft.scipy.linalg.expm, ft.jit(ft.scipy.linalg.cholesky)):  # as SciPy
        assert f(x).dtype == np.float32


@both
def test_fourier_transforms_are_complex64(name):
    x = fnp.asarray(np.linspace(0, 1, 6).astype(low(name)))
    assert fnp.fft.fft(x).dtype == fnp.fft.rfft(x).dtype == np.complex64
    assert ft.scipy.fft.dct(x).dtype == np.float32
    np.testing.assert_allclose(
        fnp.fft.rfft(x), np.fft.rfft(np.asarray(x).astype(float)), rtol=1e-6, atol=1e-6
    )
    assert ft.grad(lambda x: fnp.sum(fnp.abs(fnp.fft.rfft(x)) ** 2))(x).dtype == x.dtype


# --- derivatives ------------------------------------------------------------------------------------------------------


@ft.custom_vjp
def doubled(x):
    return 2.0 * x


doubled.defvjp(lambda x: (2.0 * x, None), lambda _, g: (2.0 * g,))


class Cubed(ft.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x * x * g


FUNCTIONS = {
    "products": lambda v: fnp.sum(fnp.tanh(fnp.outer(v, v) @ v) ** 2),
    "custom_vjp": lambda v: fnp.sum(doubled(fnp.sin(v))),
    "Function": lambda v: fnp.sum(Cubed.apply(v)),
    "checkpoint": lambda v: fnp.sum(ft.checkpoint(lambda v: fnp.sin(v) * v)(v)),
    "scan": lambda v: lax.scan(lambda c, r: (0.5 * c * r + r, None), v[0], v)[0],
    "cond": lambda v: lax.cond(v[0] > 0, lambda v: fnp.sum(v * v), lambda v: fnp.sum(v), v),
    "indexing": lambda v: fnp.sum(v[::-1] * v.at[1].multiply(2.0)),
    "reductions": lambda v: fnp.max(v) * fnp.mean(v) + fnp.prod(v) + fnp.var(v),
    "softmax": lambda v: fnp.sum(nn.softmax(v) * nn.gelu(v)),
    "power": lambda v: fnp.sum(fnp.abs(v) ** 2.5 + v**3),
}


@both
@pytest.mark.parametrize("case", FUNCTIONS)
def test_derivatives(name, case):
    """Tangents and cotangents have the dtype of the primal, and values that of a gradient in float64 rounded."""
    dtype, f = low(name), FUNCTIONS[case]
    v = fnp.asarray(np.array([0.5, -1.0, 0.75]).astype(dtype))
    wide, slack = np.asarray(v).astype(float), 16 * float(finfo(dtype).eps)
    for transform in (ft.grad, lambda f: ft.jit(ft.grad(f)), ft.jacfwd, ft.hessian):
        got, exact = transform(f)(v), transform(f)(wide)
        assert (got.dtype, got.shape) == (dtype, exact.shape)
        size = 1 + np.abs(exact).max()
        np.testing.assert_allclose(np.asarray(got).astype(float), exact, rtol=slack, atol=slack * size)
    y, t = ft.jvp(f, (v,), (v,))
    assert y.dtype == t.dtype == ft.vjp(f, v)[1](dtype.type(1))[0].dtype == dtype
    assert ft.vmap(ft.grad(f))(fnp.stack([v, v])).dtype == dtype
    assert ft.linearize(f, v)[1](v).dtype == dtype


@both
def test_residuals_take_two_bytes(name):
    dtype = low(name)
    w = fnp.ones((64, 64), dtype)

    def f(x):
        for _ in range(3):
            x = fnp.tanh(x @ w * 0.01 + 0.5)
        return fnp.sum(x * x)

    x = fnp.ones((32, 64))
    w32 = w.astype(np.float32)
    pulls = [ft.vjp(f, x.astype(dtype))[1]]
    w = w32
    pulls.append(ft.vjp(f, x.astype(np.float32))[1])
    assert pulls[0].residual_bytes * 2 == pulls[1].residual_bytes > 0


@both
def test_gradcheck(name):
    v = np.array([0.5, -1.0, 0.75]).astype(low(name))
    assert gradcheck(lambda v: fnp.sin(v) * v, (v,), check_forward_ad=True, check_batched_grad=True)
    wrong = ft.custom_vjp(lambda x: fnp.sin(x))
    wrong.defvjp(lambda x: (fnp.sin(x), x), lambda x, g: (g * fnp.cos(x) * 3.0,))
    assert not gradcheck(wrong, (v,), raise_exception=False)
