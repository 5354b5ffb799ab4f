"""Passes over programs: what they remove, share and evaluate, and what they leave."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, ir, lax

A = np.array([0.5, 1.0, 2.0])
PASSES = [
    ir.inline,
    ir.eliminate_dead_code,
    ir.eliminate_common_subexpressions,
    ir.fold_constants,
    ir.simplify,
]


def names(program):
    return [e.primitive.name for e in program.eqns]


def bodies(program):
    return [v for e in program.eqns for v in e.params.values() if isinstance(v, ir.Jaxpr)]


def test_inline():
    g = ft.jit(lambda x: ft.jit(np.sin)(x) * 2.0)

    def f(x):
        return lax.fori_loop(0, 2, lambda i, c: g(c), g(x)), ft.checkpoint(g)(x)

    program = ir.inline(ir.trace(f, A))
    assert names(program) == ["sin", "mul", "scan", "checkpoint"]
    assert [names(b) for b in bodies(program)] == [["sin", "mul"], ["sin", "mul"]]


def test_dead_code():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: (c[0] * 2.0, fnp.sin(c[1])), (x, x))[0]

    program = ir.trace(f, A)
    live = ir.eliminate_dead_code(program)
    assert names(bodies(live)[0]) == ["mul"]
    assert np.array_equal(ir.as_function(live)(A), 8 * A)


def test_common_subexpressions():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: fnp.sin(c) + fnp.sin(c), x) + fnp.exp(x) * fnp.exp(x)

    shared = ir.eliminate_common_subexpressions(ir.trace(f, A))
    assert names(shared).count("exp") == 1
    assert names(bodies(shared)[0]).count("sin") == 1


def test_constants():
    table = np.arange(3.0)

    def f(x):
        y = x * fnp.sum(fnp.sqrt(table))
        y = lax.fori_loop(0, 3, lambda i, c: c * fnp.sin(table) + fnp.exp(2.0), y)
        y = lax.cond(y[0] > 0, lambda c: c + fnp.cumsum(table), lambda c: c, y)
        return ft.jit(lambda c: c - fnp.cos(table))(y)

    program = ir.trace(f, A)
    folded = ir.fold_constants(program)
    ir.verify(folded)
    everywhere = {e.primitive.name for e in _all(folded)}
    assert not everywhere & {"sqrt", "sin", "cos", "exp", "cumsum", "reduce_sum"}
    assert np.allclose(ir.as_function(folded)(A), f(A), rtol=1e-14)
    small = ir.fold_constants(program, max_bytes=8)
    assert {"sqrt", "sin", "cos"} <= {e.primitive.name for e in _all(small)}


def _all(program):
    for e in program.eqns:
        yield e
        for v in e.params.values():
            for body in v if isinstance(v, tuple) else (v,):
                if isinstance(body, ir.Jaxpr):
                    yield from _all(body)


def test_what_is_not_evaluated():
    seen = []

    def f(x):
        ft.debug.callback(lambda v: seen.append(float(v)), 1.0)
        table = np.arange(3.0)
        return x + ft.cotangent_hook(fnp.asarray(table), lambda ct: ct) + fnp.linalg.cholesky(-np.eye(3))[0]

    folded = ir.fold_constants(ir.trace(f, A))
    assert {"debug_callback", "hook", "cholesky"} <= set(names(folded))
    assert not seen
    with pytest.raises(errors.LinAlgError):
        ir.as_function(folded)(A)


def test_captured_traced_values_are_not_constants():
    def f(a):
        return ir.as_function(ir.fold_constants(ir.trace(lambda b: fnp.sin(a) * b, 1.0)))(2.0)

    assert np.allclose(ft.grad(f)(0.3), 2 * np.cos(0.3))


def test_simplify():
    def f(x):
        return fnp.sum(fnp.negative(-(x.T.T * 1.0 - 0.0))) ** 1.0

    assert names(ir.simplify(ir.trace(f, np.ones((2, 3))))) == ["reduce_sum"]


def test_simplify_keeps_what_derivatives_need():
    @ft.custom_vjp
    def g(x):
        return fnp.sin(x)

    g.defvjp(lambda x: (fnp.sin(x), x), lambda x, ct: (7.0 * ct,))

    def f(x):
        y = g(x) + lax.stop_gradient(x) * x + ft.cotangent_hook(x, lambda ct: 3.0 * ct)
        return fnp.sum(y), fnp.pad(x, 1), fnp.argmax(x), fnp.argmin(x)

    program = ir.trace(f, A)
    simple = ir.simplify(program)
    for change in (ft.grad, lambda h: ft.vmap(ft.grad(h))):
        x = A if change is ft.grad else np.stack([A, -A])
        expected = change(lambda x: f(x)[0] + fnp.sum(f(x)[1]))(x)
        found = change(lambda x: ir.eval_jaxpr(simple, x)[0] + fnp.sum(ir.eval_jaxpr(simple, x)[1]))(x)
        assert np.allclose(found, expected, rtol=1e-14)
    rows = np.stack([A, -A])
    assert [*ft.vmap(lambda x: ir.eval_jaxpr(simple, x)[2])(rows)] == [2, 0]
    _, tangents = ft.jvp(ir.as_function(simple), (A,), (A,))
    assert np.allclose(tangents[1], np.pad(A, 1))


@pytest.mark.parametrize("change", PASSES)
def test_a_program_that_has_nothing_to_change_is_itself(change):
    program = ir.trace(lambda x: fnp.sin(x) * 2.0, A)
    assert change(program) is program


@pytest.mark.parametrize("change", PASSES)
def test_two_hooks_are_two(change):
    def f(x):
        a, b = ft.cotangent_hook(x, hook), ft.cotangent_hook(x, hook)
        return fnp.sum(a * 2.0 + b * 3.0)

    def hook(ct):
        return ct * ct

    program = change(ir.trace(f, A))
    assert [*ft.grad(ir.as_function(program))(A)] == [13.0] * 3


def test_verify():
    program = ir.trace(lambda x: fnp.sin(x) * 2.0, A)
    ir.verify(program)
    first, second = program.eqns
    for eqns, says in [
        ((second, first), "used but not defined"),
        ((first, first, second), "defined twice"),
        ((first, second.replace(outvars=[ir.Var(A_SHAPE)])), "abstract rule gives"),
    ]:
        with pytest.raises(errors.JaxprError, match=says) as caught:
            ir.verify(program.replace(eqns=eqns))
        assert "test_passes.py" in str(caught.value)


A_SHAPE = ir.trace(np.sin, np.ones(4)).in_avals[0]
