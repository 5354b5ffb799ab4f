"""Values of whole programs by both routes, against NumPy."""

import numpy as np
import pytest
from scipy import special

from functrans.lowering.jaxpr.simplify import simplify
from functrans.lowering.loops.check import verify
from functrans.lowering.loops.from_jaxpr.aliasing import schedule
from functrans.lowering.loops.from_jaxpr.build_loops import build_loops
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.elementwise.arithmetic import (
    convert_element_type_p,
    div_p,
    gt_p,
    min_p,
    mul_p,
    select_p,
    sub_p,
)
from functrans.primitives.elementwise.exp_log import exp_p, log_p
from functrans.primitives.indexing.gather_scatter import gather_p, scatter_add_p, scatter_p
from functrans.primitives.products.dot import dot_general_p
from functrans.primitives.reductions.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
)
from functrans.primitives.structure.linear import (
    add_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    reshape_p,
    transpose_p,
)
from functrans.primitives.structure.shape import concatenate_p, pad_p, rev_p, slice_p
from functrans.runtime.config import config

RNG = np.random.default_rng(3)


@pytest.fixture(params=["python", "llvm"])
def run(request, stage):
    """``run(f, *args) -> outputs``, after checking the kernel's structure."""

    def run(f, *args):
        jaxpr = stage(f, *args)
        with config.patch(backend=request.param, specialize_below=2):
            executable = compile_jaxpr(jaxpr)
            outs = executable(*args)
        for unit in executable.kernels:
            verify(unit.kernel)
        for x, v in zip(outs, jaxpr.outvars, strict=True):
            assert type(x) is np.ndarray
            assert (x.shape, x.dtype) == (v.aval.shape, v.aval.dtype)
        return outs

    return run


def along(x, v, axis):
    return broadcast_in_dim_p.bind(v, shape=x.shape, broadcast_dimensions=(axis,))


def test_softmax(run):
    def softmax(x):
        e = exp_p.bind(sub_p.bind(x, along(x, reduce_max_p.bind(x, axes=(1,)), 0)))
        return div_p.bind(e, along(x, reduce_sum_p.bind(e, axes=(1,)), 0))

    x = RNG.normal(size=(7, 5))
    np.testing.assert_allclose(run(softmax, x)[0], special.softmax(x, 1), rtol=1e-14)


