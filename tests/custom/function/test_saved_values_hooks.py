"""`saved_values_hooks`: what a context saves goes through two functions of the user's."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.array([1.0, 2.0, 3.0])


def saving(record, backward=lambda ctx, g: g, jvp=None, style_b=False, **options):
    """A function of one argument, ``2 x``, whose forward ends with ``record(ctx, x, y)``."""
    if style_b:

        class Saving(ft.Function):
            @staticmethod
            def forward(x):
                return x * 2.0

            @staticmethod
            def setup_context(ctx, inputs, output):
                record(ctx, inputs[0], output)

    else:

        class Saving(ft.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2.0
                record(ctx, x, y)
                return y

    Saving.backward = staticmethod(backward)
    if jvp is not None:
        Saving.jvp = staticmethod(jvp)
    for name, value in options.items():
        setattr(Saving, name, value)
    return Saving.apply


def logged(log):
    def pack(x):
        log.append(("pack", x))
        return x * 10.0

    def unpack(x):
        log.append(("unpack", x))
        return x / 10.0

    return ft.saved_values_hooks(pack, unpack)


KEEP = saving(
    lambda ctx, x, y: ctx.save_for_backward(x, None, y), lambda ctx, g: g * (ctx.saved[0] + ctx.saved[2])
)


def test_hooks():
    log = []
    with logged(log):
        KEEP(X)
        assert log == []  # nothing is differentiated
        _, pull = ft.vjp(KEEP, X)
    assert [name for name, _ in log] == ["pack", "pack"]
    np.testing.assert_allclose(pull(np.ones(3))[0], 3.0 * X)
    assert [name for name, _ in log[2:]] == ["unpack"] * 4  # read twice, two arrays each time
    np.testing.assert_array_equal(log[2][1], 10.0 * X)


def test_hooks_may_keep_anything():
    store = {}

    def pack(x):
        name = f"file{len(store)}"
        store[name] = np.array(x)
        return name

    with ft.saved_values_hooks(pack, store.__getitem__):
        _, pull = ft.vjp(KEEP, X)
    assert set(store) == {"file0", "file1"}
    np.testing.assert_allclose(pull(np.ones(3))[0], 3.0 * X)


def test_hooks_may_keep_trees():
    with ft.saved_values_hooks(lambda x: {"half": x / 2.0, "scale": 2.0}, lambda p: p["half"] * p["scale"]):
        for f in (KEEP, ft.jit(KEEP)):
            np.testing.assert_allclose(ft.grad(lambda x, f=f: fnp.sum(f(x)))(X), 3.0 * X)
            # The derivative of the saved output is that of the rule.
            np.testing.assert_allclose(ft.hessian(lambda x, f=f: fnp.sum(f(x)))(X), np.diag(1.0 + 3.0 * X))
        np.testing.assert_allclose(ft.vmap(ft.grad(KEEP))(X), 3.0 * X)


def test_innermost_hooks_hold():
    outer, inner = [], []
    with logged(outer), logged(inner):
        ft.grad(KEEP)(1.0)
    assert outer == []
    assert len(inner) == 6
    ft.grad(KEEP)(1.0)
    assert len(inner) == 6


def test_hooks_are_traced_once_under_jit():
    log = []
    f = ft.jit(ft.grad(lambda x: fnp.sum(KEEP(x))))
    with logged(log):
        f(X)
        count = len(log)
        assert count > 0
        f(X)
    assert len(log) == count


def test_hooks_must_be_functions():
    with (
        pytest.raises(TypeError, match="expected a function for unpack"),
        ft.saved_values_hooks(lambda x: x, None),
    ):
        pass


@pytest.mark.parametrize(
    "returned",
    ["text", None, [1.0, 2.0, 3.0], {"a": 1.0}, object(), np.array("text"), np.array([None])],
    ids=["text", "None", "list", "dict", "object", "array of text", "array of None"],
)
@pytest.mark.parametrize("form", [ft.grad, lambda f: ft.jit(ft.grad(f))], ids=["eager", "jit"])
def test_an_unpack_hook_that_returns_no_array_is_named(form, returned):
    def unpacked(packed):
        return returned

    square = saving(lambda ctx, x, y: ctx.save_for_backward(x), lambda ctx, g: 2.0 * g * ctx.saved_tensors[0])
    with (
        ft.saved_values_hooks(lambda x: x, unpacked),
        pytest.raises(errors.HookError, match="unpack, 'unpacked', must return the array that pack got"),
    ):
        form(lambda x: fnp.sum(square(x)))(X)


def test_a_pullback_that_holds_nothing_may_be_called_again():
    double = saving(lambda ctx, x, y: None, lambda ctx, g: 2.0 * g)
    _, pull = ft.vjp(double, X, retain=False)
    for _ in range(2):
        np.testing.assert_array_equal(pull(np.ones(3))[0], 2.0 * np.ones(3))
    square = saving(lambda ctx, x, y: ctx.save_for_backward(x), lambda ctx, g: 2.0 * g * ctx.saved_tensors[0])
    _, pull = ft.vjp(square, X, retain=False)
    pull(np.ones(3))
    with pytest.raises(errors.SavedValuesFreedError, match="second time"):
        pull(np.ones(3))
