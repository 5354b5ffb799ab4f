"""functrans.lax: the names, their strictness, and values against NumPy and SciPy."""

import inspect

import numpy as np
import pytest
from scipy import special

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, AxisError, DtypeError, LinAlgError, ShapeError
from functrans.lax import elementwise

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.1, 0.9, (3, 4)), RNG.uniform(0.1, 0.9, (3, 4))
N, M = RNG.integers(1, 9, (3, 4)), RNG.integers(1, 4, (3, 4))
REFERENCES = {
    "neg": np.negative, "conj": np.conj, "lgamma": special.gammaln, "digamma": special.psi, "erf":
    special.erf, "erfc": special.erfc, "is_finite": np.isfinite, "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": special.expit, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh":
    np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "add": np.add, "sub": np.subtract, "mul":
    np.multiply, "div": np.divide, "rem": np.fmod, "max": np.maximum, "min": np.minimum, "pow":
    np.power, "atan2": np.arctan2, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le":
    np.less_equal, "gt": np.greater, "ge": np.greater_equal, "complex": lambda x, y: x + 1j * y,
}  # fmt: skip


def reference(name):
    return REFERENCES.get(name) or getattr(np, name)


#: Those with tests of their own, or of other numbers.
OTHERS = {"acosh", "bitwise_not", "conj", "imag", "real", "stop_gradient"}
UNARY = sorted(
    f for f in set(elementwise.__all__) - OTHERS if [*inspect.signature(getattr(lax, f)).parameters] == ["x"]
)
BINARY = [
    "add", "sub", "mul", "div", "rem", "max", "min", "pow", "atan2", "nextafter", "complex", "eq", "ne",
    "lt", "le", "gt", "ge",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for x in (X, X.astype(np.float32)):
        got = getattr(lax, name)(x)
        assert got.dtype == reference(name)(x).dtype
        np.testing.assert_allclose(got, reference(name)(x), rtol=1e-5 if x.dtype == np.float32 else 1e-13)


def test_logistic_at_the_ends():
    x = np.array([-1000.0, -30.0, 0.0, 30.0, 1000.0, np.inf, -np.inf])
    np.testing.assert_allclose(lax.logistic(x), special.expit(x), rtol=1e-14)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    np.testing.assert_allclose(getattr(lax, name)(X, Y), reference(name)(X, Y), rtol=1e-14)
    np.testing.assert_allclose(getattr(lax, name)(X, 0.5), reference(name)(X, 0.5), rtol=1e-14)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name):
    np.testing.assert_array_equal(getattr(lax, name)(N, M), getattr(np, name)(N, M))
    np.testing.assert_array_equal(lax.bitwise_not(N), ~N)
    np.testing.assert_array_equal(lax.shift_left(N, M), N << M)
    small = np.array([-8, 127, 1], np.int8)
    np.testing.assert_array_equal(lax.shift_right_arithmetic(small, np.int8(1)), small >> 1)
    logical = (small.view(np.uint8) >> 1).view(np.int8)
    np.testing.assert_array_equal(lax.shift_right_logical(small, np.int8(1)), logical)


def test_integer_division_truncates():
    x, y = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    np.testing.assert_array_equal(lax.div(x, y), [3, -3, -3, 3])
    np.testing.assert_array_equal(lax.rem(x, y), [1, -1, 1, -1])


def test_rounding():
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.4, 0.49999999999999994])
    np.testing.assert_array_equal(lax.round(x), [-3, -1, 1, 2, 2, 0])
    np.testing.assert_array_equal(lax.round(x, 1), np.rint(x))


def test_operands_must_agree():
    with pytest.raises(DtypeError, match=r"lax.add: operands have different dtypes \(float64, float32\)"):
        lax.add(X, Y.astype(np.float32))
    with pytest.raises(
        ShapeError, match=r"lax.add: operands have different numbers of axes \(\(3, 4\), \(4,\)\)"
    ):
        lax.add(X, Y[0])
    with pytest.raises(DtypeError, match="sin"):
        lax.sin(N)
    assert lax.add(X.astype(np.float32), 1.0).dtype == np.float32


