"""General gather and scatter against plain loops, in every mode, compiled, mapped, differentiated."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, DtypeError, IndexOutOfBoundsError, ShapeError
from functrans.testing import check

# --- the oracle ---------------------------------------------------------------------------------------------


def windows(shape, indices, numbers, sizes, mode):
    """For each element of the result: its place, and its place in the operand (None: left out)."""
    places, dropped, columns, own, other = numbers
    kept = [d for d in range(len(shape)) if d not in dropped and d not in own]
    batch = indices.shape[:-1]
    for b in itertools.product(*map(range, batch)):
        start = [0] * len(shape)
        for k, d in enumerate(columns):
            start[d] = int(indices[(*b, k)])
        for d, i in zip(own, other):
            start[d] = b[i]
        room = [n - s for n, s in zip(shape, sizes)]
        if mode == "clip":
            start = [min(max(s, 0), r) for s, r in zip(start, room)]
        inside = mode in ("wrap", "clip") or all(0 <= s <= r for s, r in zip(start, room))
        for w in itertools.product(*[range(sizes[d]) for d in kept]):
            offset = dict(zip(kept, w))
            source = [s + offset.get(d, 0) for d, s in enumerate(start)]
            if mode == "wrap":
                source = [s % n for s, n in zip(source, shape)]
            rest, inner = iter(b), dict(zip(places, w))
            place = tuple(inner[p] if p in inner else next(rest) for p in range(len(b) + len(w)))
            yield place, tuple(source) if inside else None


def result_shape(indices, numbers, shape, sizes):
    kept = [sizes[d] for d in range(len(shape)) if d not in numbers[1] and d not in numbers[3]]
    rest, inner = iter(indices.shape[:-1]), dict(zip(numbers[0], kept))
    count = indices.ndim - 1 + len(kept)
    return tuple(inner[p] if p in inner else next(rest) for p in range(count))


def gathered(x, indices, numbers, sizes, mode, fill):
    out = np.full(result_shape(indices, numbers, x.shape, sizes), fill, x.dtype)
    for place, source in windows(x.shape, indices, numbers, sizes, mode):
        if source is not None:
            out[place] = x[source]
    return out


def scattered(combine, x, indices, updates, numbers, sizes, mode):
    out = x.copy()
    for place, source in windows(x.shape, indices, numbers, sizes, mode):
        if source is not None:
            out[source] = combine(out[source], updates[place])
    return out


SCATTERS = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}

# --- problems -----------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """Operand, indices, dimension numbers, sizes."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    dims = draw(st.permutations(range(len(shape))))
    shared = draw(st.integers(0, min(1, len(shape))))
    own, rest = tuple(sorted(dims[:shared])), dims[shared:]
    dropped = tuple(sorted(rest[: draw(st.integers(0, len(rest)))]))
    columns = tuple(draw(st.permutations(rest))[: draw(st.integers(0, len(rest)))])
    batch = draw(st.lists(st.integers(1, 3), min_size=shared, max_size=shared + 1))
    other = tuple(draw(st.permutations(range(len(batch))))[:shared])
    for d, i in zip(own, other):
        batch[i] = shape[d]
    sizes = tuple(1 if d in dropped or d in own else draw(st.integers(1, n)) for d, n in enumerate(shape))
    kept = len(shape) - len(dropped) - shared
    places = tuple(sorted(draw(st.permutations(range(len(batch) + kept)))[:kept]))
    seed = draw(st.integers(0, 1000))
    random = np.random.default_rng(seed)
    indices = random.integers(-2, 5, (*batch, len(columns)))
    return random.uniform(1, 2, shape), indices, (places, dropped, columns, own, other), sizes


@settings(max_examples=60)
@given(problems(), st.sampled_from(["clip", "fill", "wrap"]))
def test_gather_is_a_loop(problem, mode):
    x, indices, numbers, sizes = problem
    dims = lax.GatherDimensionNumbers(*numbers)
    got = lax.gather(x, indices, dims, sizes, mode=mode, fill_value=-1.0)
    np.testing.assert_array_equal(got, gathered(x, indices, numbers, sizes, mode, -1.0))


@settings(max_examples=60)
@given(problems(), st.sampled_from(["clip", "fill", "wrap"]), st.sampled_from(sorted(SCATTERS)))
def test_scatter_is_a_loop(problem, mode, name):
    x, indices, numbers, sizes = problem
    updates = np.random.default_rng(1).uniform(1, 2, result_shape(indices, numbers, x.shape, sizes))
    got = getattr(lax, name)(x, indices, updates, lax.ScatterDimensionNumbers(*numbers), mode=mode)
    expected = scattered(SCATTERS[name], x, indices, updates, numbers, sizes, mode)
    np.testing.assert_allclose(got, expected, rtol=1e-14)


@settings(max_examples=12)
@given(problems(), st.sampled_from(["clip", "fill"]))
def test_kernels_derivatives_and_batches(problem, mode):
    x, indices, numbers, sizes = problem
    updates = np.random.default_rng(1).uniform(1, 2, result_shape(indices, numbers, x.shape, sizes))
    dims, back = lax.GatherDimensionNumbers(*numbers), lax.ScatterDimensionNumbers(*numbers)

    def f(x, u, i):
        taken = lax.gather(x, i, dims, sizes, mode=mode, fill_value=0.5)
        return taken * u, lax.scatter(x, i, u, back, mode=mode), lax.scatter_mul(x, i, u, back, mode=mode)

    check(f, x, updates, indices, order=1, laws=("jvp_is_slope", "vjp_is_adjoint"))
    for compiled, eager in zip(ft.jit(f)(x, updates, indices), f(x, updates, indices)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-14)
    lanes = np.stack([indices, indices[..., ::-1] % 3])
    for mapped, *each in zip(
        ft.vmap(f, (None, None, 0))(x, updates, lanes), *[f(x, updates, i) for i in lanes]
    ):
        np.testing.assert_allclose(mapped, np.stack(each), rtol=1e-14)


