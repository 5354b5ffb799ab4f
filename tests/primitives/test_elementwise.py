"""Every elementwise primitive: types, derivatives, transposition, batching, kernels, layouts, dtypes."""

import warnings

import numpy as np
import pytest

from functrans.core.aval import Zero, aval_of
from functrans.core.ir import Eqn, Jaxpr, Var
from functrans.core.primitive import Linear
from functrans.lowering.executable import compile_jaxpr
from functrans.primitives import bits, complexes, elementwise, exp_log, linear, rounding, special, trig
from functrans.testing.finite_difference import directional_derivative

FLOATS = (np.float32, np.float64)
COMPLEXES = (np.complex64, np.complex128)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
BY_KIND = {"f": FLOATS, "c": COMPLEXES, "i": INTEGERS, "b": (np.bool_,)}


class Domain:
    """Where a primitive is to be tried: an interval for each operand, kinds of dtype, parameters."""

    def __init__(self, prim, *intervals, kinds="f", smooth=True, **params):
        self.prim, self.intervals, self.kinds, self.smooth, self.params = (
            prim,
            intervals,
            kinds,
            smooth,
            params,
        )

    def __repr__(self):
        return "-".join([self.prim.name, *[f"{k}={v}" for k, v in self.params.items()]])

    def dtypes(self):
        return [dtype for kind in self.kinds for dtype in BY_KIND[kind]]

    def operands(self, dtype, shapes, seed=0):
        rng = np.random.default_rng(seed)
        return [
            draw(rng, np.dtype(dtype), interval, shape) for interval, shape in zip(self.intervals, shapes)
        ]


def draw(rng, dtype, interval, shape):
    low, high = interval
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        low = max(int(low), np.iinfo(dtype).min)
        return rng.integers(low, max(low, int(high)), shape, endpoint=True).astype(dtype)
    x = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x).astype(dtype)


ANY, POSITIVE, UNIT = (-3, 3), (0.2, 3), (-0.9, 0.9)
D = Domain
DOMAINS = [
    D(linear.add_p, ANY, ANY, kinds="fcib"),
    D(elementwise.neg_p, ANY, kinds="fci"),
    D(elementwise.sub_p, ANY, ANY, kinds="fci"),
    D(elementwise.mul_p, ANY, ANY, kinds="fcib"),
    D(elementwise.div_p, ANY, POSITIVE, kinds="fc"),
    D(elementwise.max_p, ANY, ANY, kinds="fib"),
    D(elementwise.min_p, ANY, ANY, kinds="fib"),
    *[
        D(p, ANY, ANY, kinds="fcib", smooth=False)
        for p in (
            elementwise.eq_p, elementwise.ne_p, elementwise.lt_p, elementwise.le_p, elementwise.gt_p,
            elementwise.ge_p,
        )
    ],
    D(elementwise.clamp_p, (-2, -1), ANY, (1, 2), kinds="fi"),
    D(elementwise.clip_p, (-2, -1), ANY, (1, 2), kinds="fi"),
    D(elementwise.share_p, ANY, ANY, kinds="fc"),
    D(elementwise.stop_gradient_p, ANY, kinds="fcib", smooth=False),
    D(rounding.floor_p, ANY, kinds="fib"),
    D(rounding.ceil_p, ANY, kinds="fib"),
    D(rounding.trunc_p, ANY, kinds="fib"),
    D(rounding.rint_p, ANY, kinds="fc"),
    D(rounding.floor_divide_p, ANY, POSITIVE, kinds="fi"),
    D(rounding.floor_divide_p, ANY, (-5, 5), kinds="i"),
    D(rounding.remainder_p, (-9, 9), (2, 5), kinds="fi"),
    D(rounding.remainder_p, (-9, 9), (-5, -2), kinds="fi"),
    D(rounding.fmod_p, (-9, 9), (2, 5), kinds="fi"),
    D(rounding.fmod_p, (-9, 9), (-5, -2), kinds="fi"),
    D(rounding.sign_p, ANY, kinds="fi"),
    D(rounding.signbit_p, ANY, smooth=False),
    D(rounding.copysign_p, ANY, ANY),
    D(rounding.nextafter_p, ANY, ANY, smooth=False),
    D(rounding.is_finite_p, ANY, kinds="fc", smooth=False),
    D(rounding.is_inf_p, ANY, kinds="fc", smooth=False),
    D(rounding.is_nan_p, ANY, kinds="fc", smooth=False),
    *[D(p, (-50, 50), (-50, 50), kinds="ib") for p in (bits.and_p, bits.or_p, bits.xor_p)],
    D(bits.not_p, (-50, 50), kinds="ib"),
    D(bits.shift_left_p, (-50, 50), (-2, 70), kinds="i"),
    D(bits.shift_right_p, (-50, 50), (-2, 70), kinds="i"),
    D(bits.gcd_p, (-100, 100), (-100, 100), kinds="i"),
    D(bits.lcm_p, (-10, 10), (-10, 10), kinds="i"),
    D(exp_log.exp_p, ANY, kinds="fc"),
    D(exp_log.exp2_p, ANY, kinds="fc"),
    D(exp_log.expm1_p, ANY, kinds="fc"),
    D(exp_log.log_p, POSITIVE, kinds="fc"),
    D(exp_log.log2_p, POSITIVE, kinds="fc"),
    D(exp_log.log10_p, POSITIVE, kinds="fc"),
    D(exp_log.log1p_p, POSITIVE, kinds="fc"),
    D(exp_log.logaddexp_p, ANY, ANY),
    D(exp_log.logaddexp2_p, ANY, ANY),
    D(exp_log.pow_p, POSITIVE, ANY, kinds="fc"),
    D(exp_log.pow_p, ANY, (0, 5), kinds="i"),
    *[D(exp_log.integer_pow_p, POSITIVE, kinds="fc", y=y) for y in (-3, -2, -1, 0, 1, 2, 3, 7, 16)],
    *[D(exp_log.integer_pow_p, ANY, kinds="i", y=y) for y in (0, 1, 2, 5)],
    D(exp_log.sqrt_p, POSITIVE, kinds="fc"),
    D(exp_log.cbrt_p, POSITIVE),
    D(exp_log.cbrt_p, (-3, -0.2)),
    *[D(p, ANY, kinds="fc") for p in (trig.sin_p, trig.cos_p, trig.sinh_p, trig.cosh_p, trig.tanh_p)],
    *[D(p, UNIT, kinds="fc") for p in (trig.tan_p, trig.arcsin_p, trig.arccos_p, trig.arctanh_p)],
    *[D(p, UNIT, kinds="fc") for p in (trig.arcsinh_p, trig.arctan_p)],
    D(trig.arccosh_p, (1.2, 4), kinds="fc"),
    D(trig.arccosh_p, (-4, -1.2), kinds="c"),
    D(trig.arctan2_p, ANY, ANY),
    D(trig.hypot_p, ANY, POSITIVE),
    D(special.erf_p, ANY),
    D(special.erfc_p, ANY),
    D(special.lgamma_p, POSITIVE),
    D(special.digamma_p, POSITIVE),
    *[D(special.polygamma_p, POSITIVE, m=m) for m in (1, 2, 3, 5)],
    *[D(special.polygamma_p, (-2.8, -2.2), m=m) for m in (1, 2, 3)],
    D(special.logistic_p, ANY),
    D(special.logit_p, (0.05, 0.95)),
    D(special.xlogy_p, ANY, POSITIVE),
    D(special.xlog1py_p, ANY, POSITIVE),
    D(special.entr_p, POSITIVE),
    D(complexes.real_p, ANY, kinds="c"),
    D(complexes.imag_p, ANY, kinds="c"),
    D(complexes.conj_p, ANY, kinds="c"),
    D(complexes.complex_p, ANY, ANY),
    D(complexes.abs_p, ANY, kinds="fcib"),
]  # fmt: skip
CASES = [pytest.param(d, dtype, id=f"{d}-{np.dtype(dtype).name}") for d in DOMAINS for dtype in d.dtypes()]
SMOOTH = [c for c in CASES if c.values[0].smooth and np.dtype(c.values[1]).kind in "fc"]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tolerance(dtype, factor=16):
    return factor * np.finfo(dtype).eps if np.dtype(dtype).kind in "fc" else 0


