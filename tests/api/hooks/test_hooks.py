"""Hooks on cotangents, against programs whose hooks are written out, and against loops."""

import re
import tracemalloc

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import ArgumentError, ArgumentValueError, GradientError, HookError, NoRuleError


def clipped(ct):
    return fnp.clip(ct, -1.0, 1.0)


def doubled(ct):
    return 2.0 * ct


W = np.arange(6.0).reshape(2, 3) / 5.0 - 0.4
X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


def by_rule(f):
    """The identity whose cotangent passes `f`: what a hook must be equal to."""

    @ft.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, ct: (f(ct),))
    return identity


def layer(w, x, hook_w=lambda w: w, hook_h=lambda h: h):
    h = hook_h(fnp.tanh(hook_w(w) @ x))
    return fnp.sum(h**2)


def hooked(w, x):
    return layer(w, x, lambda w: ft.cotangent_hook(w, clipped), lambda h: ft.cotangent_hook(h, doubled))


# --- the total cotangent of a value -----------------------------------------------------------------------------


FORMS = {"eager": ft.grad, "grad jit": lambda f: ft.grad(ft.jit(f)), "jit grad": lambda f: ft.jit(ft.grad(f))}


@pytest.mark.parametrize("form", FORMS)
def test_register_hook_sees_uses_before_it(form):
    def f(x):
        y = 2.0 * x
        before = y + 1.0
        ft.register_hook(y, doubled)
        return before + 3.0 * y

    def of_the_result(x):
        y = 2.0 * x
        return y + 1.0 + 3.0 * ft.cotangent_hook(y, doubled)

    assert FORMS[form](f)(1.0) == 16.0
    assert FORMS[form](of_the_result)(1.0) == 14.0


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_shares_its_tangent_has_a_hook_of_its_own(form):
    def f(x):
        y = 2.0 * x
        a = y + 1.0
        ft.register_hook(a, doubled)
        return a + 3.0 * y

    def g(x):
        a = (x - 1.0) + 2.0
        ft.register_hook(x, doubled)
        ft.register_hook(a, lambda ct: 5.0 * ct)
        return a * a + x

    assert FORMS[form](f)(1.0) == 10.0
    assert FORMS[form](g)(1.0) == 2.0 * (5.0 * 4.0 + 1.0)


@pytest.mark.parametrize("outer", [lambda f: f, ft.jit])
def test_a_hook_on_an_argument_of_an_inner_jit_sees_all_its_uses(outer):
    seen = []

    @ft.jit
    def inner(x):
        ft.register_hook(x, lambda ct: seen.append(float(ct)) or 2.0 * ct)
        return 3.0 * x

    def f(x):
        y = x * x
        return inner(y) + 10.0 * y + inner(y)

    g = outer(ft.grad(f))
    # Registered twice, by two calls: the second sees what the first returned.
    assert g(1.0) == 16.0 * 2.0 * 2.0 * 2.0
    assert seen == [16.0, 32.0]
    assert g(2.0) == 2.0 * 128.0 / 2.0 * 2.0
    assert len(seen) == 4


def test_a_hook_on_an_argument_of_a_checkpoint_sees_all_its_uses():
    seen = []

    @ft.checkpoint
    def inner(x):
        ft.register_hook(x, lambda ct: seen.append(float(ct)))
        return fnp.sin(x)

    assert ft.grad(lambda x: inner(x) + 2.0 * x)(0.0) == 3.0
    assert seen == [3.0]


@pytest.mark.parametrize("form", FORMS)
def test_a_hook_on_a_captured_value_of_a_loop_runs_once(form):
    """Also if the body is traced twice, since its carry starts as an integer."""
    seen = []

    def f(x):
        y = 2.0 * x

        def body(c, _):
            ft.register_hook(y, lambda ct: seen.append(np.array(ct)))
            return c + fnp.sum(y), None

        return lax.scan(body, 0, None, length=3)[0]

    np.testing.assert_allclose(FORMS[form](f)(np.ones(2)), [6.0, 6.0])
    np.testing.assert_allclose(seen, [[3.0, 3.0]])


