"""`shard_map`: over which axes values differ, and what is refused; ranks that do not agree."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.distributed import P, make_mesh, run_threads, shard_map
from functrans.errors import ArgumentError, CollectiveError, ShardingError, UnboundAxisError

ALL, OWN = P(), P("i")
X = np.array([1.0, 2.0, 3.0, 4.0])


def on(n, program):
    """The result of a program of a mesh, which all ranks share."""
    first, *others = run_threads((n,), ("i",), program)
    for other in others:
        for a, b in zip(ft.tree.leaves(first), ft.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)
    return first


def mapped(mesh, f, ins=OWN, outs=OWN, **options):
    return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)


def test_types_say_over_which_axes_values_differ():
    seen = {}

    def f(w, x):
        for name, value in {
            "w": w,
            "x": x,
            "both": w * x,
            "psum": lax.psum(x, "a"),
            "all": lax.psum(x, ("a", "b")),
            "gathered": lax.all_gather(x, "a"),
            "together": lax.all_gather(x, "a", to="invariant"),
            "index": lax.axis_index("b"),
            "jit": ft.jit(lambda x: lax.psum(x, "b") * w)(x),
        }.items():
            seen[name] = "".join(sorted(ft.typeof(value).vma))
        return w

    def program(mesh):
        return shard_map(f, mesh=mesh, in_specs=(ALL, P(("a", "b"))), out_specs=ALL)(1.0, X)

    run_threads((2, 2), ("a", "b"), program)
    expected = {"w": "", "x": "ab", "both": "ab", "psum": "b", "all": "", "gathered": "ab"}
    assert seen == expected | {"together": "b", "index": "b", "jit": "a"}
    assert ft.typeof(X).vma == frozenset()


def refused(error, f, ins=OWN, outs=OWN, x=X, n=2):
    with pytest.raises(error) as caught:
        on(n, lambda m: mapped(m, f, ins, outs)(x))
    return str(caught.value)


def test_results_that_differ_need_a_name():
    message = refused(CollectiveError, lambda x: {"a": x}, OWN, ALL)
    assert "result['a'] is P(), but the result differs over the axis 'i'" in message
    got = on(
        2, lambda m: mapped(m, lambda x: lax.all_gather(x, "i", tiled=True), OWN, ALL, check_vma=False)(X)
    )
    np.testing.assert_array_equal(got, X)


def test_check_vma_false_has_the_gradient_of_what_all_ranks_have():
    def loss(x):
        return lax.all_gather(x**2, "i", tiled=True).sum()

    def program(mesh):
        return ft.grad(mapped(mesh, loss, OWN, ALL, check_vma=False))(X)

    np.testing.assert_array_equal(on(2, program), 2 * X)


def test_bools_are_counted():
    x = np.array([[True, True], [True, False]])

    def program(mesh):
        def f(x):
            return lax.psum_scatter(x[0], "i", tiled=True), lax.psum(x[0], "i")

        return ft.jit(mapped(mesh, f, OWN, (OWN, ALL)))(x)

    parts, total = on(2, program)
    np.testing.assert_array_equal(parts, [2, 1])
    np.testing.assert_array_equal(total, [2, 1])
    counted = ft.vmap(lambda x: lax.psum_scatter(x, "i", tiled=True), axis_name="i")(x)
    np.testing.assert_array_equal(counted, [[2], [1]])


def test_errors():
    with pytest.raises(ArgumentError, match="positional arguments only, got x="):
        on(1, lambda m: mapped(m, lambda x: x, OWN, OWN)(x=X))
    assert "'k' is not bound here; bound are: 'i'" in refused(UnboundAxisError, lambda x: lax.psum(x, "k"))
    assert issubclass(UnboundAxisError, CollectiveError)
    assert "3 is not a multiple of 2" in refused(CollectiveError, lambda x: x, x=X[:3])
    assert "has the shape (), but its spec has 1" in refused(CollectiveError, lambda x: x, x=1.0)
    assert "cannot be divided among 2 ranks" in refused(
        CollectiveError, lambda x: lax.psum_scatter(x, "i", tiled=True), x=np.ones(6)
    )
    assert "each target once" in refused(CollectiveError, lambda x: lax.ppermute(x, "i", [(0, 1), (1, 1)]))
    assert "no axis 'j'. Its axes are 'i'" in refused(ShardingError, lambda x: x, P("j"))
    assert "axis_index_groups" in refused(
        CollectiveError, lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1]])
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.cond(x.sum() > 2, lambda x: lax.psum(x, "i"), lambda x: x, x),
        lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + lax.psum(x, "i"), x),
        lambda x: lax.fori_loop(0, x.sum().astype(int), lambda _, c: c + lax.psum(x, "i"), x),
        lambda x: ft.vmap(lambda v: lax.cond(v > 2, lambda v: lax.psum(v, "i"), lambda v: v, v))(x),
        lambda x: ft.grad(
            lambda w: lax.cond(x.sum() > 2, lambda w: ft.grad(lambda w: (w * x).sum())(w), abs, w)
        )(2.0),
    ],
    ids=["cond", "while", "fori", "vmap", "grad"],
)
def test_no_collective_under_a_condition_that_differs(f):
    assert "would run on some ranks only" in refused(CollectiveError, f)


def test_a_closed_mesh():
    mesh = make_mesh((1,), ("i",), backend="self")
    f = mapped(mesh, lambda x: lax.psum(x, "i"), OWN, ALL)
    g = ft.jit(f)
    np.testing.assert_array_equal(g(X), X)
    mesh.close()
    for h in (f, g):
        with pytest.raises(ShardingError, match="closed"):
            h(X)


def test_ranks_that_call_different_collectives():
    def program(mesh):
        with ft.config.patch(check_collectives=True):
            assert on_same(mesh) == 10.0
            collective = lax.psum if mesh.rank else lax.pmax
            return mapped(mesh, lambda x: collective(x.sum(), "i"), OWN, ALL)(X)

    def on_same(mesh):
        return mapped(mesh, lambda x: lax.psum(x.sum(), "i"), OWN, ALL)(X)

    with pytest.raises(
        CollectiveError, match=r"(?s)ranks along 'i' differ.*pmax over i of f64.*psum over i of f64"
    ):
        on(2, program)


def test_compiled_ranks_that_call_different_collectives():
    def program(mesh):
        count = 2 + mesh.rank
        f = ft.jit(mapped(mesh, lambda x: lax.psum(x.sum() * fnp.ones(count), "i"), OWN, ALL))
        with ft.config.patch(check_collectives=True):
            return f(X)

    with pytest.raises(CollectiveError, match="differ"):
        on(2, program)


def test_collectives_stay_in_order_and_are_not_removed():
    order = []

    def program(mesh):
        communicator = mesh.communicator("i")
        if not mesh.rank:
            for name in ("all_reduce", "all_gather"):
                own = getattr(communicator, name)
                setattr(
                    communicator, name, lambda *args, own=own, name=name: (order.append(name), own(*args))[1]
                )

        @ft.jit
        def f(x):
            def body(x):
                lax.psum(x + 1, "i")
                gathered = lax.all_gather(x, "i")
                lax.psum(x, "i")
                return lax.psum(x, "i") + gathered.sum()

            return mapped(mesh, body, OWN, ALL, check_vma=False)(x)

        return f(X)

    on(2, program)
    assert order == ["all_reduce", "all_gather", "all_reduce", "all_reduce"]


def test_buffers_of_kernels_are_passed_on():
    """In a loop the collective reads and writes the memory of the kernel."""
    owners = []

    def program(mesh):
        communicator = mesh.communicator("i")
        own = communicator.all_reduce

        def noted(send, recv, op):
            owners.append((send.flags.owndata, recv.flags.owndata))
            own(send, recv, op)

        communicator.all_reduce = noted

        def body(x):
            return lax.fori_loop(0, 3, lambda _, c: lax.psum(c, "i") / 2, x)

        return ft.jit(mapped(mesh, body, OWN, ALL, check_vma=False))(np.ones(64))

    np.testing.assert_array_equal(on(2, program), np.ones(32))
    assert owners == [(False, False)] * 6


@pytest.mark.wide(2)
@pytest.mark.parametrize("n", [2, 4])
def test_gradients_over_processes(on_ranks, n):
    done = on_ranks(n, "gradients.py", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all equal\n"
