"""Loops that add to elements of arrays run in several threads: beside NumPy, with equal bits at each call."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops import ir
from functrans.lowering.loops.passes import parallel
from functrans.lowering.loops.passes.chunk_rows import shapes_of_rows
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 30))
K = RNG.integers(0, 50, 40_000)
V = RNG.normal(size=40_000)


@pytest.fixture(autouse=True)
def _divide_short_loops(monkeypatch):
    monkeypatch.setattr(parallel, "LEAST", 1 << 15)
    monkeypatch.setattr(parallel, "LEAST_CHUNK", 1 << 11)


def has_team(f, *args):
    with ft.config.patch(num_threads=2):
        return any(
            " team " in show(unit.kernel) for unit in compile_jaxpr(ft.jit(f).lower(*args).jaxpr).kernels
        )


def run(f, threads, *args, **options):
    with ft.config.patch(num_threads=threads, **options):
        return [np.asarray(y) for y in ft.tree_util.tree_leaves(ft.jit(lambda *args: f(*args))(*args))]


def at(k, v, n=50):
    out = np.zeros((n, *v.shape[1:]), v.dtype)
    keep = (k >= 0) & (k < n)
    np.add.at(out, k[keep], v[keep])
    return out


def forces(x):
    d = x[:, None] - x
    return fnp.sum(d / (1 + d * d), axis=0)


def several(x):
    e = fnp.exp(x)
    return fnp.sum(e, axis=0), fnp.sum(e, axis=1), fnp.max(e, axis=0), fnp.sum(x)


def windows(x, w):
    return ft.grad(lambda w: fnp.sum(lax.conv_general_dilated(x, w, (1, 1), "SAME") ** 2))(w)


IMAGES, WINDOW = RNG.normal(size=(20, 3, 16, 16)), RNG.normal(size=(4, 3, 3, 3))
ROWS = RNG.normal(size=(40_000, 3))

PROGRAMS = {
    "sums of columns": (lambda x: fnp.sum(x, axis=0), [X], lambda x: np.sum(x, axis=0)),
    "of three columns": (lambda x: fnp.sum(x, axis=0), [ROWS], lambda x: np.sum(x, axis=0)),
    "means of squares": (lambda x: fnp.mean(x * x, axis=0), [X], lambda x: np.mean(x * x, axis=0)),
    "greatest of columns": (lambda x: fnp.max(x, axis=0), [X], lambda x: np.max(x, axis=0)),
    "least with NaN": (
        lambda x: fnp.min(fnp.where(x > 3, np.nan, x), axis=0),
        [X],
        lambda x: np.min(np.where(x > 3, np.nan, x), axis=0),
    ),
    "all of columns": (lambda x: fnp.all(x < 3, axis=0), [X], lambda x: np.all(x < 3, axis=0)),
    "integers": (lambda k: fnp.sum(k.reshape(-1, 8), axis=0), [K], lambda k: k.reshape(-1, 8).sum(0)),
    "complex": (lambda x: fnp.sum(x * 1j, axis=0), [X], lambda x: 1j * np.sum(x, axis=0)),
    "float32": (lambda x: fnp.sum(x, axis=0), [X.astype("f4")], lambda x: np.sum(x.astype(float), axis=0)),
    "segments": (lambda v, k: ft.ops.segment_sum(v, k, 50), [V, K], lambda v, k: at(k, v)),
    "segments of rows": (lambda v, k: ft.ops.segment_sum(v, k, 50), [ROWS, K], lambda v, k: at(k, v)),
    "dropped": (
        lambda v, k: fnp.zeros(20).at[k - 5].add(v, mode="drop", wrap_negative_indices=False),
        [V, K],
        lambda v, k: at(k - 5, v, 20),
    ),
    "to what is there": (
        lambda v, k: fnp.sin(V[:50]).at[k].add(v),
        [V, K],
        lambda v, k: np.sin(V[:50]) + at(k, v),
    ),
    "histogram": (lambda k: fnp.bincount(k, length=50), [K], lambda k: np.bincount(k, minlength=50)),
    "forces": (
        forces,
        [X[:500, 0]],
        lambda x: np.sum((d := x[:, None] - x) / (1 + d * d), axis=0),
    ),
    "several": (
        several,
        [X],
        lambda x: (np.exp(x).sum(0), np.exp(x).sum(1), np.exp(x).max(0), np.sum(x)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_in_memory(name):
    f, args, expected = PROGRAMS[name]
    assert has_team(f, *args)
    found = run(f, 2, *args)
    assert all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(run(f, 2, *args), found))
    of_numpy = expected(*args)
    for n in (1, 2, 3, 7):
        for a, b in zip(
            run(f, n, *args), of_numpy if isinstance(of_numpy, tuple) else (of_numpy,), strict=True
        ):
            tolerance = 1e-4 if a.dtype == np.float32 else 1e-11
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_gradient_of_a_window():
    assert has_team(windows, IMAGES, WINDOW)
    padded = np.pad(IMAGES, [(0, 0), (0, 0), (1, 1), (1, 1)])
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))  # n, c, y, x, dy, dx
    out = np.einsum("ncyxij,ocij->noyx", views, WINDOW)
    for n in (1, 2, 3):
        (found,) = run(windows, n, IMAGES, WINDOW)
        np.testing.assert_allclose(found, 2 * np.einsum("noyx,ncyxij->ocij", out, views), rtol=1e-11)


def test_rows_at_distinct_places():
    values, places = RNG.normal(size=(4000, 8)), RNG.permutation(4000)
    rows = lambda v, k: fnp.zeros((4000, 8)).at[k].set(v, unique_indices=True)
    assert has_team(rows, values, places)
    expected = np.zeros((4000, 8))
    expected[places] = values
    for n in (1, 2, 5):
        np.testing.assert_array_equal(run(rows, n, values, places)[0], expected)
    # Threads that write to the same cache lines are slower than one.
    assert not has_team(
        lambda v, k: fnp.zeros(32_000).at[k].set(v, unique_indices=True), V[:32_000], np.arange(32_000)
    )


def test_what_stays_in_one_thread():
    assert not has_team(lambda x: fnp.prod(x, axis=0), X)  # in NumPy's order
    assert not has_team(lambda v, k: fnp.zeros(20_000).at[k].add(v), V, K)  # a copy is as long as the data
    assert not has_team(lambda v, k: fnp.zeros(50).at[k].set(v), V, K)  # the last one wins
    assert not has_team(lambda v, k: fnp.ones(50).at[k].multiply(v), V, K)
    with ft.config.patch(strict=True):
        assert not has_team(lambda x: fnp.sum(x, axis=0), X)
        assert not has_team(lambda v, k: fnp.zeros(50).at[k].add(v), V, K)
        assert has_team(lambda k: fnp.zeros(50, int).at[k].add(k), K)


def test_a_failure_in_a_chunk_is_raised():
    f = ft.jit(lambda v, k: fnp.zeros(50).at[k].add(v, mode="raise"))
    with ft.config.patch(num_threads=2):
        for place in (0, 20_000, -1):
            k = K.copy()
            k[place] = 50
            with pytest.raises(IndexError):
                f(V, k)


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=3),
    axis=st.integers(0, 1),
    fold=st.sampled_from(["sum", "max", "min", "any"]),
    dtype=st.sampled_from(["f4", "f8", "c16", "i8", "i2"]),
    threads=st.integers(2, 5),
    also=st.booleans(),
)
def test_any_shape_in_the_python_form(shape, axis, fold, dtype, threads, also):
    if dtype == "c16" and fold in ("max", "min"):
        fold = "sum"
    x = (10 * RNG.normal(size=shape)).astype(dtype)
    k = RNG.integers(-3, 5, x.shape[0])

    def f(x, k):
        folded = getattr(fnp, fold)(x, axis=axis)
        placed = fnp.zeros((4, *x.shape[1:]), x.dtype).at[k].add(x, mode="drop")
        return (folded, placed, x + x) if also else (folded, placed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "LEAST", 1)
        patch.setattr(parallel, "LEAST_CHUNK", 1)
        patch.setattr(parallel, "LITTLE", 0)
        chunks = run(f, threads, x, k, backend="python")
    placed = np.zeros((4, *x.shape[1:]), x.dtype)
    inside = (k >= -4) & (k < 4)
    np.add.at(placed, k[inside], x[inside])
    expected = (getattr(np, fold)(x, axis=axis), placed, x + x)
    for a, b in zip(chunks, expected):
        np.testing.assert_allclose(
            a, b, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-4 if dtype == "f4" else 1e-12
        )


@pytest.mark.parametrize(
    ("shapes", "dtype", "rows"),
    [
        ([(10, 16)], "f8", [(4, 11, 16)]),
        ([(3,)], "f8", [(4, 11)]),
        ([(3, 2)], "f4", [(4, 11, 2)]),
        ([(10, 16), (160,)], "f8", [(4, 11, 16), (4, 176)]),
        ([(6, 4), (4, 6)], "f8", [(4, 9, 4), (4, 6, 6)]),
        ([(0, 3)], "f8", [(4, 3, 3)]),
        ([()], "f8", [(4,)]),
    ],
)
def test_rows_of_threads_share_no_cache_line(shapes, dtype, rows):
    decls = [
        ir.BufferDecl(f"b{i}", np.dtype(dtype), shape, "scratch", "b0") for i, shape in enumerate(shapes)
    ]
    found = shapes_of_rows(4, decls)
    assert found == rows
    if shapes != [()]:
        used, whole = np.prod(shapes[0]), {int(np.prod(row[1:])) for row in found}
        assert len(whole) == 1
        assert (whole.pop() - used) * np.dtype(dtype).itemsize >= 64
