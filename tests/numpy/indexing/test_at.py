"""``x.at[index]`` under every transformation: each method in each mode, masks, GatherScatterMode, promises."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import InvalidIndexError, NonConcreteBooleanIndexError
from functrans.testing import check

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, (4, 3))
UFUNCS = {
    "set": lambda old, new: new,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
INDEX = np.array([1, 3, 1, -1, 6])
V = RNG.uniform(0.6, 1.4, (5, 3))
#: Which row each index means; None is left out.
MEANT = {"clip": [1, 3, 1, 3, 3], "wrap": [1, 3, 1, 3, 2], "drop": [1, 3, 1, 3, None]}
MEANT["fill"] = MEANT["drop"]


def updated(ufunc, mode):
    out = X.copy()
    for row, v in zip(MEANT[mode], V):
        if row is not None:
            out[row] = ufunc(out[row], v)
    return out


@pytest.mark.parametrize("mode", MEANT)
@pytest.mark.parametrize("method", UFUNCS)
def test_methods_in_modes(method, mode):
    f = lambda x, v: getattr(x.at[INDEX], method)(v, mode=mode)
    expected = updated(UFUNCS[method], mode)
    np.testing.assert_allclose(f(fnp.asarray(X), V), expected, rtol=1e-13)
    np.testing.assert_allclose(ft.jit(f)(X, V), expected, rtol=1e-13)
    traced = ft.jit(lambda x, i, v: getattr(x.at[i], method)(v, mode=mode))
    np.testing.assert_allclose(traced(X, INDEX, V), expected, rtol=1e-13)
    mapped = ft.vmap(lambda x, i: getattr(x.at[i], method)(V, mode=mode), (None, 0))(
        X, np.stack([INDEX, INDEX])
    )
    np.testing.assert_allclose(mapped, np.stack([expected] * 2), rtol=1e-13)


@pytest.mark.parametrize("method", UFUNCS)
def test_derivatives(method):
    f = lambda x, v: getattr(x.at[INDEX], method)(v, mode="drop")
    laws = ("jvp_is_slope", "vjp_is_adjoint", "hessian_is_symmetric", "jit_and_grad_commute")
    check(f, X, V, order=1 if method in ("set", "add", "subtract", "min", "max") else 2, laws=laws)


@pytest.mark.parametrize("method", UFUNCS)
def test_a_mask_whose_numbers_are_unknown(method):
    rows = X[:, 0] > 1.0
    f = lambda x, m, v: getattr(x.at[m], method)(v)
    for mask, value in ((X > 1.0, 0.7), (rows, np.array([0.7, 0.8, 0.9])), (rows, 0.7)):
        expected = X.copy()
        expected[mask] = UFUNCS[method](X[mask], value)
        np.testing.assert_allclose(ft.jit(f)(X, mask, value), expected, rtol=1e-14)
        np.testing.assert_allclose(f(fnp.asarray(X), mask, value), expected, rtol=1e-14)
        check(
            lambda x, m=mask, v=value: f(x, fnp.asarray(m), v),
            X,
            wrt=0,
            order=1,
            laws=("jvp_is_slope", "vjp_is_adjoint"),
        )


def test_apply():
    f = lambda x, i: x.at[i].apply(lambda v: v**2 + 1)
    for index in (np.array([1, 3, -2]), X > 1.0, X[:, 1] > 1.0, (slice(1, 3), 2)):
        expected = X.copy()
        expected[index] = X[index] ** 2 + 1
        np.testing.assert_allclose(f(fnp.asarray(X), index), expected)
        if isinstance(index, np.ndarray):
            np.testing.assert_allclose(ft.jit(f)(X, index), expected)
        check(lambda x, i=index: f(x, i), X, order=1, laws=("jvp_is_slope", "vjp_is_adjoint"))
    with pytest.raises(InvalidIndexError):
        ft.jit(f)(X, np.ones((4, 2), bool))


#: Indices that repeat, up to seven times.
REPEATED = (
    INDEX[:4],
    (np.array([0, 0, 1]), np.array([2, -1, 0])),
    (slice(None), np.array([1, 1, 1, 0])),
    (np.array([[2, 2], [2, 0]]), slice(2)),
    np.zeros(7, int),
    (np.array([3, 3]), None, np.array([1, 1])),
)


@pytest.mark.parametrize("index", REPEATED, ids=str)
def test_apply_to_elements_named_repeatedly(index):
    func = lambda v: v**2 / 2 + 0.1
    f = lambda x, i: x.at[i].apply(func)
    expected = X.copy()
    number = np.zeros(X.shape, int)
    np.add.at(number, index, 1)
    for r in range(number.max()):
        expected = np.where(number > r, expected**2 / 2 + 0.1, expected)
    np.testing.assert_allclose(f(fnp.asarray(X), index), expected, rtol=1e-14)
    np.testing.assert_allclose(ft.jit(lambda x: f(x, index))(X), expected, rtol=1e-14)
    if not isinstance(index, tuple):
        mapped = ft.vmap(f, (None, 0))
        np.testing.assert_allclose(ft.jit(f)(X, index), expected, rtol=1e-14)
        np.testing.assert_allclose(mapped(X, np.stack([index, 0 * index]))[0], expected, rtol=1e-14)
    check(lambda x: f(x, index), X, laws=("jvp_is_slope", "vjp_is_adjoint", "jit_and_grad_commute"))


@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
@pytest.mark.parametrize("ufunc", [np.negative, np.sqrt, np.log1p, np.reciprocal])
def test_apply_is_ufunc_at(ufunc, transform):
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 2.0, 5)
    for count in (0, 1, 2, 40):
        i = rng.integers(-5, 5, count)
        expected = x.copy()
        ufunc.at(expected, i)
        found = transform(lambda x, i: x.at[i].apply(getattr(fnp, ufunc.__name__)))(fnp.asarray(x), i)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_function_is_not_applied_where_it_is_not_wanted():
    """``log(2.5)`` once more would be negative, then NaN: no derivative may come of that."""
    x, i = np.array([2.5, 40.0, 2.0]), np.array([0, 1, 1, 1])
    f = lambda x: x.at[i].apply(fnp.log)
    slope = np.diag([1 / 2.5, 1 / (40 * np.log(40) * np.log(np.log(40))), 1.0])
    for jacobian in (ft.jacrev, ft.jacfwd):
        np.testing.assert_allclose(jacobian(f)(x), slope, rtol=1e-14)
        np.testing.assert_allclose(ft.jit(jacobian(f))(x), slope, rtol=1e-14)
    edge = ft.grad(lambda x: fnp.sum(x.at[np.array([0, 1, 1])].apply(fnp.sqrt)))(np.array([0.0, 16.0]))
    np.testing.assert_allclose(edge, [np.inf, 1 / 32])


@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_repeated_updates_follow_one_another(transform):
    """What NumPy does, where one update by the product of all would overflow, or lose a sign."""
    i = np.array([0, 0])
    for name, x, v in (
        ("divide", 1e300, [1e200, 1e200]),
        ("power", -2.0, [2.0, 0.5]),
        ("power", 4.0, [0.5, -1.0]),
        ("multiply", 1e-300, [1e200, 1e200]),
    ):
        expected = np.array([x])
        UFUNCS[name].at(expected, i, np.array(v))
        found = transform(lambda x, i, v, name=name: getattr(x.at[i], name)(v))(
            fnp.asarray([x]), i, np.array(v)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    slope = transform(ft.grad(lambda v: fnp.asarray([-2.0]).at[i].power(fnp.stack([2.0, v]))[0]))(0.5)
    assert slope == pytest.approx(2 * np.log(4))


def test_masks_that_are_known():
    mask = X > 1.0
    np.testing.assert_array_equal(ft.jit(lambda x: x[mask])(X), X[mask])
    np.testing.assert_array_equal(ft.jit(lambda x: x[1:, mask[0]])(X), X[1:, mask[0]])
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(x[x > 1.0] ** 2))(X), np.where(mask, 2 * X, 0))
    check(lambda x: x[mask] * x.at[mask].get()[::-1], X, laws=("jvp_is_slope", "vjp_is_adjoint"))
    with pytest.raises(NonConcreteBooleanIndexError):
        ft.jit(lambda x: x[x > 1.0])(X)
    with pytest.raises(NonConcreteBooleanIndexError, match="number of elements under the mask is unknown"):
        ft.jit(lambda x, v: x.at[x > 1.0].set(v))(X, np.ones((2, 4, 3)))


@pytest.mark.parametrize("promise", [{"unique_indices": True}, {"indices_are_sorted": True}])
@pytest.mark.parametrize("method", UFUNCS)
def test_promises(method, promise):
    i = np.array([0, 2])
    f = lambda x, v: getattr(x.at[i], method)(v, **promise)
    expected = X.copy()
    expected[i] = UFUNCS[method](X[i], V[:2])
    np.testing.assert_allclose(ft.jit(f)(X, V[:2]), expected, rtol=1e-14)
    check(f, X, V[:2], order=1, laws=("jvp_is_slope", "vjp_is_adjoint"))


def test_reading_in_modes():
    for mode, rows in MEANT.items():
        wanted = [np.full(3, np.nan) if r is None else X[r] for r in rows]
        for name in (mode, lax.GatherScatterMode.from_any(mode)):
            f = lambda x, i, m=name: x.at[i].get(mode=m)
            np.testing.assert_array_equal(f(fnp.asarray(X), INDEX), wanted)
            np.testing.assert_array_equal(ft.jit(f)(X, INDEX), wanted)
    f = lambda x: x.at[INDEX].get(mode="fill", fill_value=-2.0) * x.at[INDEX].get(mode="clip")
    np.testing.assert_array_equal(ft.jit(f)(X)[-1], -2.0 * X[3])
    check(f, X, laws=("jvp_is_slope", "vjp_is_adjoint", "vmap_is_loop", "jit_is_eager"))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, bool, np.complex64])
def test_other_dtypes(dtype):
    x, v = np.array([3, 1, 2, 0]).astype(dtype), np.array([1, 2]).astype(dtype)
    for method in ("set", "add", "subtract", "multiply", "min", "max"):
        if (dtype is bool and method == "subtract") or (dtype is np.complex64 and method in ("min", "max")):
            continue
        expected = x.copy()
        for i, new in zip((0, 0), v):
            expected[i] = UFUNCS[method](expected[i], new)
        f = lambda x, v, m=method: getattr(fnp.asarray(x).at[np.array([0, 0])], m)(v)
        for g in (f, ft.jit(f)):
            assert g(x, v).dtype == dtype
            np.testing.assert_array_equal(g(x, v), expected)


#: Indices with a number `i` that is known at run time only, and slices with steps.
SPACED = [
    lambda i: (i, slice(None, None, 2)),
    lambda i: (slice(None, None, -1), i),
    lambda i: (i, slice(None, None, 2), slice(4, None, -3)),
    lambda i: (slice(1, None, 2), i, slice(None, None, -2)),
    lambda i: (i, slice(1, 3), slice(None, None, 2)),
    lambda i: (slice(None, None, 3), slice(1, 3), i),
    lambda i: (slice(None, None, 3), slice(1, 3), i, None),
    lambda i: (i, Ellipsis, slice(None, None, 2)),
    lambda i: (i, None, slice(5, 1, -2), i),
    lambda i: (slice(None, None, 2), slice(None, None, 2), i),
    lambda i: (slice(None, None, 2), None, slice(None, None, 2), i),
    lambda i: (i, slice(9, 1, 2)),
    lambda i: (i, slice(1, 2, 2), 1),
]


def test_slices_with_steps_beside_numbers_known_at_run_time():
    x = np.random.default_rng(0).normal(size=(4, 5, 6))

    def f(x, i):
        def results(at):
            v = x[at] * 2.0 + fnp.arange(x[at].size).reshape(x[at].shape)
            return x[at], x.at[at].set(v), x.at[at].add(v), x.at[at].multiply(v), x.at[at].max(v)

        return [results(at(i)) for at in SPACED]

    for i in (1, -1):
        for at, got in zip(SPACED, ft.jit(f)(x, i), strict=True):
            taken = x[at(i)]
            v = taken * 2.0 + np.arange(taken.size).reshape(taken.shape)
            for y, new in zip(got, (taken, v, taken + v, taken * v, np.maximum(taken, v)), strict=True):
                expected = x.copy()
                expected[at(i)] = new
                np.testing.assert_allclose(y, taken if y is got[0] else expected, rtol=1e-14)


@pytest.mark.parametrize("at", SPACED[3:4])
def test_derivatives_of_slices_with_steps(at):
    x = np.random.default_rng(1).normal(size=(3, 3, 5))
    f = ft.jit(lambda x, i: x.at[at(i)].multiply(x[at(i)]).at[at(-i)].set(x[at(0)] ** 2))
    check(lambda x: f(x, 1), x)


def test_a_row_with_steps_is_written_in_place():
    def f(x):
        return lax.fori_loop(0, 8, lambda i, x: x.at[i, ::-2].add(x[i, ::2]), x)

    text = ft.jit(f).lower(np.ones((8, 16))).as_text("python")
    assert "scratch" not in text.replace("float64[8] (scratch)", "")


def test_negative_indices_that_do_not_count_from_the_end():
    x = fnp.arange(3.0)
    at = {"wrap_negative_indices": False}
    np.testing.assert_array_equal(x.at[-1].set(9.0, mode="drop", **at), x)
    np.testing.assert_array_equal(x.at[fnp.array([-1, 0])].add(9.0, mode="drop", **at), [9, 1, 2])
    np.testing.assert_array_equal(x.at[-2].apply(fnp.negative, mode="drop", **at), x)
    assert x.at[-1].get(mode="fill", fill_value=7.0, **at) == 7
    assert x.at[-1].get(mode="clip", **at) == 0
    assert x.at[-1].get(mode="wrap", **at) == 2
    assert x.at[-1].get(wrap_negative_indices=True) == 2
    np.testing.assert_array_equal(x.at[-2:].set(9.0, **at), [0, 9, 9])
    np.testing.assert_array_equal(x.at[fnp.array([True, False, True])].set(9.0, **at), [9, 1, 9])
    table = fnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(table.at[..., -1].add(1.0, mode="drop", **at), table)
    np.testing.assert_array_equal(table.at[None, 0, [-1, 2]].get(mode="clip", **at), [[0, 2]])
    for index in (-1, [0, -1], np.int8(-1)):
        with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index -1 is out of bounds"):
            x.at[index].get(**at)
    dropped = ft.jit(lambda x, i: x.at[i].set(9.0, mode="drop", wrap_negative_indices=False))
    np.testing.assert_array_equal(dropped(x, np.array([-1, 1])), [0, 9, 2])
    with pytest.raises(ft.errors.IndexOutOfBoundsError):
        ft.jit(lambda x, i: x.at[i].get(wrap_negative_indices=False))(x, -1)
    many = fnp.zeros(300).at[np.array([-1, 5], np.int8)].set(1.0, mode="drop", **at)
    np.testing.assert_array_equal(np.flatnonzero(many), [5])  # no int8 is out of bounds
    check(lambda x: x.at[fnp.array([-1, 1])].mul(x[:2], mode="drop", wrap_negative_indices=False), x)
    along = fnp.take_along_axis(x, fnp.array([-1, 1]), 0, mode="clip", wrap_negative_indices=False)
    np.testing.assert_array_equal(along, [0, 1])
