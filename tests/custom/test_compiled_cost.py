"""A rule costs nothing once compiled: the kernel is that of the same code without the rule."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.loops.show import show
from functrans.lowering.run.executable import compile_jaxpr
from functrans.transforms.linearize_jaxpr import linearize_jaxpr


def plain(x):
    return fnp.log1p(fnp.exp(x))


class WithContext(ft.Function):
    @staticmethod
    def forward(ctx, x):
        e = fnp.exp(x)
        ctx.save_for_backward(e)
        return fnp.log1p(e)

    @staticmethod
    def backward(ctx, g):
        (e,) = ctx.saved_tensors
        return g / (e + 1.0) * e


class WithSetup(ft.Function):
    @staticmethod
    def forward(x):
        return fnp.log1p(fnp.exp(x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(fnp.exp(inputs[0]))

    @staticmethod
    def backward(ctx, g):
        (e,) = ctx.saved_tensors
        return g / (e + 1.0) * e


with_vjp = ft.custom_vjp(lambda x: fnp.log1p(fnp.exp(x)))


def forward(x):
    e = fnp.exp(x)
    return fnp.log1p(e), e


with_vjp.defvjp(forward, lambda e, g: (g / (e + 1.0) * e,))
with_jvp = ft.custom_jvp(plain)


@with_jvp.defjvp
def pushed(primals, tangents):
    e = fnp.exp(primals[0])
    return fnp.log1p(e), tangents[0] * e / (e + 1.0)


FORMS = [WithContext.apply, WithSetup.apply, with_vjp, with_jvp]


def elementwise(softplus):
    return lambda x: fnp.sum(softplus(x))


def perceptron(softplus):
    return lambda w, x: fnp.mean((softplus(x @ w[0]) @ w[1]) ** 2)


def recurrent(softplus):
    def f(w, xs):
        def step(h, x):
            return softplus(w @ h + x) - 0.7, None

        return fnp.sum(lax.scan(step, fnp.zeros(len(w)), xs)[0])

    return f


def newton(softplus):
    def f(x):
        return lax.while_loop(lambda y: y * y > x, lambda y: 0.9 * softplus(y), x)

    return f


RNG = np.random.default_rng(0)
CASES = {
    "elementwise": (elementwise, (RNG.normal(size=1000),)),
    "perceptron": (
        perceptron,
        ((RNG.normal(size=(50, 40)), RNG.normal(size=40)), RNG.normal(size=(128, 50))),
    ),
    "recurrent": (recurrent, (RNG.normal(size=(8, 8)) / 4, RNG.normal(size=(100, 8)))),
    "while": (newton, (np.float64(0.5),)),
}


def texts(f, args):
    return [show(unit.kernel) for unit in compile_jaxpr(ft.make_jaxpr(f)(*args)).compile().kernels]


@pytest.mark.parametrize("form", FORMS, ids=["context", "setup_context", "custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("case", CASES)
def test_the_kernel_is_the_same(case, form):
    make, args = CASES[case]
    f, g = make(plain), make(form)
    assert texts(g, args) == texts(f, args)
    assert texts(ft.value_and_grad(g), args) == texts(ft.value_and_grad(f), args)


@pytest.mark.parametrize("form", FORMS, ids=["context", "setup_context", "custom_vjp", "custom_jvp"])
def test_of_mapped_functions_too(form):
    x = RNG.normal(size=(20, 30))
    f, g = (ft.vmap(ft.grad(elementwise(s))) for s in (plain, form))
    assert texts(g, (x,)) == texts(f, (x,))


def test_forward_mode_by_its_own_rule():
    x = RNG.normal(size=1000)
    f, g = (lambda x, t, s=s: ft.jvp(s, (x,), (t,)) for s in (plain, with_jvp))
    assert texts(g, (x, x)) == texts(f, (x, x))


class SavesTooMuch(WithContext):
    @staticmethod
    def forward(ctx, x):
        e = fnp.exp(x)
        ctx.save_for_backward(e, fnp.sin(x), None)
        ctx.more = {"cos": fnp.cos(x)}
        return fnp.log1p(e)

    @staticmethod
    def backward(ctx, g):
        e, _, _ = ctx.saved_tensors
        return g / (e + 1.0) * e


@pytest.mark.parametrize("form", [WithContext.apply, WithSetup.apply, SavesTooMuch.apply, with_vjp])
def test_what_backward_does_not_read_is_not_kept(form):
    primal, _, residuals, _ = linearize_jaxpr(ft.make_jaxpr(form)(np.ones(3)), (True,))
    assert len(residuals) == 1
    simplified = compile_jaxpr(primal).compile().simplified
    assert [e.primitive.name for e in simplified.eqns] == ["exp", "log1p"]


def test_a_rule_that_is_there_twice_is_one_kernel():
    x = RNG.normal(size=100)
    jaxpr = ft.make_jaxpr(lambda x: WithContext.apply(x) + WithContext.apply(x))(x)
    simplified = compile_jaxpr(jaxpr).compile().simplified
    assert [e.primitive.name for e in simplified.eqns] == ["exp", "log1p", "add"]