def test_choosing():
    pred = X > 0.5
    np.testing.assert_array_equal(lax.select(pred, X, Y), np.where(pred, X, Y))
    np.testing.assert_array_equal(lax.select_n(pred, X, Y), np.where(pred, Y, X))
    which = (N % 3).astype(np.int32)
    for dtype in (np.int32, np.int64, np.int8, np.uint8, np.uint64):
        for choose in (lax.select_n, ft.jit(lax.select_n)):
            chosen = choose(which.astype(dtype), X, Y, -X)
            np.testing.assert_array_equal(chosen, np.choose(which, [X, Y, -X]))
    many = [np.full(3, float(i)) for i in range(200)]
    np.testing.assert_array_equal(lax.select_n(np.array([0, 7, 127], np.int8), *many), [0, 7, 127])
    with pytest.raises(DtypeError, match="bool or an integer"):
        lax.select_n(X, X, Y)
    np.testing.assert_array_equal(lax.clamp(0.3, X, 0.6), np.clip(X, 0.3, 0.6))
    assert lax.convert_element_type(X, np.int32).dtype == np.int32
    with pytest.raises(ShapeError):
        lax.select(pred[0], X, Y)


def test_shapes():
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(lax.reshape(x, (4, 6)), x.reshape(4, 6))
    np.testing.assert_array_equal(lax.reshape(x, (4, 6), (2, 0, 1)), x.transpose(2, 0, 1).reshape(4, 6))
    np.testing.assert_array_equal(lax.transpose(x, (2, 0, 1)), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(lax.broadcast(x, (5,)), np.broadcast_to(x, (5, 2, 3, 4)))
    np.testing.assert_array_equal(
        lax.broadcast_in_dim(x[0], (3, 2, 4), (0, 2)), np.broadcast_to(x[0][:, None], (3, 2, 4))
    )
    np.testing.assert_array_equal(lax.squeeze(x[:, :1], (1,)), x[:, 0])
    assert lax.expand_dims(x, (0, -1)).shape == (1, 2, 3, 4, 1)
    assert lax.collapse(x, 1).shape == (2, 12)
    assert lax.collapse(x, 0, 2).shape == (6, 4)
    np.testing.assert_array_equal(lax.rev(x, (0, 2)), x[::-1, :, ::-1])
    np.testing.assert_array_equal(lax.concatenate([x, x], 1), np.concatenate([x, x], 1))
    padded = np.pad(x[0], ((1, 0), (0, 0)), constant_values=7)[:, :-1]
    np.testing.assert_array_equal(lax.pad(x[0], 7.0, ((1, 0, 0), (0, -1, 0))), padded)


def test_slices():
    x = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(lax.slice(x, (1, 0), (3, 6), (1, 2)), x[1:3, ::2])
    np.testing.assert_array_equal(lax.slice_in_dim(x, -3, None, 2, axis=1), x[:, -3::2])
    np.testing.assert_array_equal(lax.index_in_dim(x, -1, 1), x[:, -1:])
    np.testing.assert_array_equal(lax.index_in_dim(x, 2, 0, keepdims=False), x[2])
    np.testing.assert_array_equal(lax.dynamic_slice(x, (9, -2), (2, 2)), x[2:4, 4:6])
    np.testing.assert_array_equal(lax.dynamic_slice_in_dim(x, 5, 3, axis=1), x[:, 3:])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(x, 1, 0, keepdims=False), x[1])
    expected = x.copy()
    expected[2:4, 1:3] = 0
    np.testing.assert_array_equal(lax.dynamic_update_slice(x, np.zeros((2, 2)), (2, 1)), expected)
    expected = x.copy()
    expected[:, 2] = 1
    np.testing.assert_array_equal(lax.dynamic_update_index_in_dim(x, np.ones(4), 2, 1), expected)
    expected = x.copy()
    expected[1:2] = 1
    np.testing.assert_array_equal(lax.dynamic_update_slice_in_dim(x, np.ones((1, 6)), 1, 0), expected)
    with pytest.raises(ArgumentValueError, match="start_indices has 1"):
        lax.dynamic_slice(x, (1,), (2, 2))
    with pytest.raises(ShapeError, match="slice_sizes"):
        lax.dynamic_slice(x, (0, 0), (5, 2))


def test_new_arrays():
    np.testing.assert_array_equal(lax.iota(np.int32, 3), np.arange(3, dtype=np.int32))
    np.testing.assert_array_equal(lax.broadcasted_iota(float, (2, 3), 1), np.indices((2, 3))[1])
    np.testing.assert_array_equal(lax.full((2, 3), 7), np.full((2, 3), 7))
    assert lax.full_like(X, 1, np.int8).dtype == np.int8
    with pytest.raises(ArgumentError, match="must be a number"):
        lax.full((2,), X)


