"""`shard_map` on virtual ranks: values, derivatives, types, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.distributed import P, run_threads, shard_map

ALL, OWN = P(), P("i")
X = np.array([1.0, 2.0, 3.0, 4.0])
ranks = st.integers(1, 4)


def on(n, program):
    """The result of a program of a mesh, which all ranks share."""
    first, *others = run_threads((n,), ("i",), program)
    for other in others:
        for a, b in zip(ft.tree.leaves(first), ft.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)
    return first


def mapped(mesh, f, ins=OWN, outs=OWN, **options):
    return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)


def random(shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


def styles(mesh, f, ins, outs, argnums):
    """The gradient of a function of ranks that returns a number: from inside, from outside, eager and compiled."""
    whole = mapped(mesh, f, ins, ALL)
    return [
        mapped(mesh, ft.grad(f, argnums=argnums), ins, outs),
        ft.grad(whole, argnums=argnums),
        ft.jit(ft.grad(whole, argnums=argnums)),
        ft.grad(ft.jit(whole), argnums=argnums),
        mapped(mesh, ft.jit(ft.grad(ft.jit(f), argnums=argnums)), ins, outs),
        ft.jit(mapped(mesh, ft.jit(ft.grad(f, argnums=argnums)), ins, outs)),
    ]


# --- values -------------------------------------------------------------------------------------------------

#: A collective of a block of shape (4 n, 3), and what it is on each rank, from the blocks of all.
MODELS = {
    "psum": (lambda x: lax.psum(x, "i"), lambda b, r: sum(b)),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda b, r: sum(b) / len(b)),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda b, r: np.max(b, 0)),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda b, r: np.min(b, 0)),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda b, r: np.stack(b)),
    "all_gather axis": (lambda x: lax.all_gather(x, "i", axis=1), lambda b, r: np.stack(b, 1)),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        lambda b, r: np.concatenate(b, 1),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "i", tiled=True),
        lambda b, r: np.split(sum(b), len(b))[r],
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        lambda b, r: np.concatenate([np.split(x, len(b))[r] for x in b], 1),
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(k, k + 1) for k in range(lax.axis_size("i") - 1)]),
        lambda b, r: b[r - 1] if r else np.zeros_like(b[0]),
    ),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 0), lambda b, r: b[0]),
    "axis_index": (lambda x: x + lax.axis_index("i"), lambda b, r: b[r] + r),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda b, r: b[r] * len(b)),
}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=6)
@given(n=ranks, seed=st.integers(0, 9), dtype=st.sampled_from(["f8", "f4", "i4"]))
def test_values_are_those_of_a_numpy_model(name, n, seed, dtype):
    f, model = MODELS[name]
    blocks = [(10 * random((4 * n, 3), (seed, r))).astype(dtype) for r in range(n)]
    for transform in (lambda f: f, ft.jit):
        results = run_threads(
            (n,),
            ("i",),
            lambda m: transform(mapped(m, f, local=True))(blocks[m.rank]),  # noqa: B023
        )
        for rank, result in enumerate(results):
            expected = model(blocks, rank)
            np.testing.assert_allclose(result, expected, rtol=1e-6)


@settings(max_examples=10)
@given(shape=st.sampled_from([(2, 2), (1, 3), (3, 1), (4, 1)]), seed=st.integers(0, 9))
def test_several_axes_are_one_of_which_the_last_varies_fastest(shape, seed):
    x = random((12, 2), seed)

    def program(mesh):
        def f(block):
            both = lax.all_gather(block, ("a", "b"), tiled=True)
            crossed = lax.all_gather(block, ("b", "a"))
            return lax.psum(block, ("a", "b")), both[None], crossed[None], lax.axis_index(("a", "b"))[None]

        ab = P(("a", "b"))
        return shard_map(f, mesh=mesh, in_specs=ab, out_specs=(ALL, ab, ab, ab))(x)

    a, b = shape
    blocks = x.reshape(a, b, -1, 2)
    total, both, crossed, index = run_threads(shape, ("a", "b"), program)[0]
    np.testing.assert_allclose(total, blocks.sum((0, 1)))
    for k in range(a * b):
        np.testing.assert_array_equal(both[k], x)
        np.testing.assert_array_equal(crossed[k], blocks.swapaxes(0, 1).reshape(a * b, -1, 2))
    np.testing.assert_array_equal(index, np.arange(a * b))


def test_blocks_of_two_axes():
    x = np.arange(24.0).reshape(4, 6)

    def program(mesh):
        f = shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b"))
        g = shard_map(
            lambda x: lax.psum(x, "b"), mesh=mesh, in_specs=P(None, ("b", "a")), out_specs=P(None, "a")
        )
        return f(x), g(x)

    twice, sums = run_threads((2, 3), ("a", "b"), program)[0]
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_array_equal(sums, x.reshape(4, 3, 2).sum(1))


def test_trees_numbers_and_results_without_axes():
    def f(tree, y):
        return {"sum": lax.psum(tree["a"].sum() * y, "i"), "x": tree["a"], "y": y}

    outs = {"sum": ALL, "x": OWN, "y": ALL}
    got = on(2, lambda m: mapped(m, f, ({"a": OWN}, ALL), outs)({"a": X}, 3.0))
    assert got["sum"] == 30.0
    assert got["y"] == 3.0
    np.testing.assert_array_equal(got["x"], X)


def test_it_is_a_decorator():
    def program(mesh):
        @shard_map(mesh=mesh, in_specs=OWN, out_specs=ALL)
        def total(x):
            return lax.psum(x.sum(), "i")

        return total(X)

    assert on(4, program) == 10.0


# --- derivatives --------------------------------------------------------------------------------------------

#: Linear maps of a block of shape (4, 3) to a block.
LINEAR = {
    "psum": lambda x: lax.psum(x, "i"),
    "pvary": lambda x: lax.pvary(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "all_gather tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "all_gather invariant": lambda x: lax.all_gather(x, "i", to="invariant"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]),
    "pmean": lambda x: lax.pmean(x, "i"),
    "block": lambda x: x * (1.0 + lax.axis_index("i")),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LINEAR)
def test_transposes_by_the_dot_product(name, compiled):
    """What all ranks have counts once, what differs once a rank."""
    n, f = 3 if name == "ppermute" else 4, LINEAR[name]
    same = name == "pvary"
    xs = [random((4, 3), 0 if same else r) for r in range(n)]

    def program(mesh):
        types = {}

        def noted(x):
            y = f(x)
            types["out"] = "i" in ft.typeof(y).vma
            return lax.pvary(y, "i") if not types["out"] else y

        g = mapped(mesh, noted, ALL if same else OWN, OWN, local=True)
        if compiled:
            g = ft.jit(g)
        out, pull = ft.vjp(g, xs[mesh.rank])
        ct = random(out.shape, 7 + (mesh.rank if types["out"] else 0))
        if not types["out"]:
            ct = ct * (mesh.rank == 0)  # pvary sums the cotangents of all ranks
        (back,) = pull(ct)
        return out, ct, back

    results = run_threads((n,), ("i",), program)
    left = sum(np.vdot(out, ct) for out, ct, _ in results)
    right = [np.vdot(x, back) for x, (_, _, back) in zip(xs, results)]
    np.testing.assert_allclose(left, right[0] if same else sum(right), rtol=1e-12)


def test_the_derivative_of_psum_follows_its_axis():
    def loss(x):
        return lax.psum(x * x, "i")

    np.testing.assert_array_equal(ft.vmap(ft.grad(loss), axis_name="i")(X), 8 * X)
    np.testing.assert_array_equal(on(4, lambda m: mapped(m, ft.grad(lambda x: loss(x).sum()))(X)), 2 * X)


def test_cotangents_of_all_gather():
    def pulled(mesh):
        _, pull = ft.vjp(mapped(mesh, lambda x: lax.all_gather(x, "i", tiled=True)), np.zeros(8))
        return pull(np.arange(1.0, 33.0))[0]

    np.testing.assert_array_equal(on(4, pulled), np.arange(52.0, 81.0, 4.0))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_gradients_are_those_of_one_process(n):
    w, x, y = random((3, 5), 1), random((12, 3), 2), random((12, 5), 3)

    def alone(w, x, y):
        return ((fnp.tanh(x @ w) - y) ** 2).sum() / 12

    def loss(w, x, y):
        return lax.psum(((fnp.tanh(x @ w) - y) ** 2).sum(), "i") / 12

    expected = ft.grad(alone, argnums=(0, 1))(w, x, y)
    for k in range(6):
        got = on(n, lambda m: styles(m, loss, (ALL, OWN, OWN), (ALL, OWN), (0, 1))[k](w, x, y))  # noqa: B023
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_what_all_ranks_have_gets_the_sum_of_local_gradients():
    got = on(4, lambda m: mapped(m, ft.grad(lambda w, x: ((w * x) ** 2).sum()), (ALL, OWN), ALL)(2.0, X))
    assert got == 4 * 30.0


def test_pvary_keeps_the_gradient_of_one_rank():
    def own(w, x):
        return ft.grad(lambda w: (w * x).sum())(lax.pvary(w, "i"))[None]

    np.testing.assert_array_equal(on(4, lambda m: mapped(m, own, (ALL, OWN), OWN)(2.0, X)), X)


def test_captured_values_are_those_of_all_ranks():
    def program(mesh):
        def loss(w):
            return mapped(mesh, lambda x: lax.psum((w * x).sum(), "i"), OWN, ALL)(X)

        return ft.grad(loss)(2.0), ft.jit(ft.grad(loss))(2.0), ft.grad(ft.jit(loss))(2.0)

    assert on(2, program) == (10.0, 10.0, 10.0)


@pytest.mark.parametrize("collective", [lax.pmax, lax.pmin])
def test_ties_share_the_gradient_of_extremes(collective):
    x = np.array([1.0, 3.0, 3.0, 1.0])
    expected = np.where(x == (3.0 if collective is lax.pmax else 1.0), 0.5, 0.0)
    for k in range(6):
        f = lambda x: collective(x.sum(), "i")
        np.testing.assert_array_equal(on(4, lambda m: styles(m, f, OWN, OWN, 0)[k](x)), expected)  # noqa: B023


def test_second_derivatives():
    def alone(x):
        return (x**3).sum() ** 2

    def program(mesh):
        f = mapped(mesh, lambda x: lax.psum((x**3).sum(), "i") ** 2, OWN, ALL)
        return ft.hessian(f)(X), ft.hessian(ft.jit(f))(X), ft.jit(ft.hessian(f))(X)

    for got in on(2, program):
        np.testing.assert_allclose(got, ft.hessian(alone)(X), rtol=1e-12)


def test_forward_mode():
    f = lambda x: lax.psum((x**3).sum(), "i")
    for got in on(
        4,
        lambda m: (
            ft.jvp(mapped(m, f, OWN, ALL), (X,), (X,))[1],
            ft.jvp(ft.jit(mapped(m, f, OWN, ALL)), (X,), (X,))[1],
            mapped(m, lambda x: ft.jvp(f, (x,), (x,))[1], OWN, ALL)(X),
        ),
    ):
        assert got == 3 * (X**3).sum()


# --- loops, branches, vmap ----------------------------------------------------------------------------------


def _train(w, x, steps=4):
    def step(w, _):
        return w - 1e-3 * ft.grad(lambda w: ((w * x) ** 2).sum())(w), w

    return lax.scan(step, w, None, length=steps)[0]


def test_training_in_a_loop():
    alone, slope = _train(2.0, X), ft.grad(_train)(2.0, X)
    for transform in (lambda f: f, ft.jit):
        last, back, back_of = on(
            2,
            lambda m: (
                transform(mapped(m, _train, (ALL, OWN), ALL))(2.0, X),  # noqa: B023
                transform(ft.grad(mapped(m, _train, (ALL, OWN), ALL)))(2.0, X),  # noqa: B023
                ft.grad(transform(mapped(m, _train, (ALL, OWN), ALL)))(2.0, X),  # noqa: B023
            ),
        )
        np.testing.assert_allclose([last, back, back_of], [alone, slope, slope], rtol=1e-14)


def test_a_carry_differs_if_the_body_makes_it():
    def total(x):
        return lax.fori_loop(0, 3, lambda _, c: c + x.sum(), 0.0)[None]

    np.testing.assert_array_equal(on(4, lambda m: mapped(m, total)(X)), 3 * X)
    sums = on(4, lambda m: ft.grad(lambda x: (mapped(m, total)(x) ** 2).sum())(X))
    np.testing.assert_array_equal(sums, 18 * X)


def test_a_loop_until_all_ranks_are_done():
    def f(x):
        return lax.while_loop(lambda c: lax.pmax(c.sum(), "i") < 10, lambda c: 2 * c + lax.psum(x, "i"), x)

    for transform in (lambda f: f, ft.jit):
        got = on(4, lambda m: transform(mapped(m, f))(X))  # noqa: B023
        np.testing.assert_array_equal(got, 2 * X + 10)


def test_loops_whose_length_differs():
    def f(x):
        return lax.while_loop(lambda c: c.sum() < 10, lambda c: 2 * c, x)

    np.testing.assert_array_equal(on(4, lambda m: mapped(m, f)(X)), [16.0, 16.0, 12.0, 16.0])


def test_branches():
    def f(w, x):
        return lax.cond(x.sum() > 2, lambda w: (w * x).sum(), lambda w: 0.0 * w, w)

    def same(w, x):
        positive = lax.psum(x.sum(), "i") > 2
        return lax.cond(positive, lambda w: lax.psum((w * x).sum(), "i"), lambda w: w, w)

    def program(mesh, transform):
        return [
            transform(mapped(mesh, lambda w, x: lax.psum(f(w, x), "i"), (ALL, OWN), ALL))(2.0, X),
            transform(mapped(mesh, ft.grad(f), (ALL, OWN), ALL))(2.0, X),
            ft.grad(transform(mapped(mesh, same, (ALL, OWN), ALL)))(2.0, X),
        ]

    assert on(4, lambda m: program(m, lambda f: f)) == [14.0, 7.0, 10.0]
    assert on(4, lambda m: program(m, ft.jit)) == [14.0, 7.0, 10.0]


def test_vmap_folds_its_axis_into_one_call():
    x = np.arange(24.0).reshape(3, 4, 2)
    calls = []

    def program(mesh):
        communicator = mesh.communicator("i")
        own = communicator.all_reduce
        communicator.all_reduce = lambda *args: (calls.append(args[0].shape), own(*args))[1]
        inside = mapped(mesh, lambda x: ft.vmap(lambda x: lax.psum(x, "i"))(x), P(None, "i"), ALL)(x)
        outside = ft.vmap(mapped(mesh, lambda x: lax.psum(x, "i"), OWN, ALL))(x)
        return inside, outside

    inside, outside = on(2, program)
    expected = x.reshape(3, 2, 2, 2).sum(1)
    np.testing.assert_array_equal(inside, expected)
    np.testing.assert_array_equal(outside, expected)
    assert len(calls) == 4


def test_names_of_vmap_and_of_the_mesh():
    x = np.arange(12.0).reshape(4, 3)

    def f(x):
        return ft.vmap(lambda v: v / lax.psum(v, ("i", "lane")), axis_name="lane", in_axes=1, out_axes=1)(x)

    np.testing.assert_allclose(on(4, lambda m: mapped(m, f)(x)), x / x.sum())


# --- rules --------------------------------------------------------------------------------------------------


def _rules():
    def product(w, x):
        return w * x

    with_vjp = ft.custom_vjp(product)
    with_vjp.defvjp(
        lambda w, x: (product(w, x), (w, x)), lambda saved, ct: ((ct * saved[1]).sum(), ct * saved[0])
    )

    class AsFunction(ft.Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.save_for_backward(w, x)
            return w * x

        @staticmethod
        def backward(ctx, ct):
            w, x = ctx.saved_tensors
            return (ct * x).sum(), ct * w

    def total(w, x):
        return lax.psum((w * x).sum(), "i")

    exchanging = ft.custom_vjp(total)
    exchanging.defvjp(
        lambda w, x: (exchanging(w, x), (w, x)),
        lambda saved, ct: (lax.psum(ct * saved[1].sum(), "i"), ct * saved[0] * fnp.ones_like(saved[1])),
    )
    pushing = ft.custom_jvp(total)

    @pushing.defjvp
    def _(primals, tangents):
        (w, x), (s, t) = primals, tangents
        return pushing(w, x), lax.psum((s * x + w * t).sum(), "i")

    return {
        "custom_vjp": lambda w, x: lax.psum(with_vjp(w, x).sum(), "i") ** 2,
        "Function": lambda w, x: lax.psum(AsFunction.apply(w, x).sum(), "i") ** 2,
        "collectives in custom_vjp": lambda w, x: exchanging(w, x) ** 2,
        "collectives in custom_jvp": lambda w, x: pushing(w, x) ** 2,
    }


RULES = _rules()


@pytest.mark.parametrize("name", RULES)
def test_custom_rules(name):
    f = RULES[name]
    expected = ft.grad(lambda w, x: (w * x).sum() ** 2, argnums=(0, 1))(2.0, X)
    for k in range(6):
        got = on(2, lambda m: styles(m, f, (ALL, OWN), (ALL, OWN), (0, 1))[k](2.0, X))  # noqa: B023
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(a, b)
    again = on(2, lambda m: ft.grad(ft.grad(mapped(m, f, (ALL, OWN), ALL)))(2.0, X))
    assert again == 200.0