def shapes_for(d, full=(3, 4)):
    """Shapes of the operands that broadcast to `full`, each different."""
    return ([full, full[1:], (full[0], 1)] + [()] * 2)[: len(d.intervals)]


@pytest.mark.parametrize(("d", "dtype"), CASES)
def test_type_is_what_numpy_computes(d, dtype):
    n = len(d.intervals)
    for shapes in ([(3, 4)] * n, shapes_for(d), [()] * n, [(0, 4)] * n, [(1, 1)] * n):
        args = d.operands(dtype, shapes)
        out = d.prim.impl(*args, **d.params)
        assert isinstance(out, np.ndarray | np.generic)
        assert aval_of(out) == d.prim.abstract(*map(aval_of, args), **d.params)


@pytest.mark.parametrize(("d", "dtype"), SMOOTH)
def test_jvp_is_the_directional_derivative(d, dtype):
    args = d.operands(dtype, shapes_for(d))
    directions = [draw(np.random.default_rng(7), a.dtype, (-1, 1), a.shape) for a in args]
    out, tangent = d.prim.jvp(args, directions, **d.params)
    tangent = np.zeros(out.shape, out.dtype) if type(tangent) is Zero else tangent
    assert aval_of(tangent) == aval_of(out)
    # In double precision: the estimate of single precision says little.
    wide = [a.astype(np.result_type(a.dtype, np.float64)) for a in args]
    value, error = directional_derivative(lambda x: [d.prim.impl(*x, **d.params)], wide, directions)
    slack = np.maximum(100 * error[0], tolerance(dtype, 200) * (1 + np.abs(value[0])))
    assert (np.abs(tangent - value[0]) <= slack).all()


