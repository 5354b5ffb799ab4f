"""Strategies for shapes that broadcast, trees, tangents, batch axes, domains and programs."""

from random import Random

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError, ArgumentValueError, ShapeError
from functrans.testing import (
    LawViolation,
    arrays,
    broadcastable,
    check,
    domains,
    given_op,
    in_axes_for,
    jvp_is_slope,
    programs,
    pytrees,
    tangents_like,
)

FEW = settings(max_examples=20)
UNSHRUNK = settings(max_examples=2000, phases=[hypothesis.Phase.generate])


@FEW
@given(broadcastable(3, max_side=3))
def test_shapes_broadcast(xs):
    assert sum(xs).shape == np.broadcast_shapes(*[x.shape for x in xs])


@pytest.mark.parametrize("wanted", [(), (0,), (1,)])
def test_odd_shapes_are_among_them(wanted):
    xs = broadcastable(2, min_side=0, max_side=2, max_dims=2)
    x, y = hypothesis.find(
        xs, lambda xs: xs[0].shape == wanted and xs[1].ndim > 1, settings=UNSHRUNK, random=Random(0)
    )
    assert (x + y).ndim > 1


@FEW
@given(arrays((2, 4), domain=domains.simplex()))
def test_simplex(p):
    np.testing.assert_allclose(p.sum(-1), 1.0, rtol=1e-14)
    assert (p > 0).all()


@FEW
@given(st.sampled_from([float, complex]).flatmap(lambda d: arrays((2, 3, 3), domain=domains.spd(), dtype=d)))
def test_positive_definite(a):
    np.testing.assert_allclose(a, np.swapaxes(a, -1, -2).conj(), rtol=1e-14)
    assert (np.linalg.eigvalsh(a) > 0.99).all()


@FEW
@given(
    st.sampled_from([float, complex]).flatmap(lambda d: arrays((3, 3), domain=domains.orthogonal(), dtype=d))
)
def test_orthogonal(q):
    np.testing.assert_allclose(q @ q.conj().T, np.eye(3), atol=1e-12)


@FEW
@given(arrays((5,), domain=domains.permutation()))
def test_permutation(p):
    assert sorted(p) == list(range(5))
    assert p.dtype.kind == "i"


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_intervals_and_margins(dtype):
    domain = domains.away_from(0.0, 1.0, margin=0.25, high=2.0, low=-1.0)

    @FEW
    @given(arrays((4,), domain=domain, dtype=dtype))
    def run(x):
        parts = np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x
        assert (np.abs(parts) >= 0.25).all()
        assert (np.abs(parts - 1.0) >= 0.25).all()
        assert ((parts >= -1) & (parts <= 2)).all()

    run()
    drawn = domain.draw(np.random.default_rng(0), (100,), np.dtype("f8"))
    assert min(np.abs(drawn).min(), np.abs(drawn - 1.0).min()) >= 0.25
    assert (
        hypothesis.find(arrays((2,), domain=domains.positive()), lambda x: True, settings=UNSHRUNK).min() > 0
    )


def test_what_a_domain_refuses():
    with pytest.raises(ShapeError, match=r"domain spd: .*\(\.\.\., n, n\)"):
        arrays((2, 3), domain=domains.spd())
    with pytest.raises(ShapeError, match=r"domain simplex"):
        arrays((), domain=domains.simplex())
    with pytest.raises(ArgumentValueError, match="no arrays of dtype complex128"):
        arrays((2,), domain=domains.simplex(), dtype=complex)
    with pytest.raises(ArgumentValueError, match="empty"):
        domains.interval(0.0, 1.0, avoid=(0.5,), margin=0.6)
    with pytest.raises(ArgumentValueError, match="not positive"):
        domains.positive(0.0)
    with pytest.raises(ArgumentError, match="domain has 1 entries for 2 arrays"):
        broadcastable(2, domain=[None])


def test_a_domain_for_each_operand():
    f = lambda a, p: fnp.sum(fnp.linalg.cholesky(a) @ p[..., None])

    @given_op(f, shapes=[(2, 3, 3), (2, 3)], domain=[domains.spd(), domains.simplex()], max_examples=3)
    def by_shapes(a, p):
        assert a.shape == (2, 3, 3)
        np.testing.assert_allclose(p.sum(-1), 1.0)
        jvp_is_slope(f, a, p)

    @given_op(lambda a, p: f(a, p), shapes=2, domain=[domains.spd(), domains.simplex()], max_examples=5)
    def by_number(a, p):
        assert a.shape[-1] == a.shape[-2] == p.shape[-1]

    by_shapes()
    by_number()