def test_reductions():
    np.testing.assert_allclose(lax.reduce_sum(X, (0,)), X.sum(0))
    np.testing.assert_allclose(lax.reduce_prod(X, (0, 1)), X.prod())
    np.testing.assert_array_equal(lax.reduce_max(X, (-1,)), X.max(-1))
    np.testing.assert_array_equal(lax.reduce_min(X, ()), X)
    np.testing.assert_array_equal(lax.reduce_and(X > 0.5, (0,)), (X > 0.5).all(0))
    np.testing.assert_array_equal(lax.reduce_or(X > 0.5, (0,)), (X > 0.5).any(0))
    np.testing.assert_array_equal(lax.argmax(X, 1, np.int32), X.argmax(1))
    np.testing.assert_array_equal(lax.argmin(X, 1, np.int32), X.argmin(1))
    assert lax.reduce_sum(N.astype(np.int8), (0,)).dtype == np.int8
    with pytest.raises(AxisError):
        lax.reduce_sum(X, (2,))


def test_products():
    np.testing.assert_allclose(lax.dot(X, Y.T), X @ Y.T)
    np.testing.assert_allclose(lax.dot(X[0], Y[0]), X[0] @ Y[0])
    stack = np.stack([X, Y])
    np.testing.assert_allclose(lax.batch_matmul(stack, stack.swapaxes(1, 2)), stack @ stack.swapaxes(1, 2))
    np.testing.assert_allclose(lax.dot_general(X, Y, (([0, 1], [0, 1]), ([], []))), np.sum(X * Y))
    assert lax.dot(N.astype(np.int8), M.T.astype(np.int8), preferred_element_type=np.int32).dtype == np.int32


def test_linalg():
    a = X @ X.T + np.eye(3)
    np.testing.assert_allclose(lax.linalg.cholesky(a), np.linalg.cholesky(a))
    upper = np.triu(a)
    np.testing.assert_allclose(upper @ lax.linalg.triangular_solve(upper, X, left_side=True), X)
    np.testing.assert_allclose(lax.linalg.triangular_solve(upper, X.T, lower=False) @ upper, X.T)
    with pytest.raises(LinAlgError):
        lax.linalg.cholesky(-a)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.reshape(x, (12,)),
        lambda x: lax.transpose(x, (1, 0)),
        lambda x: lax.broadcast(x, (2,)),
        lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
        lambda x: lax.squeeze(x, ()),
        lambda x: lax.expand_dims(x, (0,)),
        lambda x: lax.collapse(x, 0),
        lambda x: lax.pad(x, 0.0, [(0, 0, 0), (0, 0, 0)]),
        lambda x: lax.rev(x, (0,)),
        lambda x: lax.rev(x, ()),
        lambda x: lax.slice(x, (0, 1), (3, 4)),
        lambda x: lax.slice_in_dim(x, 1, 3),
        lambda x: lax.index_in_dim(x, 1, keepdims=False),
        lambda x: lax.dynamic_slice(x, (0, 0), (2, 2)),
        lambda x: lax.dynamic_index_in_dim(x, 1),
        lambda x: lax.dynamic_update_slice(x, np.zeros((0, 4)), (0, 0)),
        lambda x: lax.reduce_max(x, ()),
        lambda x: lax.integer_pow(x, 1),
        lambda x: lax.convert_element_type(x, float),
        lax.stop_gradient,
    ],
)
def test_the_result_keeps_its_values_when_the_caller_changes_the_array(f):
    x = X.copy()
    before = np.array(f(X))
    kept = f(x)
    x[:] = 7.0
    np.testing.assert_array_equal(kept, before)
    array = fnp.asarray(X)
    assert lax.stop_gradient(array).base is not None  # an Array never changes: no copy
    assert np.shares_memory(lax.reshape(array, (12,)), array)


def test_stop_gradient_of_a_tree():
    tree = {"w": np.array([1.0, 2.0]), "b": (np.array(3.0), None, [4.0])}
    held = lax.stop_gradient(tree)
    assert held["b"][1:] == (None, [4.0])
    np.testing.assert_array_equal(held["w"], tree["w"])
    loss = lambda t: (
        ft.numpy.sum(t["w"] * lax.stop_gradient(t)["w"]) + lax.stop_gradient(t["b"])[2][0] * t["b"][0]
    )
    for f in (loss, ft.jit(loss)):
        slope = ft.grad(f)(tree)
        np.testing.assert_array_equal(slope["w"], tree["w"])
        assert float(slope["b"][0]) == 4.0
        assert float(slope["b"][2][0]) == 0.0


#: At the ends of every integer type, and beyond.
FLOATS = [0.0, -0.0, 0.5, -0.5, -3.7, 200.7, np.inf, -np.inf, np.nan]
FLOATS += [s * 2.0**k + d for k in (7, 8, 15, 16, 31, 32, 62, 63, 64) for s in (1, -1) for d in (-1, 0, 5)]


