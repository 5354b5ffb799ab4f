"""Arguments, trees and symbolic zeros of `custom_vjp`."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

X = np.linspace(0.3, 1.2, 4)
Y = np.linspace(1.0, 2.0, 4)


def with_rule(fun, fwd, bwd, **options):
    defining = {k: options.pop(k) for k in ("symbolic_zeros", "optimize_remat") if k in options}
    f = ft.custom_vjp(fun, **options)
    f.defvjp(fwd, bwd, **defining)
    return f


def twice():
    """The identity, whose gradients come back doubled."""
    return with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: (2.0 * ct,))


def test_names_and_defaults_reach_the_rules_by_position():
    f = with_rule(lambda x, y=3.0: x * y, lambda x, y: (x * y, (x, y)), lambda k, ct: (ct * k[1], ct * k[0]))
    assert ft.grad(f)(2.0) == 3.0
    assert ft.grad(lambda x: f(y=x, x=5.0))(2.0) == 5.0
    assert f(y=2.0, x=4.0) == 8.0
    g = with_rule(
        lambda *xs: xs[0] * xs[1], lambda *xs: (xs[0] * xs[1], xs), lambda k, ct: (ct * k[1], ct * k[0])
    )
    assert ft.grad(g)(2.0, 4.0) == 4.0


@pytest.mark.parametrize(
    "how", [{"nondiff_argnums": (0, 2)}, {"nondiff_argnames": ("s", "u")}, {"nondiff_argnums": (0, -1)}]
)
def test_nondiff_arguments_come_first_in_bwd(how):
    f = with_rule(lambda s, x, u: x, lambda s, x, u: (x, None), lambda s, u, kept, ct: (ct * s * u,), **how)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(3, x, 5)))(X), 15.0)
    assert ft.jit(ft.grad(lambda x: f(3, x, 5)))(1.0) == 15.0


def test_nondiff_functions_and_strings():
    @functools.partial(ft.custom_vjp, nondiff_argnums=(0, 1))
    def apply(fun, mode, x):
        return fun(x) if mode == "call" else x

    apply.defvjp(
        lambda fun, mode, x: (apply(fun, mode, x), x),
        lambda fun, mode, x, ct: (ct * (2.0 if mode == "call" else 3.0),),
    )
    assert apply(fnp.sin, "call", 0.5) == pytest.approx(np.sin(0.5))
    assert ft.grad(lambda x: apply(fnp.sin, "call", x))(0.5) == 2.0
    assert ft.jit(ft.grad(lambda x: apply(fnp.sin, "other", x)))(0.5) == 3.0


@pytest.mark.parametrize("stack", ["jit", "vmap", "jit of vmap", "scan"])
def test_traced_values_may_be_nondiff_arguments(stack):
    f = with_rule(
        lambda x, s: x * s, lambda x, s: (x * s, None), lambda s, kept, ct: (ct * s,), nondiff_argnums=1
    )
    slope = ft.grad(f)
    found = {
        "jit": lambda: [ft.jit(slope)(2.0, s) for s in X],
        "vmap": lambda: ft.vmap(slope, (None, 0))(2.0, X),
        "jit of vmap": lambda: ft.jit(ft.vmap(slope, (None, 0)))(2.0, X),
        "scan": lambda: lax.scan(lambda c, s: (c, slope(2.0, s)), 0.0, X)[1],
    }[stack]()
    np.testing.assert_allclose(found, X)


def test_a_nondiff_argument_that_is_differentiated_is_an_error():
    f = with_rule(
        lambda x, s: x * s, lambda x, s: (x * s, None), lambda s, kept, ct: (ct * s,), nondiff_argnums=1
    )
    with pytest.raises(
        ft.errors.CapturedTracerError,
        match=r"'s' is being differentiated \(by grad\) but stands in nondiff_argnums; pass it as an argument",
    ):
        ft.grad(f, (0, 1))(2.0, 3.0)


@pytest.mark.parametrize("mode", ["grad", "jit", "grad of jit", "vjp", "jvp"])
def test_a_captured_value_that_is_differentiated_is_an_error(mode):
    def outer(w):
        f = with_rule(lambda x: x * w, lambda x: (x * w, x), lambda x, ct: (ct * w,))
        return f(w)

    call = {
        "grad": lambda: ft.grad(outer)(3.0),
        "jit": lambda: ft.jit(ft.grad(outer))(3.0),
        "grad of jit": lambda: ft.grad(ft.jit(outer))(3.0),
        "vjp": lambda: ft.vjp(outer, 3.0),
        "jvp": lambda: ft.jvp(outer, (3.0,), (1.0,)),
    }[mode]
    with pytest.raises(ft.errors.CapturedTracerError, match="'w' is being differentiated"):
        call()


def test_captured_values_that_are_not_differentiated():
    def slope(w, x):
        f = with_rule(lambda x: x * w, lambda x: (x * w, None), lambda kept, ct: (ct * w,))
        return ft.grad(f)(x)

    np.testing.assert_allclose(ft.vmap(slope, (0, None))(X, 2.0), X)
    np.testing.assert_allclose(ft.jit(slope)(3.0, 2.0), 3.0)
    np.testing.assert_allclose(ft.jit(ft.vmap(slope))(X, Y), X)


def test_trees_in_and_out():
    def fun(p, extra):
        return {"sum": p["a"] + p["b"][0], "product": (p["a"] * p["b"][0], extra)}

    def fwd(p, extra):
        return fun(p, extra), p

    def bwd(p, ct):
        prod, rest = ct["product"]
        a = ct["sum"] + prod * p["b"][0]
        return {"a": a, "b": [ct["sum"] + prod * p["a"], None]}, rest

    f = with_rule(fun, fwd, bwd)

    def loss(call):
        def of(p, extra):
            out = call(p, extra)
            return 3.0 * out["sum"] + out["product"][0] ** 2 + 5.0 * out["product"][1]

        return of

    p = {"a": 2.0, "b": [3.0, 4.0]}
    for g in (ft.grad(loss(f), (0, 1)), ft.jit(ft.grad(loss(f), (0, 1))), ft.grad(ft.jit(loss(f)), (0, 1))):
        found, wanted = g(p, 7.0), ft.grad(loss(fun), (0, 1))(p, 7.0)
        assert ft.tree.structure(found) == ft.tree.structure(wanted)
        np.testing.assert_allclose(ft.tree.leaves(found), ft.tree.leaves(wanted))


def test_arguments_and_outputs_that_are_none_or_empty():
    f = with_rule(
        lambda x, n: (x, None, ()), lambda x, n: ((x, None, ()), None), lambda k, ct: (4.0 * ct[0], None)
    )
    assert f(1.0, None) == (1.0, None, ())
    assert ft.grad(lambda x: f(x, None)[0])(1.0) == 4.0
    g = with_rule(lambda: 3.0, lambda: (3.0, None), lambda kept, ct: ())
    assert g() == 3.0
    assert ft.grad(lambda x: x * g())(2.0) == 3.0


class Layer:
    def __init__(self, scale):
        self.scale = scale

    @functools.partial(ft.custom_vjp, nondiff_argnums=0)
    def call(self, x):
        """Scale."""
        return self.scale * x

    def fwd(self, x):
        return self.scale * x, None

    def bwd(self, kept, ct):
        return (10.0 * self.scale * ct,)

    call.defvjp(fwd, bwd)


def test_methods():
    layer = Layer(3.0)
    assert layer.call(2.0) == 6.0
    assert Layer.call(layer, 2.0) == 6.0
    assert ft.grad(layer.call)(2.0) == 30.0
    assert ft.jit(ft.grad(layer.call))(2.0) == 30.0
    assert (layer.call.__name__, layer.call.__doc__) == ("call", "Scale.")
    np.testing.assert_allclose(ft.vmap(lambda s: ft.grad(Layer(s).call)(2.0))(X), 10.0 * X)


def test_it_looks_like_the_function():
    @ft.custom_vjp
    def f(x):
        """What it does."""
        return x

    assert (f.__name__, f.__doc__, f.__module__) == ("f", "What it does.", __name__)
    assert f.__wrapped__(2.0) == 2.0
    assert repr(f) == "<custom_vjp of f>"
    assert f.defvjp(lambda x: (x, None), lambda k, ct: (ct,)) is None


def test_results_share_no_memory_with_arguments():
    f = twice()
    x = np.ones(3)
    y = f(x)
    _, pull = ft.vjp(with_rule(lambda x: x * x, lambda x: (x * x, x), lambda x, ct: (2 * x * ct,)), x)
    x[:] = 100.0
    np.testing.assert_array_equal(y, 1.0)
    np.testing.assert_array_equal(pull(np.ones(3))[0], 2.0)


@ft.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    a: float
    b: float


class Point(NamedTuple):
    a: float
    b: float


def test_namedtuples_and_registered_classes():
    f = with_rule(
        lambda p: Point(p.b, p.a), lambda p: (Point(p.b, p.a), None), lambda k, ct: (Point(10 * ct.b, ct.a),)
    )
    assert ft.grad(lambda p: f(p).a * 2 + f(p).b * 3)(Point(1.0, 2.0)) == Point(30.0, 2.0)
    g = with_rule(lambda p: p.a * p.b, lambda p: (p.a * p.b, p), lambda p, ct: (Params(ct * p.b, None),))
    assert ft.grad(g)(Params(2.0, 3.0)) == Params(3.0, 0.0)


@pytest.mark.parametrize(
    "fun",
    [np.sin, fnp.sin, ft.jit(fnp.sin), functools.partial(lambda n, x: fnp.sin(x), 0)],
    ids=["ufunc", "f", "jit", "partial"],
)
def test_functions_of_other_kinds(fun):
    f = with_rule(fun, lambda x: (np.sin(x), x), lambda x, ct: (2.0 * ct * np.cos(x),))
    assert f(0.5) == pytest.approx(np.sin(0.5))
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        assert g(0.0) == 2.0


def test_a_ufunc_has_its_operands_as_parameters():
    f = ft.custom_jvp(np.multiply)
    with pytest.raises(errors.TangentCountError, match="given 1 rules, but the function has 2 arguments"):
        f.defjvps(lambda t, out, x, y: t * y)
    f.defjvps(lambda t, out, x, y: 10.0 * t * y, None)
    assert ft.grad(f, argnums=(0, 1))(2.0, 3.0) == (30.0, 0.0)
    with pytest.raises(errors.FunctionDefinitionError, match="'dtype'"):
        f(2.0, 3.0, dtype=float)


def test_a_rule_within_a_rule():
    inner = with_rule(lambda x: fnp.sin(x), lambda x: (fnp.sin(x), x), lambda x, ct: (3.0 * ct * fnp.cos(x),))
    outer = ft.custom_jvp(lambda x: 2.0 * inner(x))
    outer.defjvp(lambda primals, tangents: ft.jvp(lambda x: 2.0 * inner(x), primals, tangents))
    for g in (ft.grad(outer), ft.jit(ft.grad(outer)), ft.grad(ft.jit(outer)), ft.jacfwd(outer)):
        assert g(0.0) == 6.0
    renewed = ft.custom_jvp(inner)
    renewed.defjvps(lambda t, out, x: 100.0 * t)
    assert (ft.grad(renewed)(0.0), ft.grad(inner)(0.0)) == (100.0, 3.0)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (1, 1)])
def test_empty_arrays_and_arrays_of_one_element(shape):
    f = with_rule(lambda x: fnp.sin(x), lambda x: (fnp.sin(x), x), lambda x, ct: (ct * fnp.cos(x),))
    x = np.full(shape, 0.5)
    for g in (ft.grad(lambda x: fnp.sum(f(x))), ft.jit(ft.grad(lambda x: fnp.sum(f(x))))):
        np.testing.assert_allclose(g(x), np.cos(x))
    np.testing.assert_allclose(ft.vmap(ft.grad(lambda x: fnp.sum(f(x))))(x), np.cos(x))


def test_float32_and_strides():
    f = with_rule(lambda x: fnp.sin(x), lambda x: (fnp.sin(x), x), lambda x, ct: (ct * fnp.cos(x),))
    x = np.linspace(0.0, 1.0, 10, dtype="float32")[::-2]
    found = ft.grad(lambda x: fnp.sum(f(x)))(x)
    np.testing.assert_allclose(found, np.cos(x), rtol=1e-6)
    assert found.dtype == f(x).dtype == np.float32


def test_a_result_that_the_function_still_holds_is_copied():
    held = np.ones(3)
    f = with_rule(lambda x: held, lambda x: (held, None), lambda kept, ct: (None,))
    outs = [f(1.0), ft.vjp(f, 1.0)[0], ft.jit(f)(1.0)]
    held[0] = 100.0
    for out in outs:
        np.testing.assert_array_equal(out, 1.0)


def test_linear_transposition():
    f = with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: (2.0 * ct,))
    for g in (f, ft.jit(f)):
        assert ft.linear_transpose(g, 1.0)(3.0) == (6.0,)
    assert ft.grad(lambda x: ft.jvp(lambda y: y * x, (2.0,), (f(x),))[1])(3.0) == 9.0


def test_an_exception_in_a_rule_leaves_nothing_behind():
    f = with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: 1 / 0)
    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        with pytest.raises(ZeroDivisionError):
            g(1.0)
    assert ft.grad(with_rule(lambda x: x, lambda x: (x, None), lambda kept, ct: (2.0 * ct,)))(1.0) == 2.0


# --- symbolic zeros ----------------------------------------------------------------------------------------------


def test_symbolic_zeros():
    seen = []

    def fwd(x, n, p):
        seen.append([(type(a), a.perturbed) for a in (x, n, p["k"])])
        out = x.value * n.value * p["k"].value
        return (out, 2.0 * x.value, n.value), (n.value * p["k"].value)

    def bwd(factor, cts):
        seen.append([(type(ct), ct.shape, ct.dtype) for ct in cts])
        return cts[0] * factor, None, None

    f = with_rule(lambda x, n, p: (x * n * p["k"], 2.0 * x, n), fwd, bwd, symbolic_zeros=True)
    assert ft.grad(lambda x: f(x, 3, {"k": 4.0})[0])(2.0) == 12.0
    primals, cts = seen
    assert primals == [(CustomVJPPrimal, True), (CustomVJPPrimal, False), (CustomVJPPrimal, False)]
    assert cts[0] == (ft.Array, (), np.float64)
    assert cts[1:] == [(SymbolicZero, (), np.float64), (SymbolicZero, (), np.int64)]
    for g in (
        ft.jit(ft.grad(lambda x: f(x, 3, {"k": 4.0})[0])),
        ft.grad(ft.jit(lambda x: f(x, 3, {"k": 4.0})[0])),
    ):
        assert g(2.0) == 12.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda x: f(x, 3, {"k": 4.0})[0]))(X), 12.0)


def test_a_symbolic_zero_may_be_returned():
    f = with_rule(
        lambda x: (x, 2.0 * x),
        lambda x: ((x.value, x.value), None),
        lambda k, ct: (ct[1],),
        symbolic_zeros=True,
    )
    assert ft.grad(lambda x: f(x)[0])(2.0) == 0.0


def test_without_symbolic_zeros_cotangents_are_arrays():
    seen = []

    def bwd(kept, cts):
        seen.extend((ct.shape, ct.dtype) for ct in cts)
        return (cts[0] + cts[1],)

    f = with_rule(lambda x: (x, 2.0 * x, 3), lambda x: ((x, 2.0 * x, 3), None), bwd)
    assert ft.grad(lambda x: f(x)[0])(2.0) == 1.0
    assert seen == [((), np.float64), ((), np.float64), ((), np.int64)]


def test_a_primal_among_the_residuals_is_an_error():
    f = with_rule(lambda x: x, lambda x: (x.value, x), lambda k, ct: (ct,), symbolic_zeros=True)
    with pytest.raises(ft.errors.ArgumentError, match=r"CustomVJPPrimal among the residuals: keep x\.value"):
        ft.grad(f)(1.0)


def test_helpers():
    tree = {"a": CustomVJPPrimal(1.0, True), "b": [CustomVJPPrimal(2.0, False)]}
    assert custom_vjp_primal_tree_values(tree) == {"a": 1.0, "b": [2.0]}
    with pytest.raises(ft.errors.ArgumentError, match="expected a tree of CustomVJPPrimal"):
        custom_vjp_primal_tree_values({"a": 1.0})
    zero = zero_from_primal(np.ones((2, 3), "float32"), symbolic_zeros=True)
    assert (type(zero), zero.shape, zero.dtype, zero.ndim, zero.size) == (
        SymbolicZero,
        (2, 3),
        np.float32,
        2,
        6,
    )
    found = zero_from_primal(np.arange(3))
    assert found.dtype == np.int64
    assert found.tolist() == [0, 0, 0]
