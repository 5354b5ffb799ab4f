"""Functions of functrans.numpy and scipy.special under grad, jvp, vmap, jit, to second order."""

import numpy as np
import pytest
import scipy.special as sp

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.special as fsp
from functrans import lax
from functrans.core.operators import operators
from functrans.errors import ImmutableArrayError, NoRuleError, ShapeError, TracerScalarConversionError
from functrans.testing.finite_difference import directional_derivative

rng = np.random.default_rng(0)
X, Y = rng.uniform(0.3, 0.9, (2, 3)), rng.uniform(0.2, 0.8, (2, 3))
Z = X + 1j * Y


def ufuncs(loop, without):
    """NumPy's ufuncs of one operand that have a loop of these types."""
    own = [u for u in operators.ufunc if getattr(np, u.__name__, None) is u and u.nin == 1]
    return [u.__name__ for u in own if loop in u.types and u.__name__ not in without]


UNARY = [*ufuncs("d->d", ("arccosh",)), "fix", "nan_to_num", "real", "imag", "angle", "round", "conj"]
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "ptp", "average"]
SPECIAL = [
    "erf",
    "erfc",
    "gammaln",
    "digamma",
    "expit",
    "logit",
    "entr",
    "logsumexp",
    "softmax",
    "log_softmax",
]
FUNCTIONS = {
    **{name: getattr(fnp, name) for name in (*UNARY, *REDUCTIONS)},
    **{f"special.{name}": getattr(fsp, name) for name in SPECIAL},
    "arccosh": lambda x: fnp.arccosh(1 + x),
    "sum of an axis": lambda x: fnp.sum(x, axis=0),
    "prod of an axis": lambda x: fnp.prod(x, axis=1, keepdims=True),
    "max of an axis": lambda x: fnp.max(x, axis=-1),
    "mean with a mask": lambda x: fnp.mean(x, where=X > 0.6),
    "var of an axis": lambda x: fnp.var(x, axis=1, ddof=1),
    "weighted average": lambda x: fnp.average(x, axis=1, weights=Y[0]),
    "logsumexp with weights": lambda x: fsp.logsumexp(x, 1, Y - 0.5, return_sign=True)[0],
    "logaddexp": lambda x: fnp.logaddexp(x, x[::-1] * 2),
    "logaddexp2": lambda x: fnp.logaddexp2(x, 0.3),
    "arctan2": lambda x: fnp.arctan2(x, Y),
    "hypot": lambda x: fnp.hypot(x, 2 * x + 1),
    "power": lambda x: fnp.power(x, Y) + x**3 + 2**x + x**0.5 + x**-2 + x**x,
    "float_power": lambda x: fnp.float_power(x, 2.5),
    "remainder": lambda x: 5.1 % x + fnp.fmod(-4.7, x) + x % 0.25,
    "divide": lambda x: x / Y + 2 / x - x / (x + 1),
    "floor_divide": lambda x: 3.3 // x * x,
    "copysign": lambda x: fnp.copysign(x, Y - 0.5),
    "maximum": lambda x: fnp.maximum(x, Y) * fnp.minimum(x, 0.5) + fnp.fmax(x, Y) - fnp.fmin(x, Y),
    "heaviside": lambda x: fnp.heaviside(x - 0.5, x),
    "ldexp": lambda x: fnp.ldexp(x, 3),
    "clip": lambda x: fnp.clip(x, 0.4, Y + 0.3),
    "where": lambda x: fnp.where(x > Y, fnp.sin(x), x * Y),
    "select": lambda x: fnp.select([x > 0.7, x > 0.5], [x**2, fnp.exp(x)], Y),
    "modf": lambda x: fnp.modf(3 * x)[0],
    "divmod": lambda x: fnp.divmod(3 * x, 0.7)[1],
    "polygamma": lambda x: fsp.polygamma(2, x),
    "xlogy": lambda x: fsp.xlogy(x, x * Y) + fsp.xlog1py(Y, x),
    "list": lambda x: fnp.add([x[0, 0], 2.0, x[1, 2]], x),
    "methods": lambda x: (
        x.sum(axis=0) * x.mean() + x.max() - x.prod(axis=1)[0] + x.clip(0.4, 0.6).var() + x.std()
    ),
    "operators": lambda x: -x + (+x) * abs(x) - 1.5 * x / (2 - x) + x**2 // 0.3 * x,
}
DISCRETE = ("sign", "floor", "ceil", "trunc", "rint", "fix", "spacing", "round", "imag", "angle")