@pytest.mark.parametrize("target", ["bool", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_conversions_of_what_does_not_fit_are_the_same_eagerly_and_compiled(source, target):
    """NumPy's result, but to uint32: there NumPy's own depends on the strides, and only what fits is compared."""
    with np.errstate(all="ignore"):
        x = np.tile(np.array(FLOATS).astype(source), 3)
        expected = x.astype(target)
        eager = lax.convert_element_type(x, target)
    compiled = ft.jit(lambda x: lax.convert_element_type(x, target))(x)
    np.testing.assert_array_equal(compiled, eager)
    fits = np.ones(x.shape, bool) if target != "uint32" else (x > -(2.0**31)) & (x < 2.0**32)
    np.testing.assert_array_equal(compiled[fits], expected[fits])


def test_axes_that_are_named_twice_or_not_there_are_refused():
    x = np.ones(2)
    for shape, axes in (((2, 2), (0, 0)), ((2,), (0, 1)), ((2,), (1,)), ((2,), (-1,))):
        with pytest.raises(ShapeError, match="broadcast_dimensions must name a different axis"):
            lax.broadcast_in_dim(x if len(axes) == 1 else np.ones((2, 2)), shape, axes)


def test_numbers_of_places_are_integers():
    for f in (lax.argmax, lax.argmin):
        with pytest.raises(DtypeError, match="index_dtype must be an integer dtype, got float32"):
            f(np.ones(3), 0, np.float32)
        assert f(np.array([2.0, 3.0, 1.0]), 0, np.uint8).dtype == np.uint8


def test_extents_of_one_broadcast_in_elementwise_operations():
    x, y = RNG.uniform(0.1, 0.9, (3, 1)), RNG.uniform(0.1, 0.9, (1, 4))
    np.testing.assert_array_equal(lax.add(x, y), x + y)
    np.testing.assert_array_equal(lax.add(x, np.ones((3, 4))), x + np.ones((3, 4)))
    np.testing.assert_allclose(ft.jit(lax.atan2)(x, y), np.arctan2(x, y), rtol=1e-15)
    np.testing.assert_array_equal(lax.div(np.array([[7], [-7]]), np.array([[2, 3]])), [[3, 2], [-3, -2]])
    np.testing.assert_array_equal(lax.betainc(x, y, X), special.betainc(x, y, X))
    assert lax.eq(np.ones((0, 1)), np.ones((0, 3))).shape == (0, 3)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(lax.mul(x, Y)))(x), Y.sum(1, keepdims=True))
    np.testing.assert_allclose(ft.vmap(lax.mul, (0, None))(x[:, None], y), x[:, None] * y)
    for shape, other in (((3, 4), (4,)), ((1,), (3, 4))):
        with pytest.raises(ShapeError, match=r"lax.add: operands have different numbers of axes"):
            lax.add(np.ones(shape), np.ones(other))
    with pytest.raises(ShapeError, match=r"lax.mul: shapes \(3,\) and \(4,\) do not broadcast"):
        lax.mul(np.ones(3), np.ones(4))
    for strict in (lambda x, y: lax.clamp(x, y, y), lambda x, y: lax.select(y > 0, x, y)):
        with pytest.raises(ShapeError, match=r"different shapes|differ"):
            strict(np.ones((3, 1)), np.ones((3, 4)))


def test_products_promote():
    for one, other in (("int32", "float32"), ("int32", "int64"), ("complex64", "float64"), ("bool", "int8")):
        a, b = np.ones((3, 3), one), np.full((3, 3), 2, other)
        expected = a @ b
        out = lax.dot(a, b)
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == expected.dtype == ft.jit(lax.dot)(a, b).dtype
    ones, steps = np.ones(3, np.int32), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(ft.grad(lambda x: lax.dot(ones, x).astype(np.float32))(steps), ones)
    assert lax.dot(ones, steps, preferred_element_type=np.float32).dtype == np.float32


def test_a_complex_number_with_real_arrays():
    """Python's complex numbers do not lose their imaginary parts."""
    calls = (
        lambda z, x: lax.add(z, x),
        lambda z, x: lax.zeta(z, x),
        lambda z, x: lax.clamp(z, x, x),
        lambda z, x: lax.pad(x, z, [(1, 1, 0)]),
    )
    for call in calls:
        for wrap in (lambda f: f, ft.jit):
            with pytest.raises(DtypeError):
                wrap(call)(2 + 3j, np.ones(2))
    for wrap in (lambda f: f, ft.jit):
        out = wrap(lax.add)(2 + 3j, np.ones(2, np.complex64))
        assert out.dtype == np.complex64
        np.testing.assert_array_equal(out, [3 + 3j, 3 + 3j])
        np.testing.assert_array_equal(wrap(fnp.logical_and)(2j, np.array([0.0, 1.0])), [False, True])
