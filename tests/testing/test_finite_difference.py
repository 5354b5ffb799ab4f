"""The numerical derivatives against closed forms, and the kinks they have to notice."""

import numpy as np
import pytest
import scipy.special

from functrans.errors import ArgumentError, DtypeError, ShapeError
from functrans.testing.finite_difference import directional_derivative, is_kink, jacobian


def along_one(f, x):
    """Derivative and error estimate of a scalar function as floats."""
    value, error = directional_derivative(lambda a: [f(a[0])], [x], [1.0])
    return float(value[0]), float(error[0])


# Function, point, its derivative there, the accuracy asked for (relative).
KNOWN = {
    "sin": (np.sin, 1.0, np.cos(1.0), 9e-12),
    "exp": (np.exp, 1.0, np.e, 2e-12),
    "tan": (np.tan, 1.5, 1 + np.tan(1.5) ** 2, 2e-11),
    "log": (np.log, 0.01, 100.0, 1e-12),
    "sqrt": (np.sqrt, 1e-3, 0.5 / np.sqrt(1e-3), 1e-12),
    "log near its pole": (np.log, 1e-8, 1e8, 1e-11),
    "sqrt near its edge": (np.sqrt, 1e-9, 0.5 / np.sqrt(1e-9), 1e-11),
    "large argument": (np.log, 1e6, 1e-6, 1e-9),
    "oscillation": (lambda x: np.sin(100 * x), 0.3, 100 * np.cos(30.0), 1e-10),
    "erf": (scipy.special.erf, 0.7, 2 / np.sqrt(np.pi) * np.exp(-0.49), 1e-11),
    "square at its bottom": (np.square, 0.0, 0.0, 0.0),
}


@pytest.mark.parametrize(("f", "x", "expected", "accuracy"), KNOWN.values(), ids=KNOWN)
def test_known_derivatives(f, x, expected, accuracy):
    value, error = along_one(f, x)
    assert abs(value - expected) <= accuracy * abs(expected)
    assert abs(value - expected) <= 10 * error, "the error estimate is too good to be true"
    assert error <= 1e-8 * max(1.0, abs(expected)), "the error estimate is useless"
    assert not is_kink(lambda a: [f(a[0])], [x], [1.0])


def test_error_estimate_holds_at_many_points():
    rng = np.random.default_rng(0)
    for f, derivative in ((np.sin, np.cos), (np.exp, np.exp), (np.arctan, lambda x: 1 / (1 + x**2))):
        x = rng.uniform(-3, 3, 500)
        value, error = directional_derivative(lambda a, f=f: [f(a[0])], [x], [np.ones(500)])
        miss = np.abs(value[0] - derivative(x))
        assert (miss <= 10 * error[0]).all()
        assert np.median(miss) < 1e-11


def relu(x):
    return np.maximum(x, 0.0)


def staircase(x):
    return np.floor(x)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (np.abs, 0.0),
        (np.abs, 3e-7),
        (relu, 0.0),
        (relu, 1e-9),
        (relu, -1e-6),
        (staircase, 2.0),
        (np.sqrt, 0.0),
        (np.log, 0.0),
        (np.cbrt, 0.0),
        (lambda x: 1e-3 * np.abs(x) + np.sin(x), 0.0),
        (lambda x: np.abs(x - 1000.0), 1000.0),
        (lambda x: 1 / x, 0.0),
        (lambda x: np.max(np.stack([x, 2 * x - 1.0])), 1.0),
    ],
)
def test_kinks_are_noticed(f, x):
    assert is_kink(lambda a: [f(a[0])], [x], [1.0])


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (np.abs, 0.1),
        (np.square, 0.0),
        (lambda x: x**4, 0.0),
        (lambda x: np.maximum(x, 0) ** 2, 0.0),
        (np.cos, 0.0),
        (np.tan, 1.5),
        (lambda x: np.exp(-x * x), 0.0),
        (lambda x: 1e8 + x**2, 0.0),
        (lambda x: np.sin(50 * x), 0.2),
        (lambda x: 0 * x, 1.0),
        (staircase, 2.5),
        (np.log, 1e-8),
        (np.log, 1e5),
    ],
)
def test_smooth_points_are_not_kinks(f, x):
    assert not is_kink(lambda a: [f(a[0])], [x], [1.0])


def test_the_estimate_alone_misses_a_kink():
    value, error = along_one(relu, 1e-9)
    assert abs(value - 1.0) > 100 * error
    assert is_kink(lambda a: [relu(a[0])], [1e-9], [1.0])


