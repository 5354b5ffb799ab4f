"""Hooks that read values of the forward pass, which are residuals of the backward pass."""

import functools
import gc
import tracemalloc
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import HookError, NoRuleError, UnexpectedTracerError
from functrans.transforms.linearize_jaxpr import linearize_jaxpr

X = np.array([0.5, -1.0, 2.0])
FORMS = {
    "eager": ft.grad,
    "grad jit": lambda f: ft.grad(ft.jit(f)),
    "jit grad": lambda f: ft.jit(ft.grad(f)),
    "jit grad jit": lambda f: ft.jit(ft.grad(ft.jit(f))),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0)[0],
    "vjp jit": lambda f: lambda x: ft.vjp(ft.jit(f), x)[1](1.0)[0],
    "jit vjp": lambda f: ft.jit(lambda x: ft.vjp(f, x)[1](1.0)[0]),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
}


def early(x, mode):
    """The captured value is there before the value with the hook."""
    s = fnp.sin(x)
    y = 2.0 * x
    ft.register_hook(y, lambda g: g * s, mode=mode)
    return fnp.sum(y * y)


def itself(x, mode):
    y = 2.0 * x
    ft.register_hook(y, lambda g: g * y, mode=mode)
    return fnp.sum(y * y)


def computed_from_it(x, mode):
    y = 2.0 * x
    m = fnp.sin(y)
    ft.register_hook(y, lambda g: g * m, mode=mode)
    return fnp.sum(y * y)


def masked(x, mode):
    y = 2.0 * x
    mask = y > 0
    ft.register_hook(y, lambda g: fnp.where(mask, g, 0.0), mode=mode)
    return fnp.sum(y * y)


def as_a_function(x, mode):
    y = 2.0 * x
    s = fnp.sin(x)
    y = ft.cotangent_hook(y, functools.partial(lambda s, g: g * s, s), mode=mode)
    return fnp.sum(y * y)


def by_a_method(x, mode):
    class Scale:
        def __init__(self, values):
            self.values = {"by": [values]}

        def __call__(self, g):
            return g * self.values["by"][0]

    y = 2.0 * x
    ft.register_hook(y, Scale(fnp.sin(x)).__call__, mode=mode)
    return fnp.sum(y * y)


def on_the_argument(x, mode):
    s = fnp.cos(x)
    ft.register_hook(x, lambda g: g * s, mode=mode)
    return fnp.sum(x * x * x)


