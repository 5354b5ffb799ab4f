"""Which loops a program becomes: the number of loops and of buffers tells whether it was fused."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.jaxpr.reshapes import reshape_groups, reshape_index, reshape_inlines
from functrans.lowering.jaxpr.simplify import simplify
from functrans.lowering.loops import ir, queries
from functrans.lowering.loops.from_jaxpr.aliasing import schedule
from functrans.lowering.loops.from_jaxpr.build_loops import build_loops
from functrans.lowering.loops.from_jaxpr.fuse import fuse
from functrans.lowering.loops.from_jaxpr.materialize import MOST_ARRAYS, Roots
from functrans.lowering.loops.from_jaxpr.order import reads_first
from functrans.lowering.loops.from_jaxpr.read_patterns import accesses
from functrans.primitives.elementwise.arithmetic import div_p, mul_p, neg_p, sub_p
from functrans.primitives.elementwise.exp_log import exp_p, log_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.reductions.reduce import reduce_max_p
from functrans.primitives.structure.linear import (
    add_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    reshape_p,
    transpose_p,
)
from functrans.primitives.structure.shape import pad_p, slice_p

X = np.ones((40, 30))


def rows(x, v):
    return broadcast_in_dim_p.bind(v, shape=x.shape, broadcast_dimensions=(0,))


def loops(stage, f, *args):
    """The loops of a program as nested tuples of extents, and the shapes of its scratch buffers."""
    kernel = build_loops(schedule(simplify(stage(f, *args)))).kernel

    def nest(block):
        return tuple((s.stop.value, *nest(s.body)) for s in block.statements if type(s) is ir.For)

    return nest(kernel.body), sorted(b.shape for b in kernel.buffers if b.role == "scratch")


def test_chain_is_one_loop(stage):
    assert loops(stage, lambda x: neg_p.bind(exp_p.bind(mul_p.bind(x, x))), X) == (((40, (30,)),), [])


def test_shared_value_is_computed_once_in_a_register(stage):
    def f(x):
        e = exp_p.bind(x)
        return mul_p.bind(e, 2.0), add_p.bind(e, log_p.bind(e)), reduce_sum_p.bind(e, axes=(0, 1))

    assert loops(stage, f, X) == (((40, (30,)),), [])
    kernel = build_loops(schedule(simplify(stage(f, X)))).kernel
    assert [s.op for s in queries.walk(kernel.body) if type(s) is ir.Let].count("exp") == 1


def test_softmax_runs_by_rows(stage):
    def softmax(x):
        e = exp_p.bind(sub_p.bind(x, rows(x, reduce_max_p.bind(x, axes=(1,)))))
        return div_p.bind(e, rows(x, reduce_sum_p.bind(e, axes=(1,))))

    assert loops(stage, softmax, X) == (((40, (30,), (30,), (30,)),), [(30,)])


def test_pairwise_energy_is_never_in_memory(stage):
    def energy(x):
        n = len(x)
        a = broadcast_in_dim_p.bind(x, shape=(n, n, 3), broadcast_dimensions=(0, 2))
        b = broadcast_in_dim_p.bind(x, shape=(n, n, 3), broadcast_dimensions=(1, 2))
        d = sub_p.bind(a, b)
        return reduce_sum_p.bind(
            exp_p.bind(neg_p.bind(reduce_sum_p.bind(mul_p.bind(d, d), axes=(2,)))), axes=(0, 1)
        )

    assert loops(stage, energy, np.ones((50, 3))) == (((50, (50, (3,))),), [])


def test_columns_are_summed_in_memory_order(stage):
    def f(x):
        e = exp_p.bind(x)
        return reduce_sum_p.bind(e, axes=(0,)), reduce_sum_p.bind(e, axes=(1,))

    assert loops(stage, f, X) == (((30,), (40, (30,))), [])


def test_short_leading_axis_is_summed_in_a_register(stage):
    def f(x):
        return exp_p.bind(reduce_sum_p.bind(mul_p.bind(x, x), axes=(0,)))

    assert loops(stage, f, np.ones((3, 50))) == (((50, (3,)),), [])


def test_total_needs_a_second_pass(stage):
    def f(x):
        e = exp_p.bind(x)
        return div_p.bind(e, reduce_sum_p.bind(e, axes=(0, 1)))

    # The exponentials stand in the output's memory until they are divided.
    assert loops(stage, f, X) == (((40, (30,)), (40, (30,))), [])


def test_row_of_numbers_is_computed_once(stage):
    def f(x, v):
        return add_p.bind(x, broadcast_in_dim_p.bind(exp_p.bind(v), shape=x.shape, broadcast_dimensions=(1,)))

    assert loops(stage, f, X, np.ones(30)) == (((30,), (40, (30,))), [(30,)])


def test_value_read_in_another_order_is_not_fused(stage):
    def f(x):
        e = exp_p.bind(x)
        return add_p.bind(e, transpose_p.bind(e, permutation=(1, 0)))

    assert loops(stage, f, np.ones((20, 20))) == (((20, (20,)), (20, (20,))), [(20, 20)])


def test_cheap_values_are_recomputed(stage):
    def f(x):
        d = slice_p.bind(x, start_indices=(1,), limit_indices=(50,), strides=(1,))
        d = sub_p.bind(d, slice_p.bind(x, start_indices=(0,), limit_indices=(49,), strides=(1,)))
        a = slice_p.bind(d, start_indices=(1,), limit_indices=(49,), strides=(1,))
        return mul_p.bind(a, slice_p.bind(d, start_indices=(0,), limit_indices=(48,), strides=(1,)))

    assert loops(stage, f, np.ones(50)) == (((48,),), [])


def test_sum_of_pads_is_one_pass(stage):
    def f(x):
        low, high = ((1, 0, 0),), ((0, 1, 0),)
        return add_p.bind(pad_p.bind(x, 0.0, padding_config=low), pad_p.bind(x, 0.0, padding_config=high))

    assert loops(stage, f, np.ones(20)) == (((21,),), [])
    # The first and the last element, which read one number only, have loops of their own.
    assert loops(stage, f, np.ones(50)) == (((1,), (50,), (1,)), [])


def test_independent_programs_stay_separate(stage):
    assert loops(stage, lambda x, y: (exp_p.bind(x), exp_p.bind(y)), X, X + 1)[0] == ((40, (30,)),) * 2


def test_reshape_of_a_result_shares_its_memory(stage):
    def f(x):
        return reshape_p.bind(reduce_sum_p.bind(x, axes=(2,)), shape=(20,))

    nest, scratch = loops(stage, f, np.ones((4, 5, 6)))
    assert nest == ((4, (5, (6,))),)
    assert scratch == []


def test_operations_that_may_raise_run_for_all_elements(stage):
    def f(x, i):
        return slice_p.bind(
            gather_p.bind(x, i, axes=(0,), mode="raise"), start_indices=(0,), limit_indices=(2,), strides=(1,)
        )

    nest, _ = loops(stage, f, np.ones(50), np.arange(20))
    assert (20,) in nest


def test_a_loop_body_does_not_grow_without_bound(stage):
    def f(x):
        y = x
        for n in range(3000):
            y = add_p.bind(mul_p.bind(y, x), float(n))
        return y

    simple = simplify(stage(f, np.ones(40)))
    roots = Roots(reads_first(simple, {}))
    assert len(roots.roots) > 3
    assert all(r.weight < 1200 for r in roots.roots)
    assert len(fuse(roots).body) > 3
    build_loops(schedule(simple))  # no deeper than Python's stack


def test_accesses_tell_index_maps_and_costs(stage):
    def one(f, *args):
        (eqn,) = stage(f, *args).eqns
        return accesses(eqn)

    cheap = one(lambda x, y: add_p.bind(x, y), X, np.ones((1, 30)))
    assert cheap.reads == ((0, (0, 1)), (1, (None, 1)))
    assert cheap.cost < one(lambda x: exp_p.bind(x), X).cost
    assert one(lambda x: transpose_p.bind(x, permutation=(1, 0)), X).reads == ((0, (1, 0)),)
    window = {"start_indices": (1, 0), "limit_indices": (3, 30), "strides": (1, 1)}
    assert one(lambda x: slice_p.bind(x, **window), X).reads[0].operand == 0


@pytest.mark.parametrize(
    ("source", "target", "inlines"),
    [
        ((6,), (2, 3), True),
        ((2, 3), (6,), False),
        ((4, 5, 6), (20, 6), False),
        ((4, 30), (4, 5, 6), True),
        ((1, 4), (4,), True),
        ((4,), (1, 4, 1), True),
        ((), (1, 1), True),
        ((1,), (), True),
        ((4, 6), (8, 3), False),
        ((0, 3), (0,), False),
    ],
)
def test_reshapes_by_index(source, target, inlines):
    assert reshape_inlines(source, target) is inlines
    if not inlines:
        return
    x = np.arange(np.prod(source, dtype=int)).reshape(source)
    y = x.reshape(target)
    for index in np.ndindex(target):
        assert x[tuple(reshape_index(source, target, index))] == y[index]
    for left, right in reshape_groups(source, target):
        assert np.prod([source[d] for d in left]) == np.prod([target[d] for d in right])


def independence(stage, f, *args):
    """The loops of a program as nested tuples: whether each is independent, and the loops inside."""

    def nest(block):
        return tuple((s.independent, *nest(s.body)) for s in block.statements if type(s) is ir.For)

    return nest(build_loops(schedule(simplify(stage(f, *args)))).kernel.body)


def test_loops_know_whether_their_iterations_are_independent(stage):
    assert independence(stage, lambda x: exp_p.bind(mul_p.bind(x, x)), X) == ((True, (True,)),)
    assert independence(stage, lambda x: reduce_sum_p.bind(x, axes=(1,)), X) == ((True, (False,)),)
    assert independence(stage, lambda x: reduce_sum_p.bind(x, axes=(0, 1)), X) == ((False, (False,)),)
    # Sums of columns: rows are added one after another, each to elements of its own.
    assert independence(stage, lambda x: reduce_sum_p.bind(x, axes=(0,)), X) == ((True,), (False, (True,)))


def test_a_row_that_every_iteration_writes_is_shared(stage):
    def softmax(x):
        e = exp_p.bind(sub_p.bind(x, rows(x, reduce_max_p.bind(x, axes=(1,)))))
        return div_p.bind(e, rows(x, reduce_sum_p.bind(e, axes=(1,))))

    ((outer, *inner),) = independence(stage, softmax, X)
    assert not outer
    assert [loop[0] for loop in inner] == [False, False, True]


def test_what_shares_only_a_number_has_loops_of_its_own():
    """Loops join for what both read along them; a number costs nothing to read."""

    def loops(f, *args):
        return ft.jit(f).lower(*args).as_text("python").count("for ")

    x, y = np.ones(300), np.ones(300)
    apart = loops(lambda x, y, s: (fnp.sin(x) * s, fnp.cos(y) * s), x, y, np.float64(2.0))
    together = loops(lambda x, s: (fnp.sin(x) * s, fnp.cos(x) * s), x, np.float64(2.0))
    assert (apart, together) == (2, 1)
    rows = loops(
        lambda x, y, w: (fnp.sin(x) * w, fnp.cos(y) * w),
        np.ones((40, 50)),
        np.ones((40, 50)),
        np.ones((40, 1)),
    )
    assert rows == 3


def test_a_loop_has_no_more_arrays_than_llvm_can_tell_apart():
    """A chain stores a residual for each function, and its derivative reads all of them."""

    def chain(x):
        for _ in range(500):
            x = fnp.tanh(x) * 1.1
        return fnp.sum(x)

    x = np.linspace(-1, 1, 40)
    jaxpr = ft.jit(ft.grad(chain)).lower(x).jaxpr
    kernel = build_loops(schedule(simplify(jaxpr))).kernel
    counts = []
    for loop in [s for s in kernel.body.statements if type(s) is ir.For]:
        accesses = [s for s in queries.walk(loop.body) if type(s) in (ir.Load, ir.Store)]
        counts.append(len({s.buffer.place for s in accesses}))
    assert 150 < max(counts) <= MOST_ARRAYS
    assert len(counts) <= 8
    y, expected = x, np.ones(40)
    for _ in range(500):
        y = np.tanh(y)
        expected = expected * 1.1 * (1 - y * y)
        y = y * 1.1
    np.testing.assert_allclose(ft.jit(ft.grad(chain))(x), expected, rtol=1e-11)


def waiting(u, v, g):
    """Two arrays that fuse, the second of which is needed late; `b` is read in between, in another order."""
    b = u[:, :, None] * v
    weights = fnp.sum(b, axis=2)
    late = fnp.sin(weights)[:, :, None] * b + g
    turned = fnp.transpose(b, (0, 2, 1)) @ g[0, 0]
    return late, turned


def test_a_nest_waits_for_the_other_readers_of_a_large_array():
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(40, 5)), rng.normal(size=240)

    def loss(p):
        return fnp.mean((fnp.tanh(x @ p[:200].reshape(5, 40)) @ p[200:] - 1) ** 2)

    hessian = ft.jit(ft.hessian(loss))
    array = 240 * 40 * 40 * 8
    assert hessian.lower(p).compile().memory_analysis().temp_size_in_bytes < 3.5 * array
    with ft.config.patch(without={"fusion"}):
        np.testing.assert_allclose(hessian(p), ft.jit(ft.hessian(loss))(p), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [8, 40])
def test_results_do_not_depend_on_the_order_of_nests(size):
    rng = np.random.default_rng(0)
    u, v, g = rng.normal(size=(size, size)), rng.normal(size=(size, size, size)), rng.normal(size=(size,) * 3)
    b = u[:, :, None] * v
    late, turned = ft.jit(waiting)(u, v, g)
    np.testing.assert_allclose(late, np.sin(b.sum(2))[:, :, None] * b + g, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(turned, b.transpose(0, 2, 1) @ g[0, 0], rtol=1e-11, atol=1e-12)
