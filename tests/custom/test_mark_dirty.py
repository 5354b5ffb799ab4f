"""``ctx.mark_dirty``: which output replaces an input, what is stale afterwards, what a host forward may write."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors


class Triple(ft.Function):
    """x**3, as a Function that works in place would have it."""

    @staticmethod
    def forward(ctx, x):
        y = x**3
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g


class Host(ft.Function):
    """The first argument times the second one, written over the first."""

    host = True
    vmap_method = "sequential"

    @staticmethod
    def forward(x, y):
        x *= y
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(inputs[1], output)

    @staticmethod
    def backward(ctx, g):
        y, out = ctx.saved_tensors
        return g * y, g * out / y

    @staticmethod
    def shape(x, y):
        return x


def function(forward, **methods):
    return type("Marked", (ft.Function,), {"forward": staticmethod(forward), **methods})


def marking(*marked, output=None, returns=lambda x, y: 2.0 * x):
    """A Function of x and y that marks these (by name or value) and returns `returns`."""

    def forward(ctx, x, y):
        outs = returns(x, y)
        names = {"x": x, "y": y}
        chosen = [names[m] if isinstance(m, str) else m for m in marked]
        ctx.mark_dirty(*chosen, **({} if output is None else {"output": output(outs)}))
        return outs

    return function(forward)


def fresh(*numbers):
    return fnp.asarray(np.array(numbers))


TRANSFORMED = {
    "value": lambda f, x: f(x),
    "jit": lambda f, x: ft.jit(f)(x),
    "grad": lambda f, x: ft.grad(f)(x),
    "grad of jit": lambda f, x: ft.grad(ft.jit(f))(x),
    "jit of grad": lambda f, x: ft.jit(ft.grad(f))(x),
    "hessian": lambda f, x: ft.hessian(f)(x),
    "jvp": lambda f, x: ft.jvp(f, (x,), (fnp.ones(2),))[1],
    "vmap": lambda f, x: ft.vmap(f)(fnp.stack([x, 2.0 * x])),
    "vmap of grad": lambda f, x: ft.vmap(ft.jit(ft.grad(f)))(fnp.stack([x, 2.0 * x])),
}


# --- values, derivatives, what is stale -------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMED)
def test_marked_it_is_the_same_function(name):
    def marked(x):
        square = x * x  # its derivative needs the old x
        return fnp.sum(square * Triple.apply(x) * square)

    x = fresh(0.5, -1.5)
    expected = TRANSFORMED[name](lambda x: fnp.sum(x**7), x)
    np.testing.assert_allclose(TRANSFORMED[name](marked, fresh(0.5, -1.5)), expected, rtol=1e-12)


def test_an_array_is_consumed_and_others_are_not():
    x = fresh(1.0, 2.0)
    y = Triple.apply(x)
    np.testing.assert_array_equal(y, [1.0, 8.0])
    with pytest.raises(
        errors.StaleValueError, match=r"Array float64\[2\] was donated to Triple.apply"
    ) as error:
        x + 1.0
    assert "y = Triple.apply(x)" in str(error.value)
    array = np.array([1.0, 2.0])
    Triple.apply(array)
    np.testing.assert_array_equal(array, [1.0, 2.0])


def test_an_array_given_to_a_transformation_is_not_consumed():
    x = fresh(1.0, 2.0)
    for name in TRANSFORMED:
        if name != "value":
            TRANSFORMED[name](lambda x: fnp.sum(Triple.apply(x)), x)
    assert not x.is_deleted()


def test_a_donated_ndarray_shows_the_result():
    memory = np.array([1.0, 2.0])
    y = marking("x").apply(ft.donate(memory), 1.0)
    np.testing.assert_array_equal(memory, [2.0, 4.0])
    np.testing.assert_array_equal(y, memory)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: fnp.sum(x),
        lambda x: x * 2.0,
        lambda x: np.sin(x),
        lambda x: x[0],
        lambda x: x,
        lambda x: {"x": x},
        lambda x: Triple.apply(x),
        lambda x: ft.jit(lambda y: x + y)(1.0),
        lambda x: ft.jit(fnp.sin)(x),
        lambda x: ft.lax.fori_loop(0, 2, lambda i, c: c + x, fnp.zeros(2)),
        lambda x: ft.lax.cond(True, lambda: x, lambda: fnp.zeros(2)),
    ],
)
@pytest.mark.parametrize(
    ("transform", "x"),
    [
        (ft.jit, np.ones(2)),
        (ft.vmap, np.ones((3, 2))),
        (lambda f: lambda x: ft.vjp(f, x), np.ones(2)),
        (lambda f: ft.jit(ft.vmap(f)), np.ones((3, 2))),
    ],
)
def test_a_traced_value_is_stale_afterwards(transform, x, use):
    def f(x):
        y = Triple.apply(x)  # the line of the donation
        return y, use(x)

    with pytest.raises(
        errors.StaleValueError, match=r"value float64\[2\] was donated to Triple.apply"
    ) as error:
        transform(f)(x)
    assert "y = Triple.apply(x)  # the line of the donation" in str(error.value)


def test_an_alias_made_before_is_a_value_of_its_own():
    def f(x):
        part = x[:1]
        return fnp.sum(Triple.apply(x)) + part[0]

    np.testing.assert_allclose(ft.jit(ft.grad(f))(np.array([2.0, 1.0])), [13.0, 3.0])


# --- which output -----------------------------------------------------------------------------------------------


def test_the_output_that_is_the_input():
    f = marking("x", returns=lambda x, y: (y + 1.0, x))
    memory = np.array([1.0, 2.0])
    np.testing.assert_array_equal(f.apply(ft.donate(memory), np.zeros(2))[1], [1.0, 2.0])
    np.testing.assert_array_equal(memory, [1.0, 2.0])


def test_the_output_that_is_named():
    f = marking("x", "y", output=lambda outs: (outs[1], outs[0]), returns=lambda x, y: (x + y, x - y))
    a, b = np.array([5.0, 6.0]), np.array([1.0, 2.0])
    f.apply(ft.donate(a), ft.donate(b))
    np.testing.assert_array_equal(a, [4.0, 4.0])
    np.testing.assert_array_equal(b, [6.0, 8.0])


def test_outputs_that_are_each_other_s_input():
    f = marking("x", "y", output=lambda outs: outs, returns=lambda x, y: (y, x))
    a, b = np.array([5.0, 6.0]), np.array([1.0, 2.0])
    outs = f.apply(ft.donate(a), ft.donate(b))
    for x, y in ((a, outs[0]), (b, outs[1])):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(outs, [[1.0, 2.0], [5.0, 6.0]])


def test_the_only_output_of_its_type():
    f = marking("x", returns=lambda x, y: (fnp.sum(x), 2.0 * x, x > y))
    memory = np.array([5.0, 6.0])
    f.apply(ft.donate(memory), 5.5)
    np.testing.assert_array_equal(memory, [10.0, 12.0])


BAD = {
    "not an input": (marking(fnp.ones(2)), "given what is not an input of this call"),
    "a number": (marking(3), "given what is not an input of this call"),
    "twice in one call": (marking("x", "x"), "given an input twice"),
    "no output": (marking("x", returns=lambda x, y: fnp.sum(x)), "must all be outputs of the Function"),
    "another dtype": (marking("x", returns=lambda x, y: x > 1.0), "must all be outputs of the Function"),
    "two outputs": (
        marking("x", returns=lambda x, y: (x + y, x - y)),
        r"cannot tell which output replaces argument 0 of mark_dirty: outputs 0, 1",
    ),
    "two inputs": (marking("x", "y"), "must all be outputs of the Function"),
    "output not returned": (marking("x", output=lambda outs: outs + 1.0), "y is not an output of this call"),
    "output of another type": (
        marking("x", output=lambda outs: outs[1], returns=lambda x, y: (x * 2.0, x[0])),
        r"output 1 cannot replace the input, which is float64\[2\]: it is float64\[\]",
    ),
    "one output for two": (
        marking("x", "y", output=lambda outs: (outs, outs), returns=lambda x, y: x + y),
        "replaces another input, too",
    ),
    "fewer outputs": (marking("x", "y", output=lambda outs: outs), "got 2 inputs, but output names 1"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("transform", [lambda f: f, ft.jit])
def test_bad_marks(name, transform):
    f, message = BAD[name]
    with pytest.raises(errors.FunctionContractError, match=message):
        transform(f.apply)(np.ones(2), np.zeros(2))


def test_called_twice_or_too_late():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_dirty(x)
        return x

    with pytest.raises(errors.FunctionContractError, match="mark_dirty called twice in one forward"):
        function(forward).apply(np.ones(2))
    late = function(lambda ctx, x: 2.0 * x, backward=staticmethod(lambda ctx, g: ctx.mark_dirty(g)))
    with pytest.raises(errors.FunctionContractError, match="mark_dirty can be called in forward and"):
        ft.grad(lambda x: fnp.sum(late.apply(x)))(np.ones(2))


def test_the_same_array_passed_twice():
    x = fresh(1.0, 2.0)
    with pytest.raises(errors.FunctionContractError, match=r"argument 0 \('x'\) is marked as dirty, but the"):
        marking("x", returns=lambda x, y: x + y).apply(x, x)
    with pytest.raises(errors.FunctionContractError, match="the same array is passed twice"):
        ft.jit(lambda x: marking("x", returns=lambda x, y: x + y).apply(x, x))(np.ones(2))


# --- residuals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [ft.grad, lambda f: ft.grad(ft.jit(f)), lambda f: ft.jit(ft.grad(f))])
def test_dirty_residuals(transform):
    def needs_old(x):
        square = x * x
        return fnp.sum(square) + fnp.sum(Triple.apply(x))

    def needs_old_in_a_product(x):
        dot = x @ x
        return dot * fnp.sum(Triple.apply(x))

    def needs_none(x):
        twice = 2.0 * x
        return fnp.sum(twice * Triple.apply(x))

    def unused(x):
        _ = x * x
        return fnp.sum(Triple.apply(x))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(transform(needs_old)(x), 2.0 * x + 3.0 * x**2)
    with ft.config.patch(dirty_residuals="error"):
        for f in (needs_old, needs_old_in_a_product):
            with pytest.raises(
                errors.InplaceModificationError,
                match="one of the variables needed for gradient computation has been modified by an inplace operation: "
                r"value float64\[2\] was donated to Triple.apply",
            ):
                transform(f)(x)
            np.testing.assert_allclose(f(x), f(fresh(1.0, 2.0)))  # the value alone needs none
        np.testing.assert_allclose(transform(needs_none)(x), 8.0 * x**3)
        np.testing.assert_allclose(transform(unused)(x), 3.0 * x**2)


def test_an_earlier_pullback_keeps_the_old_value():
    x = fresh(1.0, 2.0)
    _, pullback = ft.vjp(lambda x: x * x, x)
    Triple.apply(x)
    np.testing.assert_array_equal(pullback(np.ones(2))[0], [2.0, 4.0])


def test_saving_the_old_value_in_setup_context_warns():
    def setup(ctx, inputs, output):
        ctx.mark_dirty(*inputs)
        ctx.save_for_backward(*inputs)

    f = function(
        lambda x: x**2,
        setup_context=staticmethod(setup),
        backward=staticmethod(lambda ctx, g: 2.0 * ctx.saved_tensors[0] * g),
    )
    with pytest.warns(UserWarning, match="backward gets its old value"):
        got = ft.grad(lambda x: fnp.sum(f.apply(x)))(np.array([3.0]))
    np.testing.assert_array_equal(got, [6.0])


# --- forwards on the host ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in TRANSFORMED if n not in ("jvp", "hessian")])
def test_a_host_forward_writes_in_place(name):
    def f(x):
        other = x + 1.0
        return fnp.sum(Host.apply(x * 1.0, other) * 3.0)

    x = fresh(0.5, 2.0)
    expected = TRANSFORMED[name](lambda x: fnp.sum(x * (x + 1.0) * 3.0), x)
    np.testing.assert_allclose(TRANSFORMED[name](f, fresh(0.5, 2.0)), expected, rtol=1e-12)


def test_it_runs_again_once_and_then_at_once():
    runs = []

    class Counted(Host):
        @staticmethod
        def forward(x, y):
            runs.append(x.flags.writeable)
            x += y
            return x

    for _ in range(3):
        x, y = np.ones(2), np.ones(2)
        np.testing.assert_array_equal(Counted.apply(x, y), [2.0, 2.0])
        np.testing.assert_array_equal(x, np.ones(2))
    assert runs == [False, True, True, True]


def test_a_change_that_is_not_marked():
    class Silent(Host):
        @staticmethod
        def forward(x, y):
            x *= 2.0
            y[0] = 0.0
            return x

    for apply in (Silent.apply, ft.jit(Silent.apply)):
        for _ in range(2):
            with pytest.raises(
                errors.FunctionContractError,
                match=r"Silent: forward modified argument 1 \('y'\) without ctx.mark_dirty",
            ):
                apply(np.ones(2), np.ones(2))


def test_other_errors_of_a_host_forward_arrive_as_they_are():
    class Failing(Host):
        @staticmethod
        def forward(x, y):
            raise ValueError("no solution")

    with pytest.raises(ValueError, match="no solution"):
        Failing.apply(np.ones(2), np.ones(2))


def test_the_returned_input_is_the_one_that_replaces():
    class Swap(Host):
        @staticmethod
        def forward(x, y):
            x[:] = y
            return 2.0 * x, x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

    memory = np.zeros(2)
    Swap.apply(ft.donate(memory), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(memory, [1.0, 2.0])


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.grad(lambda x: fnp.sum(Triple.apply(x)))(np.ones(2))
