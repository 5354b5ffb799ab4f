"""while loops as equations: what they are, their kernels, and reverse mode by tapes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core import Literal
from functrans.core.ir import subjaxprs
from functrans.core.tape import TapeAval
from functrans.errors import FunctransError, NoRuleError
from functrans.lowering.jaxpr.simplify import simplify
from functrans.transforms.linearize import linearize


def collatz(n):
    """How many steps to 1; integers only."""
    return lax.while_loop(
        lambda c: c[0] != 1, lambda c: (fnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0)
    )[1]


def shrink(x):
    """x sin-ed until it is small; the number of iterations depends on x."""
    return lax.while_loop(lambda v: fnp.sum(v * v) > 0.5, lambda v: 0.9 * fnp.sin(v), x)


def shrink_slope(x):
    """The derivative of `shrink` for a scalar, by hand."""
    slope = 1.0
    while x * x > 0.5:
        slope, x = slope * 0.9 * np.cos(x), 0.9 * np.sin(x)
    return slope


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for body in subjaxprs(eqn.params):
            yield from equations(body)


def primitives(f, *args):
    return [e.primitive.name for e in equations(ft.make_jaxpr(f)(*args))]


def has_tapes(f, *args):
    return any(isinstance(v.aval, TapeAval) for e in equations(ft.make_jaxpr(f)(*args)) for v in e.outvars)


def test_one_kernel():
    text = ft.jit(ft.grad(lambda x: fnp.sum(shrink(x)))).lower(np.ones(3)).as_text("python")
    assert text.count("def ") == 1
    assert "while True" in text
    assert "host call" not in text


def test_integers():
    assert [int(collatz(n)) for n in (1, 2, 7, 27)] == [0, 1, 16, 111]
    np.testing.assert_array_equal(ft.vmap(collatz)(np.array([1, 2, 7, 27])), [0, 1, 16, 111])


def test_a_loop_without_iterations():
    x = np.full(3, 0.1)
    np.testing.assert_array_equal(ft.jit(shrink)(x), x)
    np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(shrink(x)))(x), 1.0)


@pytest.mark.parametrize("x", [0.1, 0.9, 2.0])
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_derivatives(wrap, x):
    expected = shrink_slope(x)
    assert wrap(ft.grad(shrink))(x) == pytest.approx(expected)
    assert wrap(lambda x: ft.jvp(shrink, (x,), (1.0,))[1])(x) == pytest.approx(expected)
    assert ft.linearize(shrink, x)[1](1.0) == pytest.approx(expected)
    second = (shrink_slope(x + 1e-6) - shrink_slope(x - 1e-6)) / 2e-6
    for slope in (ft.grad(ft.grad(shrink)), ft.grad(lambda x: ft.jvp(shrink, (x,), (1.0,))[1])):
        assert wrap(slope)(x) == pytest.approx(second, rel=1e-6, abs=1e-8)


def test_each_lane_runs_to_its_own_end():
    xs = np.linspace(0.1, 3.0, 7)
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(shrink)))(xs), [shrink_slope(x) for x in xs])


def test_a_lane_that_has_ended_raises_nothing():
    def find(x):
        """The place of the first positive element; the array ends behind it."""
        return lax.while_loop(lambda i: x[i] <= 0.0, lambda i: i + 1, 0)

    rows = np.array([[1.0, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(ft.vmap(find)(rows), [0, 1, 2])
    with pytest.raises(IndexError):
        ft.vmap(find)(-np.ones((2, 3)))


def test_forward_mode_writes_no_tape():
    x = np.ones(3)
    assert not has_tapes(lambda x: ft.jvp(shrink, (x,), (x,)), x)
    assert has_tapes(ft.grad(lambda x: fnp.sum(shrink(x))), x)


def compiled_loops(f, *args):
    return [e for e in equations(simplify(ft.make_jaxpr(f)(*args))) if e.primitive.name == "while"]


def test_a_tape_that_nothing_reads_is_not_written():
    """That of a solver whose result counts as a constant, also under vmap and inside another loop."""

    def f(x):
        return fnp.sum(lax.stop_gradient(shrink(x)) * x)

    def outer(x):
        return lax.fori_loop(0, 3, lambda i, s: s + f(s * x), x)

    x = np.linspace(0.5, 1.5, 3)
    for g in (ft.grad(f), ft.vmap(ft.grad(f)), ft.grad(lambda x: fnp.sum(outer(x)))):
        loops = compiled_loops(g, x)
        assert loops
        assert not any(isinstance(v.aval, TapeAval) for e in loops for v in e.outvars)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(x), shrink(x), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_carries_that_nothing_reads_are_not_computed(n):
    """Those that the condition, the results or other such carries read are."""

    def f(x, y, n):
        def body(c):
            i, steer, read, unread, of_unread = c
            return i + 1, steer + y[0], read * x + i, unread + of_unread @ y, fnp.sin(of_unread)

        start = (0, fnp.float64(0), x, 1.0, y)
        return lax.while_loop(lambda c: (c[0] < n) & (c[1] < 4.5), body, start)

    x, y = np.array([0.5, 2.0]), np.ones(2)
    (loop,) = compiled_loops(lambda *args: f(*args)[2], x, y, n)
    assert [v.aval.shape for v in loop.outvars] == [(), (), (2,), ()]
    (loop,) = compiled_loops(lambda *args: f(*args)[0], x, y, n)
    assert [v.aval.shape for v in loop.outvars] == [(), (), ()]
    (loop,) = compiled_loops(lambda *args: f(*args)[3], x, y, n)
    assert [v.aval.shape for v in loop.outvars] == [(), (), (), (2,), ()]
    steps = min(n, 5)
    expected = x
    for i in range(steps):
        expected = expected * x + i
    for wrap in (ft.jit, lambda g: ft.jit(ft.vmap(g, (0, None, None)))):
        points = x if wrap is ft.jit else np.stack([x, x])
        found = wrap(lambda *args: f(*args)[2])(points, y, n)
        np.testing.assert_allclose(found, np.broadcast_to(expected, points.shape))
        assert np.all(wrap(lambda *args: f(*args)[0])(points, y, n) == steps)


def test_a_loop_of_which_nothing_is_read_keeps_its_effects():
    seen = []

    def body(c):
        ft.debug.callback(seen.append, c[0])
        return c[0] + 1, c[1] * 2

    ft.jit(lambda x: lax.while_loop(lambda c: c[0] < 3, body, (0, x))[0])(np.ones(2))
    assert list(map(int, seen)) == [0, 1, 2]


def test_linear_bodies_keep_nothing():
    def f(x):
        return fnp.sum(lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, 2.0 * c[1]), (0, x))[1])

    assert not has_tapes(ft.grad(f), np.ones(3))
    np.testing.assert_array_equal(ft.grad(f)(np.ones(3)), 32.0)


def test_loops_in_branches_have_tapes_in_both():
    def f(x):
        return fnp.sum(lax.cond(fnp.sum(x) > 1.0, shrink, lambda v: shrink(v * 3.0) * 2.0, x))

    for x in (np.full(3, 0.2), np.full(3, 2.0)):
        expected = ft.grad(lambda x: fnp.sum(shrink(x) if x.sum() > 1 else shrink(x * 3.0) * 2.0))(x)
        np.testing.assert_allclose(ft.jit(ft.grad(f))(x), expected)
        hessian = ft.jit(ft.hessian(f))(x)
        np.testing.assert_allclose(hessian, hessian.T)


@pytest.mark.parametrize("step", [1, -1, 2])
def test_loops_that_count_to_a_limit(step):
    """All comparisons, either way round, with limits known while compiling and not."""
    tests = {
        "<": lambda i, n: i < n,
        "<=": lambda i, n: i <= n,
        ">": lambda i, n: i > n,
        ">=": lambda i, n: n <= i,
    }
    limits = [-3, 0, 2, 7]

    def count(test, start, n):
        return lax.while_loop(
            lambda s: test(s[0], n) & (s[2] < 6) if step == 2 else test(s[0], n), body, start
        )

    def body(s):
        i, y, rounds = s
        return i + step, y.at[i % 5].add(i * 1.0), rounds + 1

    directions = ["<", "<="] if step > 0 else [">", ">="]

    def f(i, limits, known):
        return [
            count(tests[d], (i, np.zeros(5), 0), a if known else b)
            for d in directions
            for a, b in zip([-3, 0, 2, 7], limits)
        ]

    for start in (0, 3):
        with ft.disable_jit():
            expected = f(start, limits, True)
        for known in (True, False):
            got = ft.jit(lambda i, limits: f(i, limits, known))(start, limits)  # noqa: B023
            for x, y in zip(got, expected, strict=True):
                for a, b in zip(x, y, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_a_limit_without_a_next_number():
    def f(i, n):
        return lax.while_loop(lambda i: i <= n, lambda i: i + 1, i), lax.while_loop(
            lambda i: i > n, lambda i: i - 1, i
        )

    top = 2**63 - 1
    assert tuple(map(int, ft.jit(f)(top - 3, top - 1))) == (top, top - 3)
    assert tuple(map(int, ft.jit(f)(top, top - 2))) == (top, top - 2)


@pytest.mark.parametrize("form", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_arrays_that_the_rules_of_a_body_captured(form):
    """Those of the forward pass, and those of the backward pass."""
    ahead, back = np.array([2.0, 3.0]), np.array([5.0, 7.0])

    @ft.custom_vjp
    def scaled(x):
        return x * ahead

    scaled.defvjp(lambda x: (x * ahead, None), lambda _, ct: (ct * back,))

    def f(x):
        return fnp.sum(lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, scaled(c[1])), (0, x))[1])

    value, slope = form(ft.value_and_grad(f))(np.array([0.5, -1.0]))
    np.testing.assert_allclose(value, 0.5 * 2.0**3 - 3.0**3, rtol=1e-14)
    np.testing.assert_allclose(slope, back**3, rtol=1e-14)


@pytest.mark.parametrize("form", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("rule", [False, True], ids=["operations", "a rule"])
def test_what_no_iteration_changes_is_differentiated(rule, form):
    """What a rule keeps of a constant is computed outside of the loop, though its result is not."""

    def times_sine(x, k):
        return x * fnp.sin(k)

    if rule:
        times_sine = ft.custom_vjp(times_sine)
        times_sine.defvjp(
            lambda x, k: (x * fnp.sin(k), (x, fnp.sin(k), fnp.cos(k))),
            lambda kept, ct: (ct * kept[1], ct * kept[0] * kept[2]),
        )

    def f(x, k):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, times_sine(c[1], k)), (0, x))[1]

    by_x, by_k = form(ft.grad(f, (0, 1)))(1.5, 0.7)
    np.testing.assert_allclose(by_x, np.sin(0.7) ** 3, rtol=1e-14)
    np.testing.assert_allclose(by_k, 1.5 * 3 * np.sin(0.7) ** 2 * np.cos(0.7), rtol=1e-14)


def test_tapes_are_no_results():
    x = np.array([0.1, 0.2])
    (loop,) = [e for e in ft.make_jaxpr(shrink)(x).eqns if e.primitive.name == "while"]
    values = [a.value if isinstance(a, Literal) else x for a in loop.invars]
    linear = linearize(
        lambda *xs: list(loop.primitive.bind(*xs, **loop.params)),
        values,
        [isinstance(v, np.ndarray) and v.ndim > 0 for v in values],
    )
    assert len(linear.outs) == len(linear.tangents) == len(loop.outvars)
    for found, v in zip(linear.outs, loop.outvars, strict=True):
        assert np.shape(found) == v.aval.shape


def test_reverse_mode_of_a_body_whose_rule_has_no_forward_mode():
    """A backward pass in Python cannot be transposed to a forward one."""

    @ft.custom_vjp
    def doubled(x):
        return 2.0 * x

    def backward(_, ct):
        return (ft.pure_callback(lambda ct: 5.0 * np.asarray(ct), ft.ShapeDtypeStruct((), float), ct),)

    doubled.defvjp(lambda x: (doubled(x), None), backward)

    def f(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, doubled(c[1])), (0, x))[1]

    with pytest.raises(FunctransError):
        ft.jvp(f, (1.5,), (1.0,))
    np.testing.assert_array_equal(ft.grad(f)(1.5), 125.0)
    np.testing.assert_array_equal(ft.jit(ft.grad(f))(1.5), 125.0)


def in_company(x):
    """A loop whose lanes need each other at each step."""
    step = lambda s: (s[0] + 1, s[1] + 0.1 * lax.psum(fnp.sin(s[1]), "i") * x)
    return lax.while_loop(lambda s: s[0] < x, step, (0, x))


def test_lanes_that_need_each_other():
    x = np.array([1.2, 3.4, 2.5, 0.0])
    steps, y = np.zeros(4), x.copy()
    while (steps < x).any():
        y, steps = np.where(steps < x, y + 0.1 * np.sin(y).sum() * x, y), steps + (steps < x)
    for wrap in (lambda f: f, ft.jit):
        results = wrap(ft.vmap(in_company, axis_name="i"))(x)
        np.testing.assert_array_equal(results[0], steps)
        np.testing.assert_allclose(results[1], y, rtol=1e-14)

    total = lambda x: fnp.sum(ft.vmap(in_company, axis_name="i")(x)[1])
    direction = np.array([0.3, -1.0, 0.7, 0.0])
    slope = (total(x + 1e-6 * direction) - total(x - 1e-6 * direction)) / 2e-6
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(lambda x: ft.jvp(total, (x,), (direction,))[1])(x), slope, rtol=1e-8)
        np.testing.assert_allclose(wrap(ft.grad(total))(x) @ direction, slope, rtol=1e-8)
        with pytest.raises(NoRuleError, match="with a collective in its body"):
            wrap(ft.vmap(ft.grad(lambda x: in_company(x)[1]), axis_name="i"))(x)


def test_a_scan_of_unknown_length_whose_lanes_need_each_other():
    """Its number of iterations is the same in all lanes."""

    def f(x, n):
        return lax.fori_loop(0, n, lambda i, y: fnp.sin(y) + 0.1 * lax.psum(y, "i"), x)

    x = np.array([0.3, -0.2, 1.1])
    y = x
    for _ in range(4):
        y = np.sin(y) + 0.1 * y.sum()
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(wrap(ft.vmap(f, (0, None), axis_name="i"))(x, 4), y, rtol=1e-14)
    with pytest.raises(NoRuleError, match="with a collective in its body"):
        ft.jit(ft.vmap(ft.grad(f), (0, None), axis_name="i"))(x, 4)


@pytest.mark.parametrize("last", [0, 3, 20])
@pytest.mark.parametrize("strict", [True, False])
def test_counting_down(strict, last):
    """A kernel counts; the order of its iterations is that of the program."""

    def f(start, a):
        test = (lambda s: s[0] > last) if strict else (lambda s: last <= s[0])
        step = lambda s: (s[0] - 1, s[1].at[s[0] % 4].set(1.0 * s[0]), 0.5 * s[2] + s[0])
        return lax.while_loop(test, step, (start, a, 0.0))

    i, a, total = 11, np.zeros(4), 0.0
    while i > last or (not strict and i == last):
        a[i % 4], total, i = i, 0.5 * total + i, i - 1
    known = ft.jit(lambda a: f(11, a))
    for results in (known(np.zeros(4)), ft.jit(f)(11, np.zeros(4)), f(11, np.zeros(4))):
        for actual, expected in zip(results, (i, a, total)):
            np.testing.assert_array_equal(actual, expected)
    assert " while " not in known.lower(np.zeros(4)).as_text("python")