#: Programs with their gradients, and the derivatives of these along a vector of ones: at every order the hook meets the
#: whole cotangent of its value, that through what it captured included.
PROGRAMS = {
    "early": (early, lambda x: 8 * x * np.sin(x), lambda x: 8 * np.sin(x) ** 2 + 8 * x * np.cos(x)),
    "itself": (itself, lambda x: 16 * x**2, lambda x: 64 * x**2),
    "computed from it": (
        computed_from_it,
        lambda x: 8 * x * np.sin(2 * x),
        lambda x: 2 * np.sin(2 * x) * (4 * np.sin(2 * x) + 8 * x * np.cos(2 * x)),
    ),
    "masked": (masked, lambda x: 8 * np.maximum(x, 0), lambda x: 8.0 * (x > 0)),
    "as a function": (
        as_a_function,
        lambda x: 8 * x * np.sin(x),
        lambda x: 8 * np.sin(x) ** 2 + 8 * x * np.cos(x),
    ),
    "by a method": (
        by_a_method,
        lambda x: 8 * x * np.sin(x),
        lambda x: 8 * np.sin(x) ** 2 + 8 * x * np.cos(x),
    ),
    "on the argument": (
        on_the_argument,
        lambda x: 3 * x**2 * np.cos(x),
        lambda x: np.cos(x) * (6 * x * np.cos(x) - 3 * x**2 * np.sin(x)),
    ),
}


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient(program, form, mode):
    f, gradient, _ = PROGRAMS[program]
    derivative = FORMS[form](lambda x: f(x, mode))
    for x in (X, -2.0 * X):
        np.testing.assert_allclose(derivative(x), gradient(x), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_second_derivative(program, form):
    """Through what the hook captured, and through its value, whose hook it meets again."""
    f, _, second = PROGRAMS[program]
    inner = FORMS[form](lambda x: f(x, "inline"))
    for outer in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(outer(lambda x: fnp.sum(inner(x)))(X), second(X), rtol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_forward_over_reverse(program):
    """Forward mode meets no hooks: this is the derivative of the gradient as a function."""
    f, gradient, _ = PROGRAMS[program]
    h = 1e-6
    want = (gradient(X + h) - gradient(X - h)) / (2 * h)
    for form in ("eager", "grad jit", "jit grad"):
        inner = FORMS[form](lambda x: f(x, "inline"))
        np.testing.assert_allclose(ft.jvp(inner, (X,), (np.ones(3),))[1], want, rtol=1e-7, atol=1e-8)


def test_a_host_hook_sees_numbers():
    seen = []

    def f(x):
        y, s = 2.0 * x, fnp.sin(x)

        def hook(g):
            seen.append((float(s[1]), np.asarray(s).tolist(), bool((s > 0)[0]), f"{s.shape}"))
            return g * float(fnp.sum(s)) if s[0] > 0 else g

        ft.register_hook(y, hook)
        return fnp.sum(y * y)

    for form in ("grad jit", "jit grad"):
        np.testing.assert_allclose(FORMS[form](f)(X), 8 * X * np.sin(X).sum(), rtol=1e-12)
        np.testing.assert_allclose(FORMS[form](f)(-X), -8 * X, rtol=1e-12)
        assert len(seen) == 2
        np.testing.assert_allclose(seen[0][1], np.sin(X))
        np.testing.assert_allclose(seen[1][0], np.sin(-X)[1])
        assert seen[0][2:] == (True, "(3,)")
        assert seen[1][2:] == (False, "(3,)")
        del seen[:]


def test_a_host_hook_has_no_derivative():
    f = lambda x: early(x, "host")
    for inner in (FORMS["jit grad"](f), FORMS["grad jit"](f)):
        with pytest.raises(NoRuleError, match=r'the hook .* runs as Python .* mode="inline"'):
            ft.grad(lambda x, inner=inner: fnp.sum(inner(x)))(X)


def loop(x, mode):
    def body(c, row):
        h = fnp.sin(c * row)
        mask = h > -0.2
        slope = 1.0 + 0.1 * h
        ft.register_hook(h, lambda g: fnp.where(mask, g * slope * x, 0.0), mode=mode)
        return h, h

    return fnp.sum(lax.scan(body, x, ROWS)[0] ** 2)


ROWS = np.array([[0.9, -0.5, 0.4], [1.2, 0.7, -0.1], [-0.6, 1.1, 0.8]])


def by_hand(x):
    cs = [x]
    for row in ROWS:
        cs.append(np.sin(cs[-1] * row))
    ct = 2 * cs[-1]
    for row, before, h in zip(ROWS[::-1], cs[-2::-1], cs[::-1]):
        ct = np.where(h > -0.2, ct * (1.0 + 0.1 * h) * x, 0.0) * np.cos(before * row) * row
    return ct


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
def test_in_the_body_of_a_scan(form, mode):
    """It captures values of the body, and one from outside."""
    np.testing.assert_allclose(FORMS[form](lambda x: loop(x, mode))(X), by_hand(X), rtol=1e-12)


def test_the_second_derivative_of_a_scan():
    def written_out(x):
        c = x
        for row in ROWS:
            h = fnp.sin(c * row)
            ft.register_hook(h, lambda g, h=h: fnp.where(h > -0.2, g * (1.0 + 0.1 * h) * x, 0.0))
            c = h
        return fnp.sum(c**2)

    v = np.array([1.0, -2.0, 0.5])
    want = ft.grad(lambda x: fnp.vdot(v, ft.grad(written_out)(x)))(X)
    np.testing.assert_allclose(ft.grad(written_out)(X), by_hand(X), rtol=1e-12)
    for form in FORMS:
        inner = FORMS[form](lambda x: loop(x, "inline"))
        np.testing.assert_allclose(
            ft.grad(lambda x, g=inner: fnp.vdot(v, g(x)))(X), want, rtol=1e-10, err_msg=form
        )


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
def test_in_a_while_loop_and_a_branch(form, mode):
    def f(x):
        def body(pair):
            i, c = pair
            h = c * x
            ft.register_hook(h, lambda g: g * fnp.cos(h), mode=mode)
            return i + 1, h

        y = lax.fori_loop(0, 2, lambda i, c: body((i, c))[1], x)

        def branch(y):
            z = y * y
            ft.register_hook(z, lambda g: g * y * x, mode=mode)
            return z

        return fnp.sum(lax.cond(fnp.sum(x) > -10.0, branch, lambda y: y, y))

    x2, x3 = X**2, X**3
    ct = 2 * x3 * x3 * X  # of y, the cotangent of z is 1
    by_2 = ct * np.cos(x3)
    by_1 = by_2 * X * np.cos(x2)
    want = by_1 * X + by_1 * X + by_2 * x2
    np.testing.assert_allclose(FORMS[form](f)(X), want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_under_vmap(program, mode):
    f, gradient, _ = PROGRAMS[program]
    g = lambda x: f(x, mode)
    rows = np.stack([X, 2 * X, -X, X + 1])
    want = gradient(rows)
    np.testing.assert_allclose(ft.vmap(ft.grad(g))(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(g)))(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.grad(ft.jit(g)))(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(ft.jit(ft.grad(g)))(rows), want, rtol=1e-12)
    total = lambda rows: fnp.sum(ft.vmap(g)(rows))
    np.testing.assert_allclose(ft.grad(total)(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(total))(rows), want, rtol=1e-12)
    np.testing.assert_allclose(ft.grad(ft.jit(total))(rows), want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
def test_a_mapped_value_on_a_value_that_is_not_mapped(form, mode):
    scales = np.array([1.0, 2.0, 3.0])
    each = lambda x: ft.vmap(lambda s: ft.cotangent_hook(x, lambda g: g * s, mode=mode) * s)(scales)
    np.testing.assert_allclose(FORMS[form](lambda x: fnp.sum(each(x)))(2.0), np.sum(scales**2))

    def one_hook(x):
        def example(s):
            ft.register_hook(x, lambda g: g * s, mode=mode)
            return x * s

        return fnp.sum(ft.vmap(example)(scales))

    with pytest.raises(HookError, match="captured a value that vmap maps"):
        FORMS[form](one_hook)(2.0)


A = np.array([[0.3, -0.2], [0.1, 0.4]])


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
def test_a_deep_equilibrium(form, mode):
    """z = tanh(A z + x): the hook solves with the Jacobian at the fixed point (as in tutorials of PyTorch)."""

    def f(x):
        step = lambda z: fnp.tanh(A @ z + x)
        z = lax.stop_gradient(
            lax.fori_loop(0, 60, lambda _, z: fnp.tanh(A @ z + lax.stop_gradient(x)), fnp.zeros(2))
        )
        z = step(z)
        z0 = lax.stop_gradient(z)
        slope = (1.0 - fnp.tanh(A @ z0 + lax.stop_gradient(x)) ** 2)[:, None] * A
        ft.register_hook(z, lambda g: fnp.linalg.solve(fnp.eye(2) - slope.T, g), mode=mode)
        return fnp.sum(z**2)

    def by_iteration(x):
        z = np.zeros(2)
        for _ in range(200):
            z = np.tanh(A @ z + x)
        return np.sum(z**2)

    x, h = np.array([0.3, -0.5]), 1e-6
    want = [(by_iteration(x + e) - by_iteration(x - e)) / (2 * h) for e in h * np.eye(2)]
    np.testing.assert_allclose(FORMS[form](f)(x), want, rtol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_deep_equilibrium_by_a_pullback(form):
    """The hook calls the pullback of the forward's last step, which holds traced residuals."""

    def f(x):
        z = lax.stop_gradient(
            lax.fori_loop(0, 60, lambda _, z: fnp.tanh(A @ z + lax.stop_gradient(x)), fnp.zeros(2))
        )
        z0 = z
        _, pull = ft.vjp(lambda z: fnp.tanh(A @ z + lax.stop_gradient(x)), z0)
        z = fnp.tanh(A @ z + x)
        ft.register_hook(z, lambda g: lax.fori_loop(0, 80, lambda _, u: g + pull(u)[0], g))
        return fnp.sum(z**2)

    def by_iteration(x):
        z = np.zeros(2)
        for _ in range(200):
            z = np.tanh(A @ z + x)
        return np.sum(z**2)

    x, h = np.array([0.3, -0.5]), 1e-6
    want = [(by_iteration(x + e) - by_iteration(x - e)) / (2 * h) for e in h * np.eye(2)]
    np.testing.assert_allclose(FORMS[form](f)(x), want, rtol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_hooks_on_several_values(form):
    seen = []

    def f(x):
        y = 2.0 * x
        z = y * x
        s = fnp.sin(z)
        ft.register_multi_grad_hook([y, z], lambda cts: seen.append([np.asarray(ct * s) for ct in cts]))
        ft.register_multi_grad_hook([y, z], lambda ct: seen.append(np.asarray(ct * s)), "any")
        return fnp.sum(z)

    FORMS[form](f)(X)
    s = np.sin(2 * X**2)
    several = next(x for x in seen if isinstance(x, list))
    np.testing.assert_allclose(several, [X * s, s])
    np.testing.assert_allclose(next(x for x in seen if not isinstance(x, list)), s)
    assert len(seen) == 2


@pytest.mark.parametrize("form", FORMS)
def test_what_is_assigned_later_is_an_error_that_names_the_hook(form):
    def f(x):
        y = 2.0 * x
        s = None

        def scaled(g):
            return g * s

        ft.register_hook(y, scaled)
        s = fnp.sin(x)
        return fnp.sum(y * y)

    with pytest.raises(UnexpectedTracerError, match=r"the hook 'scaled' reads .* functools\.partial"):
        FORMS[form](f)(X)


def test_a_hook_is_not_called_in_order_to_find_what_it_captured():
    calls = []

    def f(x):
        s = fnp.sin(x)
        y = ft.cotangent_hook(x * 2.0, lambda g: calls.append(0) or g * s, mode="inline")
        return fnp.sum(y)

    ft.jit(f)(X)
    ft.make_jaxpr(f)(X)
    assert not calls
    ft.jit(ft.grad(f))(X)
    assert len(calls) == 1


def test_of_a_program_that_runs_often():
    """The values are those of the run."""
    f = ft.jit(lambda x: early(x, "host") + masked(x, "inline"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(5):
            x = X + k
            np.testing.assert_allclose(ft.grad(f)(x), 8 * x * np.sin(x) + 8 * np.maximum(x, 0), rtol=1e-12)
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("form", ["eager", "vjp", "grad jit"])
@pytest.mark.parametrize("program", ["computed from it", "as a function"])
def test_what_it_captured_is_freed_with_the_derivative(form, program):
    """Without a garbage collection, which counts objects and not their bytes."""
    x, derivative = fnp.ones(10**5), FORMS[form](lambda x: PROGRAMS[program][0](x, "host"))
    derivative(x)
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            derivative(x)
        assert tracemalloc.get_traced_memory()[0] - before < x.nbytes
    finally:
        tracemalloc.stop()
        gc.enable()


def cubed(ct):
    return ct * ct * ct


def scan_once(f, y):
    return lax.scan(lambda c, _: (f(c), None), y, None, 1)[0]


#: Where the hook is that lies between the value of another hook and what that one captured.
BETWEEN = {
    "in the function": lambda f, y: f(y),
    "in a nested jit": lambda f, y: ft.jit(f)(y),
    "in a jit in a jit": lambda f, y: ft.jit(ft.jit(f))(y),
    "in a scan": scan_once,
    "in a while loop": lambda f, y: lax.fori_loop(0, 1, lambda _, c: f(c), y),
    "in a branch": lambda f, y: lax.cond(y > -100.0, f, lambda y: y, y),
    "in a checkpoint": lambda f, y: ft.checkpoint(f)(y),
}


def chain(hook, attach, layout, on_an_argument=False):
    """y = 2 x with a hook that reads w; z = sin y with `hook`; w = z^2 y; the result is w^2."""

    def middle(y):
        z = fnp.sin(y)
        if attach == "register_hook":
            ft.register_hook(z, hook, mode="inline")
        else:
            z = ft.cotangent_hook(z, hook, mode="inline")
        return z * z * y

    def read(y):
        w = BETWEEN[layout](middle, y)
        ft.register_hook(y, lambda ct: ct * w, mode="inline")
        return w * w

    return lambda x: (ft.jit(read) if on_an_argument else read)(2.0 * x)


def chain_by_hand(hook, x):
    """Its derivatives of order one and two: a hook sees the total cotangent of its value at each order."""
    y = 2.0 * x
    z = np.sin(y)
    w = z * z * y

    def first(y, z, w):
        return 2.0 * (2.0 * w * z * z + hook(4.0 * w * z * y) * np.cos(y)) * w

    h = 1e-6
    of_y = (first(y + h, z, w) - first(y - h, z, w)) / (2.0 * h)
    of_z = (first(y, z + h, w) - first(y, z - h, w)) / (2.0 * h)
    of_w = (first(y, z, w + h) - first(y, z, w - h)) / (2.0 * h)
    total = of_y + of_w * z * z + hook(of_z + of_w * 2.0 * z * y) * np.cos(y)
    return first(y, z, w), 2.0 * total * w


@pytest.mark.wide(3)
@pytest.mark.parametrize("on_an_argument", [False, True], ids=["", "on an argument"])
@pytest.mark.parametrize("layout", [layout for layout in BETWEEN if layout != "in a checkpoint"])
@pytest.mark.parametrize("attach", ["register_hook", "cotangent_hook"])
@pytest.mark.parametrize("hook", [cubed, lambda ct: ct + 1.0], ids=["cubed", "shifted"])
def test_the_second_derivative_with_a_nonlinear_hook_between(hook, attach, layout, on_an_argument):
    f, x = chain(hook, attach, layout, on_an_argument), 0.4
    first, second = chain_by_hand(hook, x)
    for name, form in FORMS.items():
        if name != "checkpoint":  # which computes its values twice, each with its hooks
            gradient = form(f)
            np.testing.assert_allclose(gradient(x), first, rtol=1e-12, err_msg=name)
            np.testing.assert_allclose(ft.grad(gradient)(x), second, rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("on_an_argument", [False, True], ids=["", "on an argument"])
def test_the_second_derivative_with_a_checkpoint_between(on_an_argument):
    """A checkpoint computes its values twice, so a hook in it sees the cotangents of each computation: in all forms."""
    f = chain(cubed, "cotangent_hook", "in a checkpoint", on_an_argument)
    want = ft.grad(ft.grad(f))(0.4)
    for name, form in FORMS.items():
        if name != "checkpoint":
            np.testing.assert_allclose(ft.grad(form(f))(0.4), want, rtol=1e-12, err_msg=name)


def test_forward_over_reverse_with_a_nonlinear_hook_between():
    f, h = chain(cubed, "register_hook", "in a nested jit"), 1e-6
    slope = (chain_by_hand(cubed, 0.4 + h)[0] - chain_by_hand(cubed, 0.4 - h)[0]) / (2.0 * h)
    for gradient in (ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(ft.jvp(gradient, (0.4,), (1.0,))[1], slope, rtol=1e-7)


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "checkpoint"])
def test_what_a_host_call_returned_later(form, mode):
    """It is computed once, so the hook reads what the forward pass had."""
    calls = []

    def f(x):
        y = 2.0 * x
        frozen = lax.stop_gradient(y)
        scale = ft.io_callback(
            lambda y: calls.append(0) or np.cos(y), ft.ShapeDtypeStruct((3,), "f8"), frozen
        )
        ft.register_hook(y, lambda g: g * scale, mode=mode)
        return fnp.sum(y * y)

    np.testing.assert_allclose(FORMS[form](f)(X), 8 * X * np.cos(2 * X), rtol=1e-12)
    assert len(calls) == 1


@pytest.mark.parametrize("mode", ["host", "inline"])
def test_on_an_argument_of_a_program_that_was_compiled_ahead(mode):
    def f(x):
        s = fnp.sin(x)
        ft.register_hook(x, lambda g: g * s, mode=mode)
        return fnp.sum(x * x)

    for ahead in (ft.jit(f).lower(X).compile(), ft.jit(f)):
        np.testing.assert_allclose(ahead(X), np.sum(X * X))
        np.testing.assert_allclose(ft.grad(ahead)(X), 2 * X * np.sin(X), rtol=1e-12)


def test_under_vmap_of_jit_each_example_has_its_own():
    """Also where the value is the same for all, and only what the hook reads later is not."""

    def example(y, row):
        y = 1.0 * y
        z = y * row
        ft.register_hook(y, lambda g: g * z, mode="inline")
        return z

    total = lambda y: fnp.sum(ft.vmap(ft.jit(lambda row: example(y, row)))(X))
    for form in ("eager", "grad jit", "jit grad"):
        np.testing.assert_allclose(FORMS[form](total)(2.0), np.sum(2.0 * X * X), rtol=1e-12)


def test_the_program_of_many_hooks_grows_as_they_do():
    def operands(count):
        def f(x):
            for _ in range(count):
                h = fnp.sin(x)
                w = h * h
                ft.register_hook(h, lambda g, w=w: g * w, mode="inline")
                x = h + w
            return fnp.sum(x)

        halves = linearize_jaxpr(ft.make_jaxpr(f)(X), (True,))
        return sum(len(e.invars) for half in halves[:2] for e in half.eqns)

    assert operands(40) < 2.2 * operands(20)


@pytest.mark.parametrize("form", ["grad jit", "jit grad", "jit grad jit", "vjp jit"])
def test_at_order_two_beside_hooks_on_several_values(form):
    """These only look, at both orders, and leave the hooks that replace cotangents in their places."""
    seen = []

    def f(x, watched):
        y = 2.0 * x
        z = fnp.tanh(y) * x
        s = fnp.sin(z)
        if watched:
            ft.register_multi_grad_hook([y, z], lambda cts: seen.append([(ct * s).shape for ct in cts]))
            ft.register_multi_grad_hook([y, z], lambda ct: seen.append((ct * s).shape), "any")
        ft.register_hook(y, lambda g: g * fnp.cos(s), mode="inline")
        ft.register_hook(z, lambda g: g * s * g, mode="inline")
        return fnp.sum(z * s)

    total = lambda gradient: ft.grad(lambda x: fnp.vdot(X, gradient(x)))(X)
    want = total(ft.grad(lambda x: f(x, False)))
    np.testing.assert_allclose(total(FORMS[form](lambda x: f(x, True))), want, rtol=1e-12)
    assert sorted(map(str, seen)) == sorted(map(str, 2 * [[(3,), (3,)], (3,)]))


def compiled_inside(s):
    return ft.jit(lambda g: g * s)


def looping_inside(s):
    return lambda g: lax.fori_loop(0, 2, lambda i, h: h * s, g)


def branching_inside(s):
    return lambda g: lax.cond(g[0] > 0, lambda h: h * s, lambda h: h - s, g)


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inside", [compiled_inside, looping_inside, branching_inside])
def test_programs_inside_a_hook_read_what_it_captured(inside, form, mode):
    def f(x):
        y = x * x
        ft.register_hook(y, inside(fnp.sin(x)), mode=mode)
        return fnp.sum(3.0 * y)

    x = np.array([0.3, 1.2])
    factor = np.sin(x) ** (2 if inside is looping_inside else 1)
    np.testing.assert_allclose(FORMS[form](f)(x), 6 * x * factor, rtol=1e-12)


@pytest.mark.parametrize("mode", ["host", "inline"])
@pytest.mark.parametrize("form", FORMS)
def test_each_lane_reads_what_is_mapped_and_what_all_lanes_share(form, mode):
    scales, x = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0])

    def f(x):
        shared = fnp.sum(x)

        def lane(a):
            y = x * a
            ft.register_hook(y, lambda g: g * shared * a, mode=mode)
            return y

        return fnp.sum(ft.vmap(lane)(scales))

    np.testing.assert_allclose(FORMS[form](f)(x), np.full(2, np.sum(scales**2) * 1.5))
