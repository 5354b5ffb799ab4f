"""Primitives with rules in JAX's registries: derivatives against finite differences, batching against loops."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, extend
from functrans.extend import ad, batching, mlir

X = np.array([0.3, -0.7, 1.9])


@pytest.fixture(scope="module")
def cube():
    """x**3 with a jvp rule that is marked by a factor of 1.0, and a batching rule."""
    prim = extend.core.Primitive("cube")
    prim.def_impl(lambda x: x**3)
    prim.def_abstract_eval(lambda x: x)
    ad.defjvp(prim, lambda t, x: 3.0 * x**2 * t)
    batching.defvectorized(prim)
    return prim


@pytest.fixture(scope="module")
def scaled_sum():
    """A linear map of two results: ``factor * (x + y), x``."""
    prim = extend.core.Primitive("scaled_sum", multiple_results=True)
    prim.def_impl(lambda x, y, *, factor: [factor * (x + y), x])
    prim.def_abstract_eval(lambda x, y, *, factor: [x, x])
    ad.deflinear2(prim, lambda cts, x, y, *, factor: transposed(cts, factor))
    batching.primitive_batchers[prim] = lambda args, dims, *, factor: (
        prim.bind(*[batching.bdim_at_front(x, d, max(x.shape)) for x, d in zip(args, dims)], factor=factor),
        [0, 0],
    )
    return prim


def transposed(cts, factor):
    first, second = map(ad.instantiate_zeros, cts)
    return [factor * first + second, factor * first]


def test_it_computes(cube):
    assert np.allclose(cube.bind(X), X**3)
    assert isinstance(cube.bind(X), ft.Array)
    assert np.allclose(ft.jit(cube.bind)(X), X**3)
    assert "cube" in str(ft.make_jaxpr(cube.bind)(X))
    assert ft.make_jaxpr(cube.bind)(X).eqns[0].primitive is cube


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_derivatives(cube, wrap):
    f = wrap(lambda x: fnp.sum(fnp.sin(cube.bind(x))))
    slope = (f(X + 1e-6) - f(X - 1e-6)) / 2e-6
    assert np.allclose(ft.jvp(f, (X,), (np.ones(3),))[1], slope, rtol=1e-5)
    assert np.allclose(ft.grad(f)(X), np.cos(X**3) * 3 * X**2)
    assert np.allclose(np.diag(ft.hessian(f)(X)), 6 * X * np.cos(X**3) - 9 * X**4 * np.sin(X**3))


def test_vmap(cube):
    xs = np.stack([X, 2 * X])
    assert np.allclose(ft.vmap(cube.bind)(xs), xs**3)
    assert np.allclose(ft.jit(ft.vmap(ft.grad(cube.bind)))(X), 3 * X**2)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_several_results_and_a_transpose(scaled_sum, wrap):
    f = wrap(lambda x, y: scaled_sum.bind(x, y, factor=2.0))
    out, pull = ft.vjp(f, X, X + 1.0)
    assert np.allclose(out[0], 2.0 * (2 * X + 1.0))
    assert np.allclose(out[1], X)
    a, b = pull([np.ones(3), np.full(3, 10.0)])
    assert np.allclose(a, 12.0)
    assert np.allclose(b, 2.0)
    back = ft.linear_transpose(f, X, X)([np.ones(3), np.zeros(3)])
    assert np.allclose(back[0], 2.0)
    assert np.allclose(back[1], 2.0)


def test_vmap_of_several_results(scaled_sum):
    xs = np.stack([X, 2 * X, 3 * X])
    out = ft.vmap(lambda x: scaled_sum.bind(x, x, factor=3.0))(xs)
    assert np.allclose(out[0], 6 * xs)
    assert np.allclose(out[1], xs)


def test_a_batching_rule_learns_the_size_of_the_axis():
    prim = extend.core.Primitive("lanes")
    prim.def_impl(lambda x: x)
    prim.def_abstract_eval(lambda x: x)
    batching.axis_primitive_batchers[prim] = lambda axis, args, dims: (args[0] * axis.size, dims[0])
    assert np.allclose(ft.vmap(prim.bind)(X), 3 * X)


def test_a_lowering_replaces_the_implementation_in_compiled_code():
    prim = extend.core.Primitive("half")
    prim.def_impl(lambda x: x / 2)
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, lambda ctx, x: None)  # code for another compiler
    assert ft.jit(prim.bind)(3.0) == 1.5
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x * 0.25, multiple_results=False))
    assert prim.bind(3.0) == 1.5
    assert ft.jit(lambda x: prim.bind(x))(3.0) == 0.75


def test_what_is_missing_says_so():
    prim = extend.core.Primitive("bare")
    with pytest.raises(errors.NoRuleError, match="'bare': call its def_impl first"):
        prim.bind(1.0)
    with pytest.raises(errors.NoRuleError, match="'bare': call its def_abstract_eval first"):
        ft.make_jaxpr(prim.bind)(1.0)
    with pytest.raises(errors.ArgumentError, match="cannot be replaced"):
        ad.primitive_jvps[ft.lax.sin_p] = lambda primals, tangents: None


def test_registries_are_dictionaries(cube):
    rule = ad.primitive_jvps[cube]
    assert cube in ad.primitive_jvps
    assert callable(rule)
    assert "cube" in repr(ad.primitive_jvps)
    del ad.primitive_jvps[cube]
    try:
        assert cube not in ad.primitive_jvps
        assert cube.jvp is None
    finally:
        ad.primitive_jvps[cube] = rule