@pytest.mark.parametrize("form", FORMS)
def test_a_hook_in_a_loop_runs_last_iteration_first(form):
    seen = []

    def f(x):
        def body(c, _):
            c = c * x
            ft.register_hook(c, lambda ct: seen.append(float(ct)))
            return c, None

        return lax.scan(body, fnp.asarray(1.0), None, length=3)[0]

    assert FORMS[form](f)(2.0) == 12.0
    assert seen == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("form", FORMS)
def test_hooks_run_in_the_order_of_registration(form):
    def f(x):
        ft.register_hook(x, lambda ct: ct + 1.0)
        ft.register_hook(x, lambda ct: 10.0 * ct)
        ft.register_hook(x, lambda ct: None)
        return 2.0 * x

    assert FORMS[form](f)(1.0) == 30.0


@pytest.mark.parametrize("form", FORMS)
def test_a_removed_hook(form):
    """PyTorch's case: one is removed, another registered then."""
    seen = []

    def f(x):
        handle = ft.register_hook(x, lambda ct: 100.0 * ct)
        handle.remove()
        handle.remove()
        with ft.register_hook(x, lambda ct: 100.0 * ct) as handle:
            seen.append(handle)
        ft.register_hook(x, lambda ct: 3.0 * ct)
        return x + 0.0

    assert FORMS[form](f)(1.0) == 3.0
    assert "removed" in repr(seen[0])


@pytest.mark.parametrize("form", ["grad jit", "jit grad"])
def test_a_hook_removed_after_compilation(form):
    handles = []

    def f(x):
        handles.append(ft.register_hook(x, doubled))
        return x * x

    g = FORMS[form](f)
    assert g(1.0) == 4.0
    handles[0].remove()
    assert g(1.0) == 2.0
    assert len(handles) == 1


def test_a_hook_belongs_to_its_value_at_every_level():
    def f(x):
        y = 2.0 * x
        ft.register_hook(y, lambda ct: 3.0 * ct)
        return y**2

    def g(x):
        return ft.cotangent_hook(2.0 * x, lambda ct: 3.0 * ct) ** 2

    for function in (f, g):
        assert ft.grad(ft.grad(function))(1.0) == 72.0
        assert ft.jacfwd(ft.grad(function))(1.0) == 24.0  # tangents are not cotangents


def test_a_host_hook_has_no_derivative():
    def f(x):
        return fnp.sum(ft.cotangent_hook(2.0 * x, doubled) ** 2)

    with pytest.raises(NoRuleError, match='needs mode="inline"'):
        ft.grad(lambda x: fnp.sum(ft.grad(ft.jit(f))(x)))(np.ones(2))


# --- what a hook gets and returns -------------------------------------------------------------------------------


def identity_with(hook):
    return lambda x: fnp.sum(ft.cotangent_hook(x, hook) * 3.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (lambda ct: ct[:1], r"changed the size of value: it got float64\[3\] and returned float64\[1\]"),
        (lambda ct: 1.0, r"changed the size of value: it got float64\[3\] and returned float64\[\]"),
        (
            lambda ct: ct.astype("float32"),
            r"changed the type of value: it got float64\[3\].*astype\('float64'\)",
        ),
        (lambda ct: ct + 1j, "changed the type of value"),
        (lambda ct: "clip", "must return an array or None, but returned 'clip' of type str"),
        (lambda ct: object, "must return an array or None"),
    ],
)
def test_a_bad_result(form, hook, message):
    with pytest.raises(HookError, match=message) as caught:
        FORMS[form](identity_with(hook))(np.ones(3))
    assert "ft.cotangent_hook(x, hook)" in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_a_cotangent_of_rank_0(form):
    assert FORMS[form](lambda x: 5.0 * ft.cotangent_hook(x, lambda ct: min(float(ct), 2.0)))(1.0) == 2.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_python_number_takes_the_dtype_of_the_cotangent(form, dtype):
    x = np.array(1.0, dtype)
    grad = FORMS[form](lambda x: fnp.real(5.0 * ft.cotangent_hook(x, lambda ct: 2.0)))(x)
    assert grad == 2.0
    assert grad.dtype == dtype


def test_a_hook_gets_a_read_only_array():
    stored = []
    f = identity_with(stored.append)
    for form in FORMS.values():
        form(f)(np.ones(3))
    assert all(isinstance(ct, ft.Array) for ct in stored)
    assert len(stored) == 3
    with pytest.raises(ValueError):
        np.asarray(stored[0])[0] = 1.0

    def writes(ct):
        ct[0] = 1.0

    with pytest.raises(ft.errors.ImmutableArrayError) as caught:
        ft.grad(identity_with(writes))(np.ones(3))
    assert caught.value.__notes__