@pytest.mark.parametrize(("d", "dtype"), [c for c in CASES if c.values[0].prim.transpose is not None])
def test_transpose_is_the_adjoint_of_the_jvp(d, dtype):
    if np.dtype(dtype).kind not in "fc":
        pytest.skip("no derivatives")
    args = d.operands(dtype, shapes_for(d))
    for k, a in enumerate(args):
        t = draw(np.random.default_rng(3), a.dtype, (-1, 1), a.shape)
        tangents = [t if i == k else Zero(x) for i, x in enumerate(args)]
        out, tangent = d.prim.jvp(args, tangents, **d.params)
        ct = draw(np.random.default_rng(5), np.asarray(out).dtype, (-1, 1), np.shape(out))
        marked = [Linear(aval_of(x)) if i == k else x for i, x in enumerate(args)]
        try:
            back = d.prim.transpose(ct, *marked, **d.params)
        except AssertionError:
            assert d.prim is elementwise.div_p
            assert k == 1
            continue
        assert aval_of(back[k]) == aval_of(a)
        assert np.isclose(np.sum(ct * tangent).real, np.sum(back[k] * t).real, rtol=tolerance(dtype, 1000))


@pytest.mark.parametrize(("d", "dtype"), CASES)
def test_batch_is_a_loop(d, dtype):
    n, size = len(d.intervals), 5
    for batched in range(1, 2**n):
        for dim in (0, 1):
            dims = [dim if batched >> i & 1 else None for i in range(n)]
            plain = shapes_for(d)
            shapes = [
                s if b is None else (*s[: min(b, len(s))], size, *s[min(b, len(s)) :])
                for s, b in zip(plain, dims)
            ]
            dims = [b if b is None else min(b, len(s)) for s, b in zip(plain, dims)]
            args = d.operands(dtype, shapes)
            out, at = d.prim.batch(size, args, dims, **d.params)
            lanes = [
                d.prim.impl(*[a if b is None else np.take(a, i, b) for a, b in zip(args, dims)], **d.params)
                for i in range(size)
            ]
            # NumPy's vector loops may differ from its scalar ones in the last place.
            np.testing.assert_allclose(np.moveaxis(out, at, 0), np.stack(lanes), rtol=tolerance(dtype))


def kernel_of(prim, args, params):
    """The primitive alone as a compiled program."""
    invars = [Var(aval_of(a)) for a in args]
    out = Var(prim.abstract(*[v.aval for v in invars], **params))
    return compile_jaxpr(Jaxpr(invars, [Eqn(prim, invars, [out], params)], [out]))


def layouts(d, dtype):
    """Contiguous and broadcast; for the widest dtypes strided, reversed, Fortran, 0-d, empty, of size one."""
    n = len(d.intervals)
    plain = d.operands(dtype, [(4, 6)] * n)
    yield plain
    yield d.operands(dtype, shapes_for(d))
    if np.dtype(dtype) not in (np.int64, np.float64, np.complex128):
        return
    yield [a[::2, ::3] for a in plain]
    yield [a[::-1, ::-1] for a in plain]
    yield [a.T for a in plain]
    yield [np.broadcast_to(a[:1], (4, 6)) for a in plain]
    yield d.operands(dtype, [()] * n)
    yield d.operands(dtype, [(0, 3)] * n)
    yield d.operands(dtype, [(1, 1)] * n)


@pytest.mark.parametrize(("d", "dtype"), CASES)
def test_kernel_is_numpy(d, dtype):
    for args in layouts(d, dtype):
        (out,) = kernel_of(d.prim, args, d.params)(*args)
        expected = np.asarray(d.prim.impl(*args, **d.params))
        assert out.dtype == expected.dtype
        assert out.shape == expected.shape
        scale = tolerance(dtype, 40)
        np.testing.assert_allclose(out, expected, rtol=scale, atol=scale)


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, 2.0, 1e-8]
)


@pytest.mark.parametrize("d", [pytest.param(d, id=repr(d)) for d in DOMAINS if "f" in d.kinds])
def test_kernel_is_numpy_at_the_edges(d):
    n = len(d.intervals)
    args = [SPECIAL, *[SPECIAL[:, None], SPECIAL[:, None, None]][: n - 1]]
    (out,) = kernel_of(d.prim, args, d.params)(*args)
    expected = d.prim.impl(*args, **d.params)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-300)
    # NumPy says nothing of the sign of max(0., -0.).
    unsigned = (elementwise.max_p, elementwise.min_p, elementwise.clamp_p, elementwise.clip_p)
    if out.dtype.kind == "f" and d.prim not in unsigned:
        zeros = expected == 0
        assert np.array_equal(np.signbit(out[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("d", [pytest.param(d, id=repr(d)) for d in DOMAINS if "i" in d.kinds])
def test_kernel_is_numpy_at_the_edges_of_integers(d, dtype):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    if info.min < 0:
        edges = np.append(edges, np.array([-1, -2], dtype))
    if d.prim is exp_log.pow_p:
        args = [edges, np.array([[0], [1], [2], [7]], dtype)]
    else:
        args = [edges, edges[:, None], edges[:, None, None]][: len(d.intervals)]
    (out,) = kernel_of(d.prim, args, d.params)(*args)
    assert np.array_equal(out, d.prim.impl(*args, **d.params))
