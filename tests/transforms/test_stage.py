"""`stage`: a function of primitives becomes a jaxpr."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.aval import Aval, aval_of
from functrans.core.evaluation import jaxpr_as_fun
from functrans.core.ir import Literal
from functrans.core.primitive import Effect
from functrans.core.trace import current_trace, eval_trace
from functrans.errors import DtypeError, UnexpectedTracerError
from functrans.primitives.elementwise.arithmetic import mul_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import cos_p, sin_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.transforms.stage import stage

X = np.array([0.3, -1.1, 2.0])
VECTOR = aval_of(X)


def wave(x, y):
    s = sin_p.bind(x)
    return [mul_p.bind(s, y), s]


def staged(f=wave, *avals):
    return stage(f, avals or (VECTOR, VECTOR), "wave")


def test_stage_makes_an_equation_of_everything_bound():
    w = np.ones(3)

    def f(x):
        known = exp_p.bind(np.zeros(3))
        dead = cos_p.bind(x)  # noqa: F841
        return [mul_p.bind(mul_p.bind(x, known), w), 2.0, x, w]

    jaxpr = stage(f, [VECTOR])
    assert [e.primitive.name for e in jaxpr.eqns] == ["exp", "mul", "mul"]
    assert len(jaxpr.consts) == 2
    assert jaxpr.consts[1] is not w
    assert type(jaxpr.outvars[1]) is Literal
    assert jaxpr.outvars[2] is jaxpr.invars[0]
    assert jaxpr.outvars[3] is jaxpr.constvars[1]


def test_stage_keeps_dead_equations_with_effects():
    i = Aval((2,), np.dtype(int))

    def f(x, i):
        for mode in ("raise", "clip"):
            gather_p.bind(x, i, axes=(0,), mode=mode, fill_value=None)
        return [x]

    jaxpr = stage(f, [VECTOR, i])
    assert [e.effects for e in jaxpr.eqns] == [Effect.RAISE]


def test_stage_refuses_tracers_of_traces_that_are_over():
    stored = []
    stage(lambda x: stored.append(x) or [x], [VECTOR], "first")
    with pytest.raises(UnexpectedTracerError, match="a leak from jit of first"):
        stage(lambda x: [mul_p.bind(x, stored[0])], [VECTOR])
    with pytest.raises(UnexpectedTracerError, match="first"):
        sin_p.bind(stored[0])
    assert current_trace.get() is eval_trace


def test_captured_constants_of_the_other_byte_order_become_native():
    values = np.array([1.5, -2.0])
    jaxpr = ft.make_jaxpr(lambda x: x * fnp.asarray(values.astype(">f8")) + values.astype(">f4"))(np.ones(2))
    assert all(c.dtype.isnative for c in jaxpr.consts)
    np.testing.assert_array_equal(ft.jit(lambda x: x * values.astype(">f8"))(np.ones(2)), values)
    other = np.array([1, 2]).astype(np.dtype("i4").newbyteorder())
    staged = stage(lambda x: [x, other], [aval_of(values)], "constants")
    (constant,) = staged.consts
    assert constant.dtype.isnative
    np.testing.assert_array_equal(constant, other)


def hooked(x):
    ft.register_hook(x, lambda g: 3.0 * g)
    return fnp.sin(x)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda: ft.grad(lambda x: jaxpr_as_fun(ft.make_jaxpr(hooked)(x))(x)[0])(1.0),
        lambda: ft.grad(ft.aot.aot_function(hooked))(1.0),
        lambda: ft.vjp(ft.jit(hooked), 1.0)[1](1.0)[0],
        lambda: ft.grad(lambda x: lax.scan(lambda c, _: (hooked(c), None), x, None, length=1)[0])(1.0),
        lambda: ft.grad(ft.checkpoint(hooked))(1.0),
        lambda: ft.grad(lambda x: lax.cond(x > 0, hooked, fnp.cos, x))(1.0),
    ],
    ids=["make_jaxpr", "aot", "jit", "scan", "checkpoint", "cond"],
)
def test_a_hook_on_an_argument_counts_once_however_the_function_is_staged(derivative):
    np.testing.assert_allclose(derivative(), 3.0 * np.cos(1.0), rtol=1e-14)


def test_errors_name_the_arguments_of_all_functions_around():
    def inner(c, a):
        return c if c * a > 0 else a

    def outer(a, b):
        return ft.jit(lambda c: inner(c, a))(b)

    message = r"depends on argument 0 \('c'\), argument 0 \('a'\) of outer"
    with pytest.raises(ft.errors.ConcretizationTypeError, match=message):
        ft.jit(outer)(1.0, 2.0)
    with pytest.raises(ft.errors.ConcretizationTypeError, match=message):
        ft.grad(ft.jit(outer))(1.0, 2.0)
    with pytest.raises(ft.errors.ConcretizationTypeError, match=r"argument 0 \('c'\), argument 0 \('x'\)\)"):
        ft.jit(lambda x: ft.grad(lambda y: ft.jit(lambda c: inner(c, y))(x))(x))(1.0)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="a long double is a double here")
def test_a_captured_constant_has_a_dtype_that_kernels_know():
    with pytest.raises(DtypeError, match="captured constant"):
        stage(lambda x: [mul_p.bind(x, np.ones(3, np.longdouble))], [VECTOR], "f")