@pytest.mark.parametrize("shape", [(5, 7), (1, 7), (5, 1), (3, 4, 5), (2, 20, 3)])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_reductions(run, shape, axes):
    x = RNG.normal(size=shape)
    x[..., 0] = np.round(x[..., 0])

    def f(x):
        positive = gt_p.bind(x, 0.0)
        return (
            *[p.bind(x, axes=axes) for p in (reduce_sum_p, reduce_prod_p, reduce_max_p, reduce_min_p)],
            *[p.bind(positive, axes=axes) for p in (reduce_and_p, reduce_or_p)],
            *[p.bind(x, axes=axes[:1]) for p in (argmax_p, argmin_p)],
        )

    positive = x > 0
    expected = [x.sum(axes), x.prod(axes), x.max(axes), x.min(axes), positive.all(axes), positive.any(axes)]
    expected += [x.argmax(axes[0]), x.argmin(axes[0])]
    for a, b in zip(run(f, x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f4", "f8"])
def test_extremes_of_dtypes(run, dtype):
    kind = np.dtype(dtype)
    low, high = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    x = np.array([[low, low, low], [high, high, low], [1, 2, 0]], kind)
    axes = {"axes": (1,)}
    outs = run(lambda x: [p.bind(x, **axes) for p in (reduce_max_p, reduce_min_p, argmax_p, argmin_p)], x)
    for a, b in zip(outs, (x.max(1), x.min(1), x.argmax(1), x.argmin(1)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nan_is_extreme_and_the_first_counts(run):
    x = np.array([[1.0, np.nan, 3.0, np.nan], [np.nan, 5, -np.inf, 2], [np.inf, 0, 0, np.inf]])
    outs = run(lambda x: [p.bind(x, axes=(1,)) for p in (reduce_max_p, reduce_min_p, argmax_p, argmin_p)], x)
    for a, b in zip(outs, (x.max(1), x.min(1), x.argmax(1), x.argmin(1)), strict=True):
        np.testing.assert_array_equal(a, b)
    outs = run(lambda x: [p.bind(x, axes=(0,)) for p in (reduce_max_p, argmax_p, argmin_p)], x)
    for a, b in zip(outs, (x.max(0), x.argmax(0), x.argmin(0)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_empty_arrays(run):
    x = np.empty((0, 3))

    def f(x):
        rows = reduce_sum_p.bind(x, axes=(0,))
        return (
            exp_p.bind(x),
            rows,
            reduce_prod_p.bind(x, axes=(0, 1)),
            reduce_sum_p.bind(x, axes=(1,)),
            reshape_p.bind(x, shape=(3, 0)),
        )

    outs = run(f, x)
    assert [o.shape for o in outs] == [(0, 3), (3,), (), (0,), (3, 0)]
    np.testing.assert_array_equal(outs[1], np.zeros(3))
    assert outs[2] == 1


def test_moving_elements(run):
    x = RNG.normal(size=(4, 6))

    def f(x):
        t = transpose_p.bind(x, permutation=(1, 0))
        s = slice_p.bind(x, start_indices=(1, 0), limit_indices=(4, 6), strides=(2, 3))
        r = rev_p.bind(exp_p.bind(x), dimensions=(1,))
        c = concatenate_p.bind(mul_p.bind(x, 2.5), r, x, dimension=1)
        p = pad_p.bind(x, 1.5, padding_config=((1, 2, 0), (-1, 3, 0)))
        g = pad_p.bind(x, 0.5, padding_config=((1, 0, 1), (0, 1, 2)))
        return t, s, r, c, p, g, reshape_p.bind(t, shape=(3, 8))

    padded = np.full((7, 8), 1.5)
    padded[1:5, :5] = x[:, 1:]
    gaps = np.full((8, 17), 0.5)
    gaps[1::2, 0:16:3] = x
    e = np.exp(x)[:, ::-1]
    expected = [x.T, x[1::2, ::3], e, np.hstack([2.5 * x, e, x]), padded, gaps, x.T.reshape(3, 8)]
    for a, b in zip(run(f, x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_blocks_stream_and_overwrite(run):
    x, i = RNG.normal(size=9), np.array([2, 5, 2, 8])

    def f(x, i):
        doubled = mul_p.bind(gather_p.bind(x, i, axes=(0,), mode="raise"), 2.0)
        once = scatter_add_p.bind(exp_p.bind(x), doubled, i, axes=(0,), mode="raise")
        twice = scatter_p.bind(once, exp_p.bind(doubled), i, axes=(0,), mode="raise")
        return twice, scatter_add_p.bind(x, mul_p.bind(doubled, doubled), i, axes=(0,), mode="raise")

    doubled = 2 * x[i]
    once = np.exp(x)
    np.add.at(once, i, doubled)
    once[i] = np.exp(doubled)
    last = x.copy()
    np.add.at(last, i, doubled**2)
    before = x.copy()
    for a, b in zip(run(f, x, i), (once, last), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_array_equal(x, before)


def test_products_between_loops(run):
    x, y = RNG.normal(size=(20, 30)), RNG.normal(size=(30, 25))
    numbers = {"dimension_numbers": (((1,), (0,)), ((), ()))}

    def f(x, y):
        z = exp_p.bind(mul_p.bind(dot_general_p.bind(x, y, **numbers), 0.1))
        total = dot_general_p.bind(transpose_p.bind(z, permutation=(1, 0)), mul_p.bind(x, 2.0), **numbers)
        return reduce_sum_p.bind(total, axes=(0,)), z

    z = np.exp(0.1 * (x @ y))
    for a, b in zip(run(f, x, y), ((z.T @ (2 * x)).sum(0), z), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_literals_of_blocks_and_outputs(run):
    x = RNG.normal(size=5)

    def f(x):
        filled = broadcast_in_dim_p.bind(3.25, shape=(5,), broadcast_dimensions=())
        index = np.array([1, 3])
        return (
            scatter_p.bind(filled, np.array([7.0, 8.0]), index, axes=(0,), mode="raise"),
            x,
            2.5,
            x,
            np.int32(4),
        )

    outs = run(f, x)
    np.testing.assert_array_equal(outs[0], [3.25, 7, 3.25, 8, 3.25])
    np.testing.assert_array_equal(outs[1], x)
    assert outs[1] is not outs[3]
    assert (outs[2], outs[4]) == (2.5, 4)
    assert not np.shares_memory(outs[1], x)


def test_outputs_that_are_reshapes_of_each_other(run):
    x = RNG.normal(size=(3, 4))

    def f(x):
        e = exp_p.bind(x)
        flat = reshape_p.bind(e, shape=(12,))
        return e, flat, reshape_p.bind(flat, shape=(2, 6)), reshape_p.bind(x, shape=(12,))

    outs = run(f, x)
    e = np.exp(x)
    for a, b in zip(outs, (e, e.ravel(), e.reshape(2, 6), x.ravel()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)
    assert not any(np.shares_memory(a, b) for n, a in enumerate(outs) for b in [x, *outs[:n]])


def test_overwriting_in_place_is_invisible(run):
    x = RNG.normal(size=(6, 6))

    def f(x):
        e = exp_p.bind(x)
        total = reduce_sum_p.bind(e, axes=(0, 1))
        shares = div_p.bind(e, broadcast_in_dim_p.bind(total, shape=(6, 6), broadcast_dimensions=()))
        mirrored = add_p.bind(transpose_p.bind(shares, permutation=(1, 0)), shares)
        return mirrored, div_p.bind(shares, rows_total(mirrored))

    def rows_total(x):
        return along(x, reduce_sum_p.bind(x, axes=(1,)), 0)

    shares = special.softmax(x)
    mirrored = shares.T + shares
    for a, b in zip(run(f, x), (mirrored, shares / mirrored.sum(1)[:, None]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("part", [slice(2, 3), slice(0, 1), slice(1, 3)])
@pytest.mark.parametrize("axis", [0, 1])
def test_one_element_for_all_is_read_beside_what_overwrites_it(run, part, axis):
    """An axis of length 1 has no loop: all iterations read one element, which none may overwrite before."""

    def f(x):
        y = exp_p.bind(x)
        table = broadcast_in_dim_p.bind(y, shape=(3, 3), broadcast_dimensions=(axis,))
        start, stop = [0, 0], [3, 3]
        start[axis], stop[axis] = part.start, part.stop
        columns = slice_p.bind(table, start_indices=tuple(start), limit_indices=tuple(stop), strides=(1, 1))
        return mul_p.bind(y, y), columns

    x = RNG.normal(size=3)
    y = np.exp(x)
    table = np.broadcast_to(y if axis else y[:, None], (3, 3))
    square, columns = run(f, x)
    np.testing.assert_allclose(square, y * y)
    np.testing.assert_allclose(columns, table[:, part] if axis else table[part])


def test_long_sums_of_small_windows(run, stage):
    x = RNG.normal(size=(6, 9))

    def window(x, i, j, n):
        whole = {"start_indices": (0, 0), "limit_indices": (1, n), "strides": (1, 1)}
        piece = mul_p.bind(slice_p.bind(x, **whole), 1.0 + i)
        return pad_p.bind(piece, 0.0, padding_config=((i, 5 - i, 0), (j, 9 - n - j, 0)))

    places = [(0, 0, 2), (3, 4, 1), (3, 4, 5), (5, 8, 1), (3, 3, 2), (1, 0, 1)]

    def f(x):
        total = window(x, *places[0])
        for n, place in enumerate(places[1:]):
            total = add_p.bind(total, window(x, *place)) if n % 2 else add_p.bind(window(x, *place), total)
            if n == 2:
                total = add_p.bind(total, x)
        return total

    expected = x.copy()
    for i, j, n in places:
        expected[i, j : j + n] += x[0, :n] * (1 + i)
    np.testing.assert_allclose(run(f, x)[0], expected, rtol=1e-14)
    names = [e.primitive.name for e in simplify(stage(f, x)).eqns]
    assert "add" not in names
    assert names.count("sum_of_windows") == 1


def test_reshape_that_is_copied_out_and_read(run):
    x = RNG.normal(size=(3, 4))
    numbers = {"dimension_numbers": (((0,), (0,)), ((), ()))}

    def f(x):
        flat = reshape_p.bind(x, shape=(12,))
        return (
            flat,
            exp_p.bind(flat),
            reshape_p.bind(exp_p.bind(x), shape=(12,)),
            dot_general_p.bind(flat, flat, **numbers),
        )

    flat = x.ravel()
    for a, b in zip(run(f, x), (flat, np.exp(flat), np.exp(flat), flat @ flat), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_complex_and_mixed_dtypes(run):
    z = RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3))

    def f(z, n):
        total = reduce_sum_p.bind(mul_p.bind(z, np.complex128(1.5 - 0.25j)), axes=(0,))
        floats = convert_element_type_p.bind(n, dtype=np.dtype("f4"))
        return (
            total,
            reduce_sum_p.bind(floats, axes=(0,)),
            select_p.bind(gt_p.bind(n, np.int16(2)), n, mul_p.bind(n, n)),
        )

    n = np.arange(5, dtype="i2")
    expected = (z * (1.5 - 0.25j)).sum(0), n.astype("f4").sum(), np.where(n > 2, n, n * n)
    for a, b in zip(run(f, z, n), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
        assert a.dtype == b.dtype


def test_guarded_reads_of_dear_values(run):
    x = RNG.uniform(1, 2, size=30)

    def f(x):
        logs = log_p.bind(x)
        shifted = pad_p.bind(logs, 0.0, padding_config=((3, -3, 0),))
        return add_p.bind(shifted, pad_p.bind(exp_p.bind(x), 1.0, padding_config=((-1, 1, 0),)))

    logs = np.concatenate([np.zeros(3), np.log(x[:-3])])
    np.testing.assert_allclose(run(f, x)[0], logs + np.append(np.exp(x[1:]), 1.0), rtol=1e-14)


def test_kernel_text_has_no_numbers_that_vary(stage):
    """Another batch size and other literals: the same kernel after outlining."""
    texts = set()
    for n, scale in ((20, 1.5), (21, 1.5), (64, 0.1), (30, 7.0)):
        with config.patch(backend="python"):
            x = np.ones((n, 64))

            def f(x, scale=scale, bound=n + 100):
                total = reduce_sum_p.bind(exp_p.bind(mul_p.bind(x, scale)), axes=(1,))
                return total, min_p.bind(argmax_p.bind(x, axes=(1,)), np.int64(bound))

            texts.add(compile_jaxpr(stage(f, x)).kernels[0].python_source)
    assert len(texts) == 1


def test_batch_sizes_share_a_kernel_also_where_they_equal_other_extents(stage):
    numbers = {"dimension_numbers": (((1,), (0,)), ((), ()))}

    def f(x, w, b, labels):
        scores = add_p.bind(dot_general_p.bind(x, w, **numbers), b)
        rows_max = reduce_max_p.bind(scores, axes=(1,))
        e = exp_p.bind(sub_p.bind(scores, along(scores, rows_max, 0)))
        picked = gather_p.bind(e, np.arange(len(x)), labels, axes=(0, 1), mode="raise")
        logs = log_p.bind(div_p.bind(picked, reduce_sum_p.bind(e, axes=(1,))))
        return div_p.bind(reduce_sum_p.bind(logs, axes=(0,)), float(len(x))), reduce_sum_p.bind(e, axes=(0,))

    texts = set()
    for n in (17, 20, 24, 32, 57, 64, 100):
        x, w, b = np.ones((n, 32)), np.ones((32, 24)), np.ones(24)
        with config.patch(backend="python"):
            units = compile_jaxpr(stage(f, x, w, b, np.zeros(n, int))).kernels
        texts.add("".join(show(u.kernel) for u in units))
    assert len(texts) == 1


def test_build_asks_for_distinct_outputs(stage):
    loops = build_loops(schedule(simplify(stage(lambda x: exp_p.bind(x), np.ones(3)))))
    assert [b.role for b in loops.kernel.buffers] == ["in", "out"]
    assert set(loops.interface) == {b.place for b in loops.kernel.buffers}