def test_arrays_that_a_hook_stores_or_returns_are_not_shared():
    mine, stored = np.full(3, 7.0), []
    for form in FORMS.values():
        gradient = form(lambda x: fnp.sum(ft.cotangent_hook(x, lambda ct: mine)))(np.ones(3))
        mine[0] = 0.0
        assert gradient[0] == 7.0
        mine[0] = 7.0
    ct = np.ones(3)
    ft.vjp(lambda x: ft.cotangent_hook(x, stored.append), np.ones(3))[1](ct)
    ct[0] = 5.0
    assert stored[0][0] == 1.0


@pytest.mark.parametrize("form", [*FORMS, "scan"])
def test_exceptions_of_a_hook_propagate_unchanged(form):
    class Mine(Exception):
        pass

    def hook(ct):
        raise Mine("here")

    if form == "scan":
        g = ft.grad(
            lambda x: lax.scan(lambda c, _: (ft.cotangent_hook(c * x, hook), None), 1.0, None, length=3)[0]
        )
    else:
        g = FORMS[form](lambda x: ft.cotangent_hook(x, hook))
    with pytest.raises(Mine, match="here") as caught:
        g(2.0)
    (note,) = caught.value.__notes__
    assert "in the hook 'hook' of float64[]" in note
    assert "test_hooks.py" in note


@pytest.mark.parametrize("form", FORMS)
def test_a_hook_that_returns_nan(form):
    with (
        ft.config.patch(debug_nans=True),
        pytest.raises(ft.errors.NaNError, match=r"the hook '\w+' returned NaN"),
    ):
        FORMS[form](lambda x: fnp.sum(ft.cotangent_hook(x, not_a_number)))(np.ones(3))


def not_a_number(ct):
    return ct.at[1].set(np.nan)


class Tripled(ft.Function):
    """A rule with a hook in its forward pass, which first derivatives do not go through."""

    @staticmethod
    def forward(ctx, x):
        x = ft.cotangent_hook(x, doubled)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x * g


@ft.custom_jvp
def pushed(x):
    return x * x