def test_examples_shrink_within_the_domain():
    a = hypothesis.find(arrays((2, 2), domain=domains.spd()), lambda a: a[0, 1] > 0.3)
    np.testing.assert_array_equal(a, a.T)
    assert (np.linalg.eigvalsh(a) > 0.99).all()


@settings(max_examples=15)
@given(pytrees())
def test_trees_have_gradients_of_their_structure(tree):
    total = lambda t: sum([fnp.sum(x**2) for x in ft.tree.leaves(t)], fnp.zeros(()))
    gradient = ft.grad(total)(tree)
    assert ft.tree.structure(gradient) == ft.tree.structure(tree)
    for g, x in zip(ft.tree.leaves(gradient), ft.tree.leaves(tree)):
        np.testing.assert_allclose(g, 2 * x)


def test_trees_of_all_kinds():
    for kind in (dict, list, tuple):
        hypothesis.find(
            pytrees(), lambda t, kind=kind: type(t) is kind and len(ft.tree.leaves(t)) > 1, settings=UNSHRUNK
        )
    hypothesis.find(pytrees(), lambda t: type(t) is np.ndarray, settings=UNSHRUNK)


@settings(max_examples=10)
@given(tangents_like({"x": np.ones((2, 1)), "n": np.arange(3), "z": np.float32(1) * 1j, "k": 2}))
def test_tangents(t):
    assert t["x"].shape == (2, 1)
    assert t["n"] is None
    assert t["k"] is None
    assert t["z"].dtype == np.complex64
    f = lambda p: p["x"] * p["n"] * 2.0 + p["k"] * p["z"].real
    point = {"x": np.ones((2, 1)), "n": np.arange(3), "z": np.complex64(1j), "k": 2}
    _, out = ft.jvp(f, (point,), (t,))
    np.testing.assert_allclose(out, t["x"] * point["n"] * 2.0 + 2 * t["z"].real, rtol=1e-6)


@settings(max_examples=25)
@given(in_axes_for({"w": np.ones((2, 3))}, np.arange(3), max_size=2))
def test_batch_axes(drawn):
    in_axes, batch = drawn
    f = lambda p, i: p["w"] @ i
    out = ft.vmap(f, in_axes=in_axes)(*batch)
    w, i = batch[0]["w"], batch[1]
    rows = [a if d is None else np.moveaxis(a, d, 0) for a, d in ((w, in_axes[0]["w"]), (i, in_axes[1]))]
    for n, y in enumerate(out):
        lanes = [a if d is None else a[n] for a, d in zip(rows, (in_axes[0]["w"], in_axes[1]))]
        np.testing.assert_allclose(y, lanes[0] @ lanes[1], rtol=1e-12)


def test_batch_axes_need_an_array():
    with pytest.raises(ArgumentError, match="no array"):
        in_axes_for({})


@settings(max_examples=15)
@given(programs(2, kinks=True), broadcastable(2))
def test_programs_are_those_of_numpy(f, xs):
    found, expected = ft.jit(f)(*xs), f.reference(*xs)
    assert type(found) is type(expected) or not isinstance(expected, tuple)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert repr(f).startswith("def program(x0, x1):\n    x2 = ")


@settings(max_examples=2)
@given(programs(1, max_steps=4))
def test_derivatives_of_programs(f):
    check(f, np.array([0.3, -0.7]), laws=["jvp_is_slope", "vjp_is_adjoint"])


@pytest.mark.slow
def test_a_rule_in_company():
    """A rule that is wrong where its operand is not an argument is found, with few operations around it."""

    @ft.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * 3.0 * x,))

    def wrong(f):
        try:
            check(f, np.array([0.5, -0.8]), laws="vjp_is_slope", modes="rev", order=1)
        except LawViolation:
            return True
        return False

    found = hypothesis.find(programs(1, using={cube: 1}), wrong)
    assert len(found.steps) == 1
    assert "cube(x0)" in repr(found)


def test_what_programs_refuse():
    with pytest.raises(ArgumentValueError, match="arity=0"):
        programs(0)
    with pytest.raises(ArgumentValueError, match="takes 1 arrays, got 2"):
        hypothesis.find(programs(1), lambda f: True, settings=UNSHRUNK)(1.0, 2.0)