# --- modes --------------------------------------------------------------------------------------------------

ROWS = lax.GatherDimensionNumbers((1,), (), (0,))
X = np.arange(6.0)


def test_modes_of_windows_that_stick_out():
    starts = np.array([[-1], [2], [5]])
    take = lambda **options: lax.gather(X, starts, ROWS, (2,), **options)
    np.testing.assert_array_equal(take(mode="clip"), [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(take(mode="promise_in_bounds"), take(mode=lax.GatherScatterMode.CLIP))
    np.testing.assert_array_equal(take(), [[np.nan] * 2, [2, 3], [np.nan] * 2])
    np.testing.assert_array_equal(take(fill_value=9.0), [[9, 9], [2, 3], [9, 9]])
    np.testing.assert_array_equal(take(mode="wrap"), [[5, 0], [2, 3], [5, 0]])
    assert lax.gather(np.arange(6), starts, ROWS, (2,))[0, 0] == np.iinfo(np.int64).min
    for f in (take, lambda: ft.jit(lambda i: lax.gather(X, i, ROWS, (2,), mode="raise"))(starts)):
        with pytest.raises(IndexOutOfBoundsError, match="index 6 is out of bounds for axis 0 with size 6"):
            f(mode="raise") if f is take else f()
    from_end = lax.gather(X, np.array([[-2]]), ROWS, (2,), mode=lax.GatherScatterMode.RAISE)
    np.testing.assert_array_equal(from_end, [[4, 5]])
    with pytest.raises(IndexOutOfBoundsError, match="index -7"):
        lax.gather(X, np.array([[-7]]), ROWS, (2,), mode="raise")


def test_unsigned_and_narrow_indices():
    for dtype in (np.uint8, np.int8, np.uint64, np.int32):
        got = lax.gather(X, np.array([[1], [7]], dtype), ROWS, (1,), mode="clip")
        np.testing.assert_array_equal(got, [[1], [5]])


def test_names_of_modes():
    modes = lax.GatherScatterMode
    assert modes.from_any(None) is modes.from_any("drop") is modes.FILL_OR_DROP
    assert modes.from_any(modes.WRAP) is modes.WRAP
    with pytest.raises(ArgumentValueError, match="mode must be one of"):
        modes.from_any("bounce")
    x = ft.numpy.arange(3.0)
    np.testing.assert_array_equal(x.at[np.array([5])].get(mode=modes.CLIP), [2])
    np.testing.assert_array_equal(x.at[5].set(1.0, mode=modes.FILL_OR_DROP), x)


def test_index_take():
    x = np.arange(24.0).reshape(2, 3, 4)
    got = lax.index_take(x, (np.array([0, 5]), np.array([-1, 2])), (2, 0))
    np.testing.assert_array_equal(got, x[[1, 0], :, [0, 1]])


def test_scatter_apply():
    one = lax.ScatterDimensionNumbers((), (0,), (0,))
    indices = np.array([[1], [3], [3], [9]])
    f = lambda x: lax.scatter_apply(x, indices, lambda v: v**2 + 10, one)
    np.testing.assert_array_equal(f(X), [0, 11, 2, 19**2 + 10, 4, 5])
    np.testing.assert_array_equal(ft.jit(f)(X), f(X))
    np.testing.assert_array_equal(ft.grad(lambda x: f(x).sum())(X), [1, 2, 1, 6 * 2 * 19, 1, 1])
    pairs = lax.ScatterDimensionNumbers((1,), (), (0,))
    got = lax.scatter_apply(X, np.array([[1], [4]]), np.negative, pairs, update_shape=(2, 2))
    np.testing.assert_array_equal(got, [0, -1, -2, 3, -4, -5])


def test_refusals():
    with pytest.raises(ArgumentError, match="must be a GatherDimensionNumbers, got"):
        lax.gather(X, np.array([[1]]), ((1,), (), (0,)), (2,))
    with pytest.raises(DtypeError, match="indices must be integers, got float64"):
        lax.gather(X, np.array([[1.0]]), ROWS, (2,))
    with pytest.raises(ShapeError, match="windows of extent 7 along axis 0"):
        lax.gather(X, np.array([[1]]), ROWS, (7,))
    with pytest.raises(ArgumentValueError, match="have 2 columns"):
        lax.gather(X, np.array([[1, 2]]), ROWS, (2,))
    with pytest.raises(ArgumentValueError, match="offset_dims must ascend"):
        lax.gather(np.ones((2, 2)), np.array([[1]]), lax.GatherDimensionNumbers((2, 1), (), (0,)), (1, 2))
    one = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(DtypeError, match="different dtypes"):
        lax.scatter(X, np.array([[1]]), np.array([1]), one)
    with pytest.raises(ShapeError, match=r"updates have shape \(3,\), expected \(2,\)"):
        lax.scatter(X, np.array([[1], [2]]), np.ones(3), one)
    with pytest.raises(ArgumentValueError, match="mode must be one of"):
        lax.scatter(X, np.array([[1]]), np.ones(1), one, mode="bounce")