pushed.defjvp(lambda primals, tangents: (pushed(*primals), 3.0 * primals[0] * tangents[0]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rule", [Tripled.apply, pushed])
def test_hooks_around_custom_rules(form, rule):
    seen = []

    def f(x):
        y = ft.cotangent_hook(x, lambda ct: seen.append(float(ct)) or 10.0 * ct)
        z = rule(y)
        ft.register_hook(z, lambda ct: seen.append(float(ct)) or 7.0 * ct)
        return z + y

    assert FORMS[form](f)(2.0) == 10.0 * (7.0 * 6.0 + 1.0)
    assert seen == [1.0, 43.0]


def test_peak_memory_of_a_backward_pass():
    """A hook gets a copy of the cotangent, and what it returns is used as it is: two arrays more, at most."""
    x = np.linspace(0.0, 1.0, 1_000_000)

    def peak(attach):
        with ft.config.patch(checked=False):  # which copies arguments
            _, pull = ft.vjp(ft.jit(lambda x: fnp.sum(fnp.sin(attach(fnp.exp(x))))), x)
            pull(1.0)
            tracemalloc.start()
            pull(1.0)
            used = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return used / x.nbytes

    plain = peak(lambda y: y)
    assert peak(lambda y: ft.cotangent_hook(y, lambda ct: None)) <= plain + 2.1
    assert peak(lambda y: ft.cotangent_hook(y, lambda ct: 2.0 * ct)) <= plain + 3.1
    assert peak(lambda y: ft.cotangent_hook(y, lambda ct: 2.0 * ct, mode="inline")) <= plain + 0.1


@pytest.mark.parametrize("wrap", [ft.jit, ft.checkpoint, lambda f: lambda x: lax.map(f, x[None])[0]])
def test_a_hook_on_an_outer_value_captures_outer_values_alone(wrap):
    """The cotangent of an outer value is complete outside, where the values of an inner function are gone."""

    def f(x, captured_inside):
        y, w = 2.0 * x, fnp.sin(x)

        def inner(z):
            factor = fnp.sin(z) if captured_inside else w
            ft.register_hook(y, lambda ct: ct * factor)
            return z * y

        return wrap(inner)(x)

    np.testing.assert_allclose(ft.grad(f)(0.7, False), 1.4 + 1.4 * np.sin(0.7), rtol=1e-14)
    with pytest.raises(HookError, match=r"captured a value computed in .*Register the hook outside"):
        ft.grad(f)(0.7, True)


def test_bad_arguments():
    with pytest.raises(HookError, match="not being differentiated"):
        ft.register_hook(fnp.ones(3), doubled)
    with pytest.raises(HookError, match="not being differentiated"):
        ft.grad(lambda x, y: ft.register_hook(y, doubled) and x)(1.0, fnp.ones(3))
    with pytest.raises(HookError, match="dtype int64"):
        ft.cotangent_hook(fnp.arange(3), doubled)
    with pytest.raises(HookError, match="dtype bool"):
        ft.jit(lambda x: ft.register_hook(x > 0, doubled))(1.0)
    with pytest.raises(ArgumentError, match="fn must be a function of the cotangent"):
        ft.cotangent_hook(1.0, 3)
    with pytest.raises(ArgumentError, match="belongs to a BackwardState"):
        ft.cotangent_hook(1.0, doubled, "on_x")
    with pytest.raises(ArgumentError, match="the name of a hook"):
        ft.cotangent_hook(1.0, ft.BackwardState())
    with pytest.raises(ArgumentError, match=r"x must be one array, got a list.*tree\.map"):
        ft.register_hook([1.0], doubled)
    with pytest.raises(ft.errors.NoAttributeError, match=r"write functrans\.register_hook\(x, hook\)"):
        ft.grad(lambda x: x.register_hook(doubled))(1.0)
    with pytest.raises(ArgumentValueError, match="mode must be"):
        ft.register_hook(1.0, doubled, mode="compiled")


def test_complex_cotangents():
    f = lambda hook: lambda z: fnp.abs(hook(z * z)) ** 2
    z = 1.0 + 2.0j
    want = ft.grad(f(by_rule(lambda ct: ct * 1j)))(z)
    for form in FORMS.values():
        np.testing.assert_allclose(
            form(f(lambda y: ft.cotangent_hook(y, lambda ct: ct * 1j)))(z), want, rtol=1e-12
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3)])
def test_shapes_and_dtypes(shape, dtype):
    x, seen = np.ones(shape, dtype), []
    _out, pull = ft.vjp(ft.jit(lambda x: ft.cotangent_hook(x, lambda ct: seen.append(ct) or 2 * ct)), x)
    (ct,) = pull(np.full(shape, 3, dtype))
    assert ct.shape == shape
    assert ct.dtype == dtype
    assert (ct == 6).all()
    assert seen[0].shape == shape
    assert seen[0].dtype == dtype


# --- what it costs ----------------------------------------------------------------------------------------------


def test_a_hook_that_is_not_differentiated_leaves_kernels_as_they_are():
    def text(f, *args):
        def run(*args):
            return f(*args)

        return re.sub("(?m)^#.*$", "", ft.jit(run).lower(*args).as_text("python"))

    assert text(lambda w, x: layer(w, x), W, X[0]) == text(hooked, W, X[0])
    scan = lambda hook: lambda w: lax.scan(lambda c, _: (hook(c) * w, None), 1.0, None, length=9)[0]
    assert text(scan(lambda c: c), 2.0) == text(scan(lambda c: ft.cotangent_hook(c, doubled)), 2.0)
    # Under `vmap` each example has a hook on its own copy of the weights, which is never made.
    batched = lambda f: lambda w, X: ft.vmap(f, (None, 0))(w, X)
    assert text(batched(layer), W, X) == text(batched(hooked), W, X)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_hook_of_python_cannot_be_transposed(compiled):
    def f(x):
        return ft.cotangent_hook(2.0 * x, lambda ct: 3.0 * ct) * x

    _, back = ft.vjp(ft.jit(f) if compiled else f, np.ones(3))
    with pytest.raises(
        GradientError, match=r"hook '<lambda>' runs as Python.*cannot be transposed.*mode='inline'"
    ):
        ft.linear_transpose(back, np.ones(3))((np.ones(3),))
