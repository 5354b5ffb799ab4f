"""Rules of the user's under ``config.debug_nans``, and how long ``vjp`` keeps what they save."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp


class MyOp(ft.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * fnp.log(x)


class Constant(ft.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return fnp.full_like(g, np.nan)


@ft.custom_vjp
def doubled(x):
    return 2.0 * x


doubled.defvjp(lambda x: (2.0 * x, x), lambda x, g: (g * fnp.log(x),))

DERIVATIVES = {
    "grad": ft.grad,
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0),
}
X = np.array([1.0, -1.0])


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_backward_that_returns_nan_is_named(name):
    derivative = DERIVATIVES[name]
    programs = {
        "MyOpBackward": lambda w: fnp.sum(MyOp.apply(fnp.asarray(X), w)),
        "ConstantBackward": lambda x: fnp.sum(Constant.apply(x)),
    }
    lines = {
        "MyOpBackward": "return g * w, g * fnp.log(x)",
        "ConstantBackward": "return fnp.full_like(g, np.nan)",
    }
    for backward, program in programs.items():
        assert np.isnan(derivative(program)(X)).any()
        with ft.config.patch(debug_nans=True), pytest.raises(ft.errors.NaNError, match=backward) as error:
            derivative(program)(X)
        assert error.value.source.text == lines[backward]


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_so_is_the_rule_of_a_custom_vjp(name):
    program = DERIVATIVES[name](lambda x: fnp.sum(doubled(x)))
    with ft.config.patch(debug_nans=True), pytest.raises(ft.errors.NaNError, match="NaN") as error:
        program(X)
    assert error.value.source.text.startswith("doubled.defvjp(")


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_saved_values_are_freed(wrap):
    def f(x, w):
        return MyOp.apply(fnp.exp(x), fnp.exp(w))

    ones = np.ones(1000)
    for free in ("first call", "release"):
        _, pull = ft.vjp(wrap(f), ones, ones, retain=free == "release")
        refs = [weakref.ref(a) for e in pull._linear.tape for a in e.args if isinstance(a, np.ndarray)]
        gc.disable()
        try:
            pull(ones)
            if free == "release":
                assert all(r() is not None for r in refs)
                pull.release()
            assert [r() for r in refs] == [None] * len(refs) != []
        finally:
            gc.enable()
        with pytest.raises(ft.FunctionError, match="second time"):
            pull(ones)