def scalar(f):
    """A scalar function of the same argument, with weights that tell its elements apart."""

    def g(x):
        y = f(x)
        return fnp.sum(y * np.cos(np.arange(np.prod(y.shape, dtype=int))).reshape(y.shape))

    return g


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name):
    f = scalar(FUNCTIONS[name])
    value, error = directional_derivative(lambda x: [f(x[0])], [X], [Y])
    gradient = ft.grad(f)(X)
    assert gradient.dtype == np.float64
    assert gradient.shape == X.shape
    np.testing.assert_allclose(np.sum(gradient * Y), value[0], rtol=1e-8, atol=100 * error[0] + 1e-10)
    out, tangent = ft.jvp(f, (X,), (Y,))
    np.testing.assert_allclose(tangent, value[0], rtol=1e-8, atol=100 * error[0] + 1e-10)
    np.testing.assert_allclose(out, f(X))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in DISCRETE])
def test_second_derivative(name):
    f = scalar(FUNCTIONS[name])
    gradient = ft.grad(f)
    value, error = directional_derivative(lambda x: [gradient(x[0])], [X], [Y])
    slack = {"rtol": 1e-7, "atol": 100 * np.max(error[0]) + 1e-9}
    _, forward = ft.jvp(gradient, (X,), (Y,))
    np.testing.assert_allclose(forward, value[0], **slack)
    reverse = ft.grad(lambda x: fnp.sum(gradient(x) * Y))(X)
    np.testing.assert_allclose(reverse, value[0], **slack)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_is_a_loop(name):
    f = FUNCTIONS[name]
    xs = np.stack([X, X[::-1], X * 0.9])
    for g in (f, ft.grad(scalar(f))):
        expected = np.stack([g(x) for x in xs])
        np.testing.assert_allclose(ft.vmap(g)(xs), expected, rtol=1e-12, atol=1e-14)
        moved = ft.vmap(g, in_axes=1)(np.moveaxis(xs, 0, 1))
        np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_is_eager(name):
    f = FUNCTIONS[name]
    for g in (f, ft.grad(scalar(f))):
        ours, expected = ft.jit(g)(X), g(X)
        assert ours.dtype == expected.dtype
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision_stays_single(name):
    if name in ("float_power", "weighted average", "mean with a mask", "logsumexp with weights", "list"):
        pytest.skip("meets doubles")
    f, x = FUNCTIONS[name], X.astype(np.float32)
    if f(x).dtype != np.float64:  # some meet constants in double precision
        assert f(x).dtype == np.float32
        assert ft.jit(f)(x).dtype == np.float32
    gradient = ft.grad(lambda x: fnp.sum(f(x)))(x)
    assert gradient.dtype == np.float32


#: Holomorphic functions.
COMPLEX = [*ufuncs("D->D", ("conjugate", "rint", "sign")), "sum", "prod", "mean"]


@pytest.mark.parametrize("name", COMPLEX)
def test_holomorphic_gradient(name):
    f = getattr(fnp, name)
    gradient = ft.grad(lambda z: fnp.sum(f(z) * (1 + 2j)), holomorphic=True)(Z)
    value, _ = directional_derivative(lambda z: [np.sum(getattr(np, name)(z[0]) * (1 + 2j))], [Z], [Y + 0.3j])
    np.testing.assert_allclose(np.sum(gradient * (Y + 0.3j)), value[0], rtol=1e-8)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: fnp.sum(fnp.abs(z) * Y),
        lambda z: fnp.sum(z.real * Y - z.imag),
        lambda z: fnp.sum((z * z.conj()).real),
        lambda z: fnp.sum(fnp.angle(z)),
        lambda z: fnp.var(z),
        lambda z: fnp.sum(fnp.abs(fnp.exp(z) * (1 - 1j)) ** 2),
    ],
)
def test_real_functions_of_complex_numbers(f):
    gradient = ft.grad(f)(Z)
    assert gradient.dtype == np.complex128
    for direction in (Y + 0j, 1j * Y, Y * (1 - 0.5j)):
        value, _ = directional_derivative(lambda z: [f(z[0])], [Z], [direction])
        # df = Re(g dz), since g is df/dx - i df/dy.
        np.testing.assert_allclose(np.sum(gradient * direction).real, value[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ft.jvp(f, (Z,), (direction,))[1], value[0], rtol=1e-8, atol=1e-10)


def test_functions_of_numpy_and_scipy_reach_traced_values():
    pairs = [
        (lambda x: np.sum(np.sin(x) * np.exp(x), axis=0), lambda x: fnp.sum(fnp.sin(x) * fnp.exp(x), axis=0)),
        (
            lambda x: np.mean(np.where(x > 0.5, x, np.log(x))),
            lambda x: fnp.mean(fnp.where(x > 0.5, x, fnp.log(x))),
        ),
        (lambda x: np.clip(x, 0.4, 0.6).max(), lambda x: fnp.max(fnp.clip(x, 0.4, 0.6))),
        (lambda x: np.maximum.reduce(x, axis=1), lambda x: fnp.max(x, axis=1)),
        (lambda x: np.add.reduce(x), lambda x: fnp.sum(x, axis=0)),
        (lambda x: np.multiply.outer(x, x), lambda x: x[:, :, None, None] * x),
        (lambda x: sp.erf(x) + sp.gammaln(x), lambda x: fsp.erf(x) + fsp.gammaln(x)),
        (
            lambda x: np.float64(2) * x + Y * x - np.ones(3) / x,
            lambda x: 2.0 * x + fnp.asarray(Y) * x - 1 / x,
        ),
        (lambda x: np.sqrt(np.sum(x**2)), lambda x: fnp.sqrt(fnp.sum(x**2))),
    ]
    for theirs, ours in pairs:
        np.testing.assert_allclose(ft.grad(scalar(theirs))(X), ft.grad(scalar(ours))(X), rtol=1e-13)
        np.testing.assert_allclose(ft.jit(theirs)(X), ours(X), rtol=1e-13)


DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64, np.complex64, np.complex128]
EXPRESSIONS = [
    lambda x: x + 1,
    lambda x: 2.5 * x,
    lambda x: x * 1j,
    lambda x: x / 2,
    lambda x: x**2,
    lambda x: x**2.0,
    lambda x: 2**x,
    lambda x: x > 0.5,
    lambda x: np.add(x, x) * np.float32(2),
    lambda x: np.sum(x),
    lambda x: np.sin(x),
    lambda x: np.where(x == x, x, 0),
    lambda x: np.mean(x),
    lambda x: abs(x),
    lambda x: x == 1,
    lambda x: np.sqrt(x),
]


