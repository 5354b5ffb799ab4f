"""`Function` inside of everything: each transformation, loops, branches, checkpoints, and stacks of them."""

import itertools
import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.array([0.3, 0.9, 1.4])


class SinA(ft.Function):
    """An intermediate value is saved by position, another one as an attribute."""

    @staticmethod
    def forward(ctx, x, n=1.0):
        ctx.save_for_backward(x)
        ctx.c = n * fnp.cos(n * x)
        ctx.n = n
        return fnp.sin(n * x)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.c, None


class SinB(ft.Function):
    """Both rules."""

    @staticmethod
    def forward(x):
        return fnp.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * fnp.cos(x)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * fnp.cos(x)


class SinF(ft.Function):
    """Forward mode only."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return fnp.sin(x)

    jvp = SinB.jvp


class SinV(SinB):
    """With a rule for vmap."""

    @staticmethod
    def vmap(info, in_dims, x):
        return SinB.apply(x), in_dims[0]


SINES = {"A": SinA.apply, "B": SinB.apply, "F": SinF.apply, "V": SinV.apply}


def scanned(sin):
    def f(x):
        (a, _), ys = lax.scan(
            lambda c, k: ((sin(c[0]) * k + c[1], c[1]), sin(c[0])), (x, x * x), fnp.arange(1.0, 4.0)
        )
        return a + fnp.sum(ys, axis=0)

    return f


def looped(sin):
    def f(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, sin(c[1]) + c[1] * 0.5), (0, x))[1]

    return f


PROGRAMS = {
    "alone": lambda sin: sin,
    "twice": lambda sin: lambda x: sin(x * sin(x)),
    "scan": scanned,
    "while": looped,
    "fori": lambda sin: lambda x: lax.fori_loop(0, 3, lambda i, c: sin(c) * x, x),
    "cond": lambda sin: lambda x: lax.cond(fnp.sum(x) > 0.0, lambda x: sin(x) * x, lambda x: x, x),
    "switch": lambda sin: lambda x: lax.switch(1, [lambda x: x, sin, lambda x: -x], x) ** 2,
    "checkpoint": lambda sin: lambda x: ft.checkpoint(lambda x: sin(sin(x) * x))(x),
    "jit": lambda sin: lambda x: ft.jit(lambda x: sin(x) + x)(sin(x)),
    "map": lambda sin: lambda x: lax.map(sin, fnp.stack([x, 2.0 * x]))[1],
    "vmap": lambda sin: lambda x: fnp.sum(ft.vmap(lambda s: sin(s * x))(fnp.arange(1.0, 4.0)), axis=0),
    "inner gradient": lambda sin: lambda x: ft.grad(lambda y: fnp.sum(sin(x * y) * y))(x),
}


OFTEN = ["alone", "twice", "jit", "vmap", "inner gradient"]


@pytest.mark.parametrize(
    ("program", "op"), [(p, "A") for p in PROGRAMS] + [(p, op) for p in [*OFTEN, "scan"] for op in "BFV"]
)
def test_agrees_with_the_operation_it_imitates(program, op):
    own, plain = PROGRAMS[program](SINES[op]), PROGRAMS[program](fnp.sin)
    total = lambda f: lambda x: fnp.sum(f(x) ** 2)
    transformations = {
        "value": lambda f: f,
        "jit": ft.jit,
        "grad": lambda f: ft.grad(total(f)),
        "grad of jit": lambda f: ft.grad(ft.jit(total(f))),
        "jit of grad": lambda f: ft.jit(ft.grad(total(f))),
        "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,))[1],
        "jit of jvp": lambda f: ft.jit(lambda x: ft.jvp(f, (x,), (x,))[1]),
        "vmap": lambda f: lambda x: ft.vmap(f)(fnp.stack([x, 2.0 * x])),
        "vmap of grad": lambda f: lambda x: ft.vmap(ft.grad(total(f)))(fnp.stack([x, 2.0 * x])),
        "grad of vmap": lambda f: ft.grad(lambda x: fnp.sum(ft.vmap(f)(fnp.stack([x, 2.0 * x])) ** 2)),
        "hessian": lambda f: ft.hessian(total(f)),
        "jit of hessian": lambda f: ft.jit(ft.hessian(total(f))),
    }
    for name, transform in transformations.items():
        found = transform(own)(X)
        with ft.disable_jit():  # nothing to compile for what is only compared with
            wanted = transform(plain)(X)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("op", SINES)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_derivatives_against_finite_differences(op, wrap):
    f = lambda x: wrap(SINES[op])(x * x) * x
    eps = 1e-6
    slopes = (f(X + eps) - f(X - eps)) / (2.0 * eps)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(f(x)))(X), slopes, rtol=1e-7)
    np.testing.assert_allclose(ft.jvp(f, (X,), (np.ones(3),))[1], slopes, rtol=1e-7)
    first = ft.grad(lambda x: fnp.sum(f(x)))
    slopes = (first(X + eps) - first(X - eps)) / (2.0 * eps)
    np.testing.assert_allclose(np.diag(ft.hessian(lambda x: fnp.sum(f(x)))(X)), slopes, rtol=1e-6)


@pytest.mark.parametrize("op", SINES)
@pytest.mark.parametrize(
    "stack", sorted(set(itertools.permutations(["grad", "jvp", "jit", "vmap", "grad"], 3)))
)
def test_stacks(op, stack):
    def transform(name, f):
        return {
            "grad": lambda x: ft.grad(lambda x: fnp.sum(f(x)))(x),
            "jvp": lambda x: ft.jvp(f, (x,), (fnp.cos(x),))[1],
            "jit": ft.jit(f),
            "vmap": lambda x: fnp.sum(ft.vmap(lambda s: f(x * s))(fnp.arange(1.0, 3.0)), axis=0),
        }[name]

    own, plain = (lambda x, sin=sin: sin(x) * x for sin in (SINES[op], fnp.sin))
    for name in stack:
        own, plain = transform(name, own), transform(name, plain)
    np.testing.assert_allclose(own(X), plain(X), rtol=1e-9, atol=1e-12)


def kernels(f):
    """The kernels as Python, without the lines above them."""
    return re.sub("(?m)^#.*$", "", ft.jit(f).lower(X).as_text("python")).strip()


def test_compiled_rules_leave_no_trace():
    """What is compiled is the code without the rule."""
    assert kernels(lambda x: SinB.apply(x) * 2.0) == kernels(lambda x: fnp.sin(x) * 2.0)
    own = ft.grad(lambda x: fnp.sum(SinB.apply(x)))
    assert kernels(own) == kernels(ft.grad(lambda x: fnp.sum(fnp.sin(x))))


def test_traced_once_for_each_type():
    traces = []

    class Counted(ft.Function):
        @staticmethod
        def forward(ctx, x, n):
            traces.append(n)
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, None

    f = ft.jit(lambda x: Counted.apply(x, 2) + Counted.apply(x, 2.0))
    f(X)
    assert 2 in traces
    assert 2.0 in traces
    count = len(traces)
    f(2.0 * X)
    assert len(traces) == count


def test_static_arguments_are_told_apart():
    """Equal numbers of different types make different programs."""

    class Kind(ft.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * (10.0 if type(n) is int else 20.0 if type(n) is float else 30.0)

        @staticmethod
        def backward(ctx, g):
            return g, None

    for n, expected in ((1, 10.0), (1.0, 20.0), (True, 30.0)):
        step = lambda c, _, n=n: (Kind.apply(c, n), None)
        assert lax.scan(step, 1.0, None, length=1)[0] == expected
        assert ft.jit(lambda x, n=n: Kind.apply(x, n))(1.0) == expected


def test_disable_jit():
    f = ft.jit(lambda x: fnp.sum(scanned(SinA.apply)(x)))
    compiled = ft.grad(f)(X)
    with ft.disable_jit():
        np.testing.assert_allclose(ft.grad(f)(X), compiled)


def test_float32_and_integers():
    x = X.astype(np.float32)
    for op in SINES.values():
        assert op(x).dtype == np.float32
        gradient = ft.grad(lambda x: fnp.sum(op(x)))(x)  # noqa: B023
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(SinB.apply(np.arange(3)), np.sin(np.arange(3)))
    assert ft.jit(SinB.apply)(2) == np.sin(2.0)


def test_scalars_stay_weak():
    """A number has no dtype of its own behind a rule either."""

    class Double(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    f = lambda x: Double.apply(x) * fnp.ones(2, "float32")
    assert ft.jit(f)(0.5).dtype == np.float32
    assert ft.jvp(f, (0.5,), (1.0,))[0].dtype == np.float32
    assert ft.grad(lambda x: fnp.sum(f(x)))(0.5) == 4.0


def test_empty_arrays_and_scalars():
    for op in SINES.values():
        assert op(np.zeros((0, 3))).shape == (0, 3)
        assert ft.grad(lambda x: fnp.sum(op(x)))(np.zeros((0, 3))).shape == (0, 3)  # noqa: B023
        assert ft.grad(op)(np.array(0.0)) == 1.0
        np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(op(x)))(X[::-1]), np.cos(X[::-1]))  # noqa: B023


def test_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    gradient = ft.grad(lambda x: fnp.sum(SinA.apply(x, 2.0)))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: gradient(X * k), range(40)))
    for k, found in enumerate(results):
        np.testing.assert_allclose(found, 2.0 * np.cos(2.0 * X * k))


def test_in_a_neural_network_layer():
    """A quantised weight with a straight-through gradient, trained by compiled steps."""

    class Quantise(ft.Function):
        @staticmethod
        def forward(ctx, w, levels):
            return fnp.round(w * levels) / levels

        @staticmethod
        def backward(ctx, g):
            return g, None

    random = np.random.default_rng(0)
    x, target = random.normal(size=(64, 3)), np.array([0.5, -0.25, 1.0])
    y = x @ target

    @ft.jit
    def step(w):
        return w - 0.1 * ft.grad(lambda w: fnp.mean((x @ Quantise.apply(w, 4) - y) ** 2))(w)

    w = np.zeros(3)
    for _ in range(200):
        w = step(w)
    np.testing.assert_array_equal(Quantise.apply(w, 4), target)
