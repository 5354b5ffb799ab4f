"""Gather and scatter: every mode, repeated indices, out of bounds; eager and in kernels."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core.aval import Aval, aval_of
from functrans.core.ir import Eqn, Jaxpr, Var
from functrans.core.primitive import Effect, Linear
from functrans.errors import DtypeError, IndexOutOfBoundsError, ShapeError
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.indexing.gather_scatter import gather_p, scatter_add_p, scatter_p
from functrans.primitives.indexing.scatter_folds import scatter_max_p, scatter_min_p, scatter_mul_p

MODES = ["raise", "clip", "wrap", "fill", "promise_in_bounds"]
ROWS = np.array([1, -1, 0, 2, 2])
INDICES = {
    "raise": ROWS,
    "clip": np.array([1, -5, 0, 7, 2]),
    "wrap": np.array([1, -5, 0, 7, 2]),
    "fill": np.array([1, -5, 0, 7, -1]),
    "promise_in_bounds": ROWS % 3,
}
#: Where the extent is 3: the element each index means, None for none.
MEANT = {
    "raise": [1, 2, 0, 2, 2],
    "clip": [1, 0, 0, 2, 2],
    "wrap": [1, 1, 0, 1, 2],
    "fill": [1, None, 0, None, 2],
    "promise_in_bounds": [1, 2, 0, 2, 2],
}


def values(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape) if np.dtype(dtype).kind in "iub" else rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def linear(dtype, *operands):
    return operands if np.dtype(dtype).kind in "fc" else ()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int32, bool])
@pytest.mark.parametrize("mode", MODES)
def test_gather_rows(check, mode, dtype):
    x = values((3, 4), dtype)
    fill = {"fill_value": 0} if mode == "fill" else {}
    out = check(gather_p, x, INDICES[mode], linear=linear(dtype, (0,)), axes=(0,), mode=mode, **fill)
    for row, meant in zip(out, MEANT[mode]):
        np.testing.assert_array_equal(row, 0 if meant is None else x[meant])


@pytest.mark.parametrize("mode", MODES)
def test_gather_along_several_axes(check, mode):
    x = values((3, 4, 3))
    i = np.array([[0, 1], [2, 0]])
    np.testing.assert_array_equal(
        check(gather_p, x, i, i.T, linear=[(0,)], axes=(2, 0), mode=mode), x.transpose(2, 0, 1)[i, i.T]
    )
    strided = x[::-1, ::2]
    j = i if mode in ("clip", "wrap") else i % 2
    out = check(gather_p, strided, j, linear=[(0,)], axes=(1,), mode=mode)
    meant = np.minimum(i, 1) if mode == "clip" else i % 2
    np.testing.assert_array_equal(out, strided.transpose(1, 0, 2)[meant])
    out = check(gather_p, x, np.int64(2), np.int64(1), linear=[(0,)], axes=(0, 2), mode=mode)
    np.testing.assert_array_equal(out, x[2, :, 1])


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [(np.float32, np.nan), (np.complex128, np.nan), (np.int8, -128), (np.uint16, 65535), (bool, True)],
)
def test_fill_values_by_dtype(check, dtype, fill):
    x = values((2,), dtype)
    out = check(gather_p, x, np.array([5, 0]), batch=False, jvp=False, axes=(0,), mode="fill")
    np.testing.assert_array_equal(out, np.array([fill, x[0]], dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_index_dtypes(check, dtype):
    x = values((200,))
    i = np.array([100, 0, 7], dtype)
    np.testing.assert_array_equal(
        check(gather_p, x, i, linear=[(0,)], axes=(0,), mode="raise"), x[[100, 0, 7]]
    )
    check(scatter_add_p, x, values(3), i, linear=[(0, 1)], axes=(0,), mode="raise")


def scattered(x, updates, indices, ufunc):
    """Scatter along axis 0 by its definition, one row after the other."""
    out = x.copy()
    for row, i in zip(updates, indices):
        if i is not None:
            out[i] = row if ufunc is None else ufunc(out[i], row)
    return out


SCATTERS = [
    (scatter_p, None, ((0, 1), (0,), (1,))),
    (scatter_add_p, np.add, ((0, 1), (0,), (1,))),
    (scatter_mul_p, np.multiply, ((0,),)),
    (scatter_min_p, np.minimum, ()),
    (scatter_max_p, np.maximum, ()),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int32])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("prim", "ufunc", "operands"), SCATTERS, ids=lambda p: getattr(p, "name", ""))
def test_scatter_rows(check, prim, ufunc, operands, mode, dtype):
    x, updates = values((3, 4), dtype), values((5, 4), dtype, 1)
    out = check(prim, x, updates, INDICES[mode], linear=linear(dtype, *operands), axes=(0,), mode=mode)
    np.testing.assert_allclose(out, scattered(x, updates, MEANT[mode], ufunc), rtol=1e-6)


@pytest.mark.parametrize(("prim", "ufunc", "operands"), SCATTERS, ids=lambda p: getattr(p, "name", ""))
def test_scatter_along_several_axes(check, prim, ufunc, operands):
    x = values((3, 4, 3))
    i = np.array([[0, 1], [2, -3]])
    updates = values((2, 2, 4), seed=1)
    out = check(prim, x, updates, i, i.T, linear=operands, axes=(2, 0), mode="raise")
    expected = x.copy()
    view = expected.transpose(2, 0, 1)
    if ufunc is None:
        view[i, i.T] = updates
    else:
        ufunc.at(view, (i, i.T), updates)
    np.testing.assert_allclose(out, expected)
    out = check(
        prim, x, values(4, seed=2), np.int64(2), np.int64(1), linear=operands, axes=(0, 2), mode="raise"
    )
    reversed_ = x[:, ::-1, 0]
    params = {"axes": (1,), "mode": "raise", "unique_indices": True}
    check(prim, reversed_, values((2, 3), seed=3), np.array([3, 0]), linear=operands, **params)


def test_the_derivative_of_set_is_that_of_the_last_update(check):
    x, updates, i = values(3), values(4, seed=1), np.array([1, 1, 0, 1])
    ct = np.array([1.0, 2.0, 3.0])
    back = scatter_p.transpose(ct, Linear(aval_of(x)), Linear(aval_of(updates)), i, axes=(0,), mode="raise")
    np.testing.assert_array_equal(back[0], [0, 0, 3])
    np.testing.assert_array_equal(back[1], [0, 0, 1, 2])


def test_the_derivative_of_multiply_with_zeros_among_the_factors(check):
    i = np.array([0, 0, 1, 1, 1, 2])
    for updates in ([2.0, 0.0, 3.0, 4.0, 5.0, 0.0], [0.0, 0.0, 0.0, 4.0, 5.0, 1.0]):
        check(scatter_mul_p, values(3), np.array(updates), i, linear=[(0,)], axes=(0,), mode="raise")


def test_ties_of_minimum_share_the_derivative():
    x, updates, i = np.array([1.0, 5.0]), np.array([1.0, 1.0, 7.0]), np.array([0, 0, 1])
    t = (np.array([3.0, 10.0]), np.array([6.0, 9.0, 100.0]), None)
    _, tangent = scatter_min_p.jvp((x, updates, i), t, axes=(0,), mode="raise")
    np.testing.assert_allclose(tangent, [(3 + 6 + 9) / 3, 10.0])


# --- out of bounds ------------------------------------------------------------------------------------------


def compiled(prim, *args, **params):
    invars = [Var(aval_of(a).strong()) for a in args]
    outvar = Var(prim.abstract(*[v.aval for v in invars], **params))
    return compile_jaxpr(Jaxpr(invars, [Eqn(prim, invars, [outvar], params)], [outvar]))(*args)


@pytest.mark.parametrize("run", [lambda prim, *args, **params: prim.bind(*args, **params), compiled])
@pytest.mark.parametrize("bad", [3, -4])
def test_an_index_out_of_bounds_is_named(run, bad):
    x, i = values((3, 2)), np.array([0, bad])
    message = rf"index {bad} is out of bounds for axis 0 with size 3 \(at position 1"
    with pytest.raises(IndexOutOfBoundsError, match=message):
        run(gather_p, x, i, axes=(0,), mode="raise")
    for prim, *_ in SCATTERS:
        with pytest.raises(IndexError, match=message):
            run(prim, x, values((2, 2)), i, axes=(0,), mode="raise")


def test_nothing_can_be_taken_from_an_empty_axis():
    x, i = np.zeros((0, 2)), np.array([0])
    for mode in ("raise", "clip", "wrap"):
        with pytest.raises(IndexError):
            gather_p.bind(x, i, axes=(0,), mode=mode)
        with pytest.raises(IndexOutOfBoundsError, match="axis 0 with size 0"):
            gather_p.abstract(aval_of(x), aval_of(i), axes=(0,), mode=mode)
    np.testing.assert_array_equal(gather_p.bind(x, i, axes=(0,), mode="fill"), np.full((1, 2), np.nan))
    assert gather_p.bind(x, i[:0], axes=(0,), mode="raise").shape == (0, 2)


def test_effects():
    assert gather_p.effects(mode="raise") == Effect.RAISE
    assert gather_p.effects(mode="clip") == Effect.NONE


def test_operands_that_do_not_fit():
    x, i = Aval((3, 2), np.dtype(float)), Aval((2,), np.dtype(int))
    with pytest.raises(DtypeError, match="must be integers"):
        gather_p.abstract(x, Aval((2,), np.dtype(float)), axes=(0,), mode="raise")
    with pytest.raises(ShapeError, match="different shapes"):
        gather_p.abstract(x, i, Aval((3,), np.dtype(int)), axes=(0, 1), mode="raise")
    with pytest.raises(ShapeError, match=r"expected f64\[2,2\]"):
        scatter_p.abstract(x, x, i, axes=(0,), mode="raise")


@pytest.mark.parametrize("factors", [[0.0, 5.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])
@pytest.mark.parametrize("stack", [lambda f: f, ft.jit])
def test_second_derivatives_of_multiply_at_repeated_indices(factors, stack):
    """``x * a * b`` at one place and ``y * c`` at another: the mixed derivative in a, b is x, all others are zero."""
    x, i = fnp.asarray([2.0, 3.0]), np.array([0, 0, 1])
    found = stack(ft.hessian(lambda v: fnp.sum(x.at[i].multiply(v))))(np.array(factors))
    np.testing.assert_allclose(found, [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


@pytest.mark.wide(4)
@pytest.mark.parametrize("stack", [lambda f: f, ft.jit])
@pytest.mark.parametrize("count", [100, 200])
def test_derivatives_of_multiply_by_many_factors_one_of_them_zero(count, stack):
    """The product of `count` factors at one place, mixed in three of them: that of the others."""
    rng = np.random.default_rng(0)
    i, values = np.zeros(count, int), rng.uniform(0.9, 1.1, count)
    values[[3, 50]] = 0.0
    i[7] = 1
    others = 2.0 * np.prod(np.delete(values, [3, 7, 50]))

    def product(three):
        v = fnp.asarray(values).at[np.array([3, 50, 60])].set(three)
        return fnp.asarray([2.0, 3.0]).at[i].multiply(v)[0]

    three = values[[3, 50, 60]]
    second, third = stack(ft.hessian(product))(three), stack(ft.jacfwd(ft.hessian(product)))(three)
    expected = np.zeros((3, 3))
    expected[0, 1] = expected[1, 0] = others
    np.testing.assert_allclose(second, expected, rtol=1e-12, atol=1e-15)
    assert third[0, 1, 2] == pytest.approx(others / values[60], rel=1e-12)
    assert third[2, 1, 0] == pytest.approx(others / values[60], rel=1e-12)


def test_adding_to_an_array_of_many_axes():
    """``np.add.at`` writes out of bounds where an array has more than 32 axes."""
    x = np.arange(6.0).reshape((3, 2) + (1,) * 38)
    places = np.array([0, 2, 0])
    expected = x.copy()
    for i in places:
        expected[i] += 1.5
    np.testing.assert_array_equal(fnp.asarray(x).at[places].add(1.5), expected)
    ref = ft.new_ref(x)
    ref[places] = x[places] * 2.0
    ft.ref.addupdate(ref, places, 1.5)
    assert ft.freeze(ref).shape == x.shape