def expression(k, dtype):
    of_squares = k == 5 and dtype is np.bool_
    needs = pytest.mark.needs("numpy>=2.3", reason="the square of a boolean has eight bits")
    return pytest.param(k, dtype, marks=[needs] if of_squares else [])


@pytest.mark.parametrize(
    ("k", "dtype"), [expression(k, dtype) for k in range(len(EXPRESSIONS)) for dtype in DTYPES]
)
def test_one_expression_has_one_dtype(k, dtype):
    """In NumPy, staged and batched, arrays and numbers."""
    f = EXPRESSIONS[k]
    x = np.array([1, 0, 1]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = f(x).dtype
        assert ft.jit(f)(x).dtype == expected
        assert ft.vmap(f)(x[None]).dtype == expected


@pytest.mark.parametrize("number", [2, 2.5, 1.5 + 1j])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_python_numbers_as_arguments_are_weak(number, dtype):
    x = np.ones(2, dtype)
    for f in (
        lambda a: a * x,
        lambda a: a + a,
        lambda a: (a + 1) * x,
        lambda a: a / 2 * x,
        lambda a: a * 3 * x,
        np.sin,
    ):
        expected = np.asarray(f(number)).dtype
        assert ft.jit(f)(number).dtype == expected


def test_comparison_of_traced_values_with_other_objects():
    seen = []

    def f(x):
        seen.extend([x == None, x != "a", x == "a", x != None])  # noqa: E711
        return fnp.sum(x)

    ft.grad(f)(X)
    assert [np.all(s) for s in seen] == [False, True, False, True]
    assert all(np.shape(s) == X.shape for s in seen)
    with pytest.raises(TypeError):
        ft.grad(lambda x: x + "a")(1.0)
    with pytest.raises(TypeError):
        ft.grad(lambda x: x < None)(1.0)


def test_refusals_on_traced_values():
    with pytest.raises(NoRuleError, match=r"np\.copyto of a traced value of type f64\[2,3\].*full_like"):
        ft.grad(lambda x: np.copyto(x, 0.0))(X)
    with pytest.raises(ImmutableArrayError, match=r"x\.at"):
        ft.jit(lambda x: np.add.at(x, 0, 1.0))(X)
    with pytest.raises(ImmutableArrayError):
        ft.jit(lambda x: np.sin(X, out=x))(X)
    with pytest.raises(ShapeError, match=r"add: shapes \(2, 3\) and \(4,\)"):
        ft.grad(lambda x: fnp.sum(x + np.ones(4)))(X)
    with pytest.raises(ShapeError, match=r"multiply: shapes"):
        ft.jit(lambda x: fnp.multiply(x, np.ones(4)))(X)
    with pytest.raises(TracerScalarConversionError):
        ft.jit(lambda x: x.sum().item())(X)


def test_item_of_known_values():
    seen = []
    ft.grad(
        lambda x: (seen.append((float(x[0, 0]), lax.stop_gradient(x[0, 0]).item(), x.nbytes)), x.sum())[1]
    )(X)
    assert seen == [(X[0, 0], X[0, 0], X.nbytes)]
    with pytest.raises(TracerScalarConversionError, match=r"item\(\).*derivative would be lost"):
        ft.grad(lambda x: x[0, 0].item() * x.sum())(X)


def test_integers_under_grad():
    """Integers depend on nothing: they take part as constants."""
    g = ft.grad(lambda x: fnp.sum(x * fnp.argmax(x) + fnp.sum(x > 0.5) + fnp.floor(x).astype(int)))(X)
    np.testing.assert_array_equal(g, np.full(X.shape, np.argmax(X)))