def test_one_kink_among_many_elements():
    x = np.array([0.5, 0.0, -0.5])
    assert is_kink(lambda a: [np.abs(a[0])], [x], [np.ones(3)])
    assert not is_kink(lambda a: [np.abs(a[0])], [x], [np.array([1.0, 0.0, 1.0])]), (
        "not moved across the kink"
    )


def test_several_inputs_and_outputs():
    rng = np.random.default_rng(1)
    a, b, va, vb = (rng.normal(size=s) for s in ((3, 4), (4, 2), (3, 4), (4, 2)))
    value, error = directional_derivative(lambda x: [x[0] @ x[1], np.sum(x[0])], [a, b], [va, vb])
    np.testing.assert_allclose(value[0], va @ b + a @ vb, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(value[1], va.sum(), rtol=1e-11)
    assert value[0].shape == error[0].shape == (3, 2)
    assert value[1].shape == error[1].shape == ()


def test_none_holds_an_input_fixed():
    f = lambda x: [x[0] * x[1]]
    value, _ = directional_derivative(f, [2.0, 3.0], [None, 1.0])
    np.testing.assert_allclose(value[0], 2.0, rtol=1e-12)
    value, error = directional_derivative(f, [2.0, 3.0], [None, None])
    assert value[0] == 0
    assert error[0] == 0
    assert not is_kink(lambda x: [np.abs(x[0])], [0.0], [None])


def test_integers_are_constants():
    x = [np.array([1.0, 2.0, 3.0]), np.array([2, 0])]
    value, _ = directional_derivative(lambda a: [a[0][a[1]], np.argmax(a[0])], x, [np.ones(3), np.ones(2)])
    np.testing.assert_allclose(value[0], [1.0, 1.0], rtol=1e-12)
    assert value[1] == 0
    assert value[1].dtype == float
    matrix, _ = jacobian(lambda a: [a[0][a[1]]], x)
    np.testing.assert_allclose(matrix[0][0], [[0, 0, 1], [1, 0, 0]], atol=1e-12)
    assert matrix[0][1].shape == (2, 2)
    assert not matrix[0][1].any()


def test_empty_and_zero_dimensional_arrays():
    value, error = directional_derivative(lambda x: [np.sin(x[0])], [np.zeros((0, 3))], [np.zeros((0, 3))])
    assert value[0].shape == error[0].shape == (0, 3)
    value, _ = directional_derivative(lambda x: [x[0][:0], x[0].sum()], [np.ones(2)], [np.ones(2)])
    assert value[0].shape == (0,)
    np.testing.assert_allclose(value[1], 2.0)
    matrix, _ = jacobian(lambda x: [np.sum(x[0]) + x[1]], [np.zeros((0, 3)), 1.0])
    assert matrix[0][0].shape == (0, 3)
    assert matrix[0][1] == 1.0
    assert directional_derivative(lambda x: [], [1.0], [1.0]) == ([], [])
    assert not is_kink(lambda x: [np.abs(x[0])], [np.zeros(0)], [np.zeros(0)])


def test_single_precision():
    x = np.linspace(0.5, 2, 7, dtype=np.float32)

    def f(a):
        assert a[0].dtype == np.float32
        return [np.log(a[0])]

    value, error = directional_derivative(f, [x], [np.ones(7, np.float32)])
    assert value[0].dtype == np.float64
    np.testing.assert_allclose(value[0], 1 / x.astype(float), rtol=2e-5)
    assert (np.abs(value[0] - 1 / x.astype(float)) <= 10 * error[0]).all()
    assert not is_kink(f, [x], [np.ones(7, np.float32)])
    assert is_kink(lambda a: [np.abs(a[0])], [np.float32(0)], [1.0])


def test_complex_inputs_move_in_two_directions():
    z = np.array([0.3 + 0.4j, -1.0 + 2.0j])
    v = np.array([1.0 - 2.0j, 0.5j])
    value, _ = directional_derivative(lambda x: [x[0] ** 3], [z], [v])
    np.testing.assert_allclose(value[0], 3 * z**2 * v, rtol=1e-11)
    value, _ = directional_derivative(lambda x: [np.abs(x[0]) ** 2], [z], [v])
    np.testing.assert_allclose(value[0], 2 * (z.conj() * v).real, rtol=1e-11)
    assert value[0].dtype == np.float64
    matrix, error = jacobian(lambda x: [np.exp(x[0])], [z])
    assert matrix[0][0].shape == error[0][0].shape == (2, 2, 2)
    np.testing.assert_allclose(matrix[0][0][..., 0], np.diag(np.exp(z)), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(matrix[0][0][..., 1], np.diag(1j * np.exp(z)), rtol=1e-11, atol=1e-12)


def test_jacobian_of_several_arguments():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)
    matrix, error = jacobian(lambda x: [x[0] @ x[1], x[1] ** 2], [a, b])
    expected = np.einsum("ij,k->ijk", np.eye(2), b)
    np.testing.assert_allclose(matrix[0][0], expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(matrix[0][1], a, rtol=1e-11)
    assert not matrix[1][0].any()
    np.testing.assert_allclose(matrix[1][1], np.diag(2 * b), rtol=1e-11, atol=1e-11)
    assert error[0][0].shape == (2, 2, 3)


def test_a_function_may_overwrite_its_arguments():
    def f(x):
        x[0] *= 2
        return [x[0]]

    x = np.array([1.0, 2.0])
    value, _ = directional_derivative(f, [x], [np.ones(2)])
    np.testing.assert_allclose(value[0], 2.0)
    assert (x == [1.0, 2.0]).all()


def test_outside_the_domain_the_error_is_infinite():
    value, error = directional_derivative(lambda x: [np.log(x[0])], [np.array([-1.0, 1.0])], [np.ones(2)])
    assert np.isinf(error[0][0])
    assert error[0][1] < 1e-10
    np.testing.assert_allclose(value[0][1], 1.0, rtol=1e-11)
    assert is_kink(lambda x: [np.log(x[0])], [-1.0], [1.0])


def test_bad_arguments_are_named():
    f = lambda x: [x[0]]
    with pytest.raises(ArgumentError, match=r"v has 2 entries for 1 arrays of x"):
        directional_derivative(f, [1.0], [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"v\[0\] has shape \(3,\), but x\[0\] has shape \(2,\)"):
        directional_derivative(f, [np.ones(2)], [np.ones(3)])
    with pytest.raises(DtypeError, match=r"a real input needs a real direction"):
        directional_derivative(f, [1.0], [1j])
    with pytest.raises(ArgumentError, match=r"Write \[x\], \[v\]"):
        directional_derivative(f, np.ones(2), np.ones(2))
    with pytest.raises(ArgumentError, match=r"Return \[y\]"):
        directional_derivative(lambda x: x[0], [1.0], [1.0])
    with pytest.raises(ShapeError, match=r"changed their shapes from \[\(1,\)\] to \[\(0,\)\]"):
        directional_derivative(lambda x: [x[0][x[0] <= 1.0]], [np.ones(1)], [np.ones(1)])


def rounding(x, size):
    """Numbers up to `size` that change at random from one `x` to the next, as rounding errors do."""
    return size * np.sin(1e17 * x)


@pytest.mark.parametrize("size", [1e-16, 3e-15, 1e-13, 1e-11])
@pytest.mark.parametrize("x", [0.3, 1.7, 40.0])
def test_rounding_errors_are_not_a_kink(size, x):
    """A library adds in whatever order suits the machine; of ill-conditioned functions little else is left."""
    for smooth in (lambda x: 1 + 0 * x, np.sin, lambda x: 1e-4 * x):
        for n in range(20):
            assert not is_kink(lambda a, f=smooth: [f(a[0]) + rounding(a[0], size)], [x + n * 1e-3], [1.0])


@pytest.mark.parametrize("size", [1e-16, 3e-15, 1e-13])
def test_kinks_are_noticed_beneath_rounding_errors(size):
    for f, x in (
        (np.abs, 0.0),
        (relu, -1e-6),
        (staircase, 2.0),
        (np.cbrt, 0.0),
        (lambda x: 1e-2 * np.abs(x) + x, 0.0),
    ):
        assert is_kink(lambda a, f=f: [f(a[0]) + rounding(a[0] + 0.1, size)], [x], [1.0])


@pytest.mark.parametrize("x", [1e-2, 1e-3, 1e-4])
def test_cancellation_is_not_a_kink(x):
    assert not is_kink(lambda a: [(np.expm1(a[0]) - a[0]) / a[0] ** 2], [x], [1.0])
    assert not is_kink(lambda a: [(1 - np.cos(a[0])) / a[0] ** 2], [x], [1.0])


def test_values_whose_sign_depends_on_rounding_jump():
    """As eigenvectors do; errors of a cancelled sum are no jump."""

    def flips(xs):
        (x,) = xs
        return [np.where(x.view(np.int64) % 3 == 0, -x, x)]

    x, v = [np.array([0.7, 1.3])], [np.array([1.0, -0.5])]
    assert is_kink(flips, x, v)
    assert not is_kink(lambda xs: [(xs[0] + 1.0) - 1.0 - xs[0]], x, v)
    assert not is_kink(lambda xs: [1e3 * ((xs[0] + 1e6) - 1e6)], x, v)
