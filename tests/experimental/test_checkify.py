"""Checks as exceptions and as values, under every transformation and kind of control flow."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.trace import current_trace, tracing
from functrans.errors import (
    ArgumentError,
    CheckError,
    ConcretizationTypeError,
    DtypeError,
    FormatError,
    IndexOutOfBoundsError,
    LinAlgError,
    ShapeError,
)
from functrans.experimental import checkify as ck
from functrans.transforms.checks import CheckTrace


def root(x, limit=0.0):
    ck.check(x >= limit, "x must be at least {limit}, got {}", x, limit=limit)
    return fnp.sqrt(x)


def first_line(error):
    message = error.get()
    return None if message is None else message.splitlines()[0]


BAD = "x must be at least 0.0, got -4.0"


@ft.custom_jvp
def by_rule(x):
    return root(x) * 1.0


by_rule.defjvps(lambda t, ans, x: 10.0 * t)


@ft.custom_vjp
def by_pullback(x):
    return root(x) * 1.0


by_pullback.defvjp(lambda x: (root(x) * 1.0, x), lambda x, ct: (10.0 * ct,))

#: Functions of a number that fail with BAD at -4 only.
PLACES = {
    "itself": root,
    "jit": lambda x: ft.jit(root)(x) + 1.0,
    "jit twice": ft.jit(ft.jit(root)),
    "grad": ft.grad(root),
    "grad of jit": ft.grad(ft.jit(root)),
    "second derivative": ft.grad(ft.grad(root)),
    "jvp": lambda x: ft.jvp(root, (x,), (1.0,)),
    "checkpoint": ft.grad(ft.checkpoint(lambda x: root(x) * x)),
    "scan": lambda x: lax.scan(lambda c, a: (c, root(c - a * 0)), x, np.arange(3.0)),
    "later in a scan": lambda x: lax.scan(lambda c, a: (c, root(fnp.where(a == 1, x, 1.0))), x, np.arange(3.0)),
    "nested scan": lambda x: lax.scan(
        lambda c, a: (lax.scan(lambda d, b: (d, root(d)), c, None, length=2)[0], a), x, np.arange(2.0)
    ),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c + root(x), x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, root(c[1]) * 0 + c[1]), (0, x)),
    "condition of while": lambda x: lax.while_loop(lambda c: root(x) * 0 + c < 3, lambda c: c + 1, 0.0),
    "cond": lambda x: lax.cond(x < 100, root, lambda x: root(x - 1e9), x),
    "switch": lambda x: lax.switch(1, [lambda x: root(x - 1e9), root, lambda x: x], x),
    "custom_jvp": by_rule,
    "custom_vjp": by_pullback,
    "grad of custom_vjp": ft.grad(by_pullback),
    "vmap": lambda x: ft.vmap(root)(fnp.stack([fnp.abs(x), x])),
    "vmap of vmap": lambda x: ft.vmap(ft.vmap(root))(fnp.stack([fnp.abs(x), x])[None]),
    "vmap of scan": lambda x: ft.vmap(lambda y: lax.scan(lambda c, a: (c, root(y)), y, np.arange(2.0)))(fnp.stack([x])),
    "vmap of while": lambda x: ft.vmap(
        lambda y: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, root(y)), (0, y))
    )(fnp.stack([1.0 + 0 * x, x])),
    "vmap of cond": lambda x: ft.vmap(lambda y: lax.cond(y < 5, root, lambda y: y, y))(fnp.stack([9.0 + 0 * x, x])),
    "check_error": lambda x: ck.check_error(ck.checkify(root)(x)[0]),
    "throw": lambda x: ck.checkify(root)(x)[0].throw(),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_errors_become_values(name):
    f = PLACES[name]
    checked = ck.checkify(f)
    for run in (checked, ft.jit(checked)):
        good, out = run(4.0)
        assert good.get() is None
        expected = f(4.0)
        for a, b in zip(ft.tree.leaves(out), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b)
        bad, _ = run(-4.0)
        assert first_line(bad) == BAD
        assert "test_checkify.py" in bad.get()
        assert "ck.check(x >= limit" in bad.get()
        with pytest.raises(CheckError, match=r"got -4"):
            bad.throw()


@pytest.mark.parametrize("name", PLACES)
def test_without_checkify_checks_raise(name):
    f = PLACES[name]
    for run in (f, ft.jit(f)):
        with pytest.raises(CheckError, match=r"x must be at least 0\.0, got -4") as caught:
            run(-4.0)
        assert "ck.check(x >= limit" in str(caught.value)
        assert isinstance(caught.value, ck.JaxRuntimeError)
        assert isinstance(caught.value, ft.errors.JaxRuntimeError)


@pytest.mark.parametrize("name", ["itself", "scan", "while", "cond", "custom_jvp", "custom_vjp"])
def test_derivatives_outside(name):
    def f(x):
        out = PLACES[name](x)
        return sum([fnp.sum(y * 1.0) for y in ft.tree.leaves(out)])

    def value(x):
        error, out = ck.checkify(f)(x)
        return out, error

    for run in (ft.grad(value, has_aux=True), ft.jit(ft.grad(value, has_aux=True))):
        slope, error = run(4.0)
        np.testing.assert_allclose(slope, ft.grad(f)(4.0))
        assert error.get() is None
        assert first_line(run(-4.0)[1]) == BAD


def test_mapped_errors():
    xs = np.array([4.0, -1.0, -4.0])
    for run in (ft.vmap(ck.checkify(root)), ft.jit(ft.vmap(ck.checkify(root)))):
        error, out = run(xs)
        assert out.shape == (3,)
        lines = [line for line in error.get().splitlines() if "mapped index" in line]
        assert lines == [
            "at mapped index 1: x must be at least 0.0, got -1.0",
            f"at mapped index 2: {BAD}",
        ]
        with pytest.raises(CheckError, match="mapped index 1"):
            error.throw()
    assert ft.vmap(ck.checkify(root))(np.ones(2))[0].get() is None
    error, _ = ck.checkify(ft.vmap(root))(xs)
    assert first_line(error) == "x must be at least 0.0, got -1.0"
    assert ck.checkify(ft.vmap(root))(np.ones(0))[0].get() is None


def test_the_first_error_in_program_order_wins():
    def f(x):
        def body(c, a):
            ck.check(a < 2, "second: {}", a)
            return c, a

        ck.check(x > 0, "first: {}", x)
        lax.scan(body, x, np.arange(4.0))
        ck.check(x > 1, "third: {}", x)
        return x

    for run in (ck.checkify(f), ft.jit(ck.checkify(f))):
        assert first_line(run(-1.0)[0]) == "first: -1.0"
        assert first_line(run(0.5)[0]) == "second: 2.0"
        assert first_line(run(5.0)[0]) == "second: 2.0"


def test_numbers_known_while_tracing_leave_one_check():
    """What passes is forgotten, and so is what fails after another failure: there may be a million of them."""

    def f(x):
        for limit in range(100):
            ck.check(x < limit, "not below {n}", n=limit)
        return x

    trace = CheckTrace(current_trace.get(), ("user",))
    tracing(trace, f, 30.5)
    (shown,) = *trace.errors.values[0], *trace.errors.values[1:]
    assert trace.errors.code == 1
    assert shown == 0
    assert ck.checkify(f)(30.5)[0].get().startswith("not below 0")
    trace = CheckTrace(current_trace.get(), ("user",))
    tracing(trace, f, -1.0)
    assert trace.errors.checks == ()


def test_a_while_loop_ends_at_its_first_error():
    def f(x):
        def body(i):
            ck.check(i < 1000, "no end after {} iterations", i)
            return i + 1

        return lax.while_loop(lambda i: x > 0, body, 0)

    error, count = ft.jit(ck.checkify(f))(1.0)
    assert first_line(error) == "no end after 1000 iterations"
    assert count == 1001


def test_branches_that_are_not_taken_have_no_errors():
    def f(x):
        return lax.cond(x > 0, lambda x: 1.0 / x + fnp.log(x), lambda x: x, x)

    xs = np.array([2.0, 0.0, -1.0])
    for run in (
        ck.checkify(ft.vmap(f), errors=ck.float_checks),
        ft.vmap(ck.checkify(f, errors=ck.float_checks)),
    ):
        assert run(xs)[0].get() is None
        assert ft.jit(run)(xs)[0].get() is None


def chosen_together(x):
    """The branches run for all lanes, because of the collective."""

    def positive(x):
        ck.check(x > 0, "not positive: {}", x)
        return fnp.arange(5)[x.astype(int)] + lax.psum(x, "lanes")

    return lax.cond(x < 4, positive, lambda x: lax.cond(x > 8, lambda x: x, positive, x), x)


def counted_together(x):
    def body(c):
        ck.check(c < 3, "not small: {}", c)
        return c + 1.0 + 0.0 * lax.psum(x, "lanes")

    return lax.while_loop(lambda c: c < x, body, 0.0 * x)


def looped_together(x):
    def body(i, c):
        ck.check(i < 3, "not small: {}", i)
        return c + 1.0 + 0.0 * lax.psum(x, "lanes")

    return lax.fori_loop(0, x.astype(int), body, 0.0)


@pytest.mark.parametrize(
    ("f", "good", "bad", "message"),
    [
        (chosen_together, [1.0, 9.0, 30.0], [1.0, 9.0, -2.0], "not positive: -2.0"),
        (counted_together, [1.0, 3.0], [1.0, 5.0], "not small: 3.0"),
        (looped_together, [1.0, 3.0], [1.0, 5.0], "not small: 3"),
    ],
)
def test_lanes_that_only_take_part_in_collectives_have_no_errors(f, good, bad, message):
    mapped = ft.vmap(f, axis_name="lanes")
    for run in (mapped, ft.jit(mapped)):
        run(np.array(good))
        with pytest.raises(CheckError, match=message):
            run(np.array(bad))
    for run in (ck.checkify(mapped), ft.jit(ck.checkify(mapped))):
        assert run(np.array(good))[0].get() is None
        assert first_line(run(np.array(bad))[0]) == message
    if f is chosen_together:
        with pytest.raises(IndexOutOfBoundsError, match="index 7 is out of bounds for axis 0 with size 5"):
            ft.jit(mapped)(np.array([1.0, 7.0]))


@pytest.mark.parametrize("loop", [lax.map, lambda f, xs: ft.vmap(f)(xs)])
def test_errors_of_many_inside_another_checkify(loop):
    """`check_error` of errors with axes is an error of the checkify around it, and raises in compiled code."""

    def f(xs):
        ck.check_error(loop(lambda x: ck.checkify(root)(x)[0], xs))
        return xs

    good, bad = np.array([1.0, 2.0]), np.array([1.0, -4.0])
    for run in (ck.checkify(f), ft.jit(ck.checkify(f)), ck.checkify(ft.jit(f))):
        assert run(good)[0].get() is None
        assert first_line(run(bad)[0]) == BAD
    for run in (f, ft.jit(f)):
        run(good)
        with pytest.raises(CheckError, match="got -4"):
            run(bad)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("x", "inner", "outer"), [(1.0, None, None), (0.0, None, "division"), (-1.0, "of y", None)]
)
def test_each_level_has_the_errors_of_its_own_categories(wrap, x, inner, outer):
    """The inner function divides by a number of the outer one, which looks for divisions by zero."""

    def divided(x, y):
        ck.check(x >= 0, "of y")
        return y / x + 1 / x

    def f(x):
        error, out = ck.checkify(lambda y: divided(x, y))(2.0)
        return error, out

    error, (caught, _) = ck.checkify(wrap(f), errors=ck.div_checks | ck.user_checks)(x)
    for found, expected in ((caught, inner), (error, outer)):
        assert (found.get() is None) == (expected is None)
        assert expected is None or expected in found.get()


def test_an_error_in_the_carry_of_a_loop():
    def body(error, x):
        now, out = ck.checkify(root)(x)
        return now, out

    start = ft.jit(ck.checkify(root))(1.0)[0]
    error, _ = ft.jit(lambda e, xs: lax.scan(body, e, xs))(start, np.array([1.0, -4.0]))
    assert start.get() is None
    assert first_line(error) == BAD


# --- automatic checks -----------------------------------------------------------------------------------------

NAN = {
    "log": (fnp.log, -1.0, "nan generated by primitive: log"),
    "sub": (lambda x: x - fnp.inf, np.inf, "nan generated by primitive: sub"),
    "jit": (lambda x: ft.jit(fnp.log)(x) + 1.0, -1.0, "nan generated by primitive: log"),
    "numpy's function": (lambda x: np.log(x), -1.0, "nan generated by primitive: log"),
    "scan": (lambda x: loop_of_logs(x), 1.5, "nan generated by primitive: log"),
    "grad": (ft.grad(lambda x: fnp.sin(x) * x), np.inf, "nan generated by primitive: sin"),
    "cholesky": (lambda x: fnp.linalg.cholesky(x * np.eye(2)), -1.0, "nan generated by primitive: cholesky"),
    "custom rule": (lambda x: ft.grad(by_log)(x), -1.0, "nan generated by primitive: log"),
}  # fmt: skip


def loop_of_logs(x):
    return lax.scan(lambda c, a: (fnp.log(c), a), x, np.arange(3.0))[0]


@ft.custom_jvp
def by_log(x):
    return fnp.log(x)


by_log.defjvps(lambda t, ans, x: t * fnp.log(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAN)
def test_nan_checks(name):
    f, x, message = NAN[name]
    for run in (ck.checkify(f, errors=ck.nan_checks), ft.jit(ck.checkify(f, errors=ck.float_checks))):
        assert first_line(run(x)[0]) == message
        assert run(3.0e5)[0].get() is None


def test_what_is_not_selected_stays_as_it_was():
    out = ck.checkify(fnp.log)(-1.0)
    assert out[0].get() is None
    assert np.isnan(out[1])
    with pytest.raises(IndexOutOfBoundsError):
        ft.jit(ck.checkify(lambda x, i: x[i]))(np.ones(3), np.int64(5))
    with pytest.raises(LinAlgError):
        ck.checkify(fnp.linalg.cholesky)(-np.eye(2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_checks_that_are_not_selected_are_ignored():
    """As in JAX; also inside of a checkify that selects them."""
    for run in (ck.checkify(root, errors=ck.nan_checks), ft.jit(ck.checkify(root, errors=ck.index_checks))):
        assert run(-4.0)[0].get() is None or "nan generated" in run(-4.0)[0].get()
    error, (inner, _) = ck.checkify(ck.checkify(root, errors=ck.index_checks))(-4.0)
    assert error.get() is inner.get() is None


@pytest.mark.parametrize("f", [lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y])
@pytest.mark.parametrize("kind", [float, int])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_div_checks(f, kind):
    x, y = np.array([1, 2], kind), np.array([1, 0], kind)
    for run in (ck.checkify(f, errors=ck.div_checks), ft.jit(ck.checkify(f, errors=ck.div_checks))):
        assert first_line(run(x, y)[0]) == "division by zero"
        assert run(x, x)[0].get() is None


OUT = "index 5 is out of bounds for axis 0 with size 3"
INDEX = {
    "number": (lambda x, i: x[i], OUT),
    "array": (lambda x, i: x[fnp.stack([0 * i, i])], OUT),
    "two axes": (lambda x, i: fnp.outer(x, x)[i - 5, i], "index 5 is out of bounds for axis 1 with size 3"),
    "take": (lambda x, i: fnp.take(x, i), OUT),
    "set": (lambda x, i: fnp.asarray(x).at[i].set(1.0), OUT),
    "add": (lambda x, i: fnp.asarray(x).at[i].add(1.0), OUT),
    "multiply": (lambda x, i: fnp.asarray(x).at[i].multiply(2.0), OUT),
    "scan": (lambda x, i: lax.scan(lambda c, j: (c + x[j * i], c), 0.0, np.arange(2))[0], OUT),
    "vmap": (lambda x, i: ft.vmap(lambda j: x[j])(fnp.stack([0 * i, i])), OUT),
    "grad": (lambda x, i: ft.grad(lambda x: x[i] ** 2)(x), OUT),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEX)
def test_index_checks(name):
    f, message = INDEX[name]
    for run in (ft.jit(ck.checkify(f, errors=ck.index_checks)), ck.checkify(ft.jit(f), errors=ck.all_checks)):
        found = [first_line(run(np.arange(3.0), np.int64(i))[0]) for i in (5,)]
        assert found == [message]
    if name not in ("scan", "two axes"):
        assert ft.jit(ck.checkify(f, errors=ck.index_checks))(np.arange(3.0), np.int64(-3))[0].get() is None


@pytest.mark.parametrize("start", [0, 1, 2, -1, -4])
def test_slices_that_are_clamped(start):
    """Negative starts count from the end."""
    f = lambda x, i: (lax.dynamic_slice(x, [i], (2,)), lax.dynamic_update_slice(x, x[:2], [i]))
    place = start + 3 if start < 0 else start
    wanted = f"dynamic_slice: start {place} is out of bounds for a slice of 2 in axis 0 with size 3"
    for wrap in (lambda g: g, ft.jit):
        error, out = wrap(ck.checkify(f, errors=ck.index_checks))(np.arange(3.0), start)
        assert first_line(error) == wanted if not 0 <= place <= 1 else error.get() is None
        for got, expected in zip(out, f(np.arange(3.0), start)):
            np.testing.assert_array_equal(got, expected)
        update = ck.checkify(lambda x, i: lax.dynamic_update_slice(x, x[:2], [i]), errors=ck.all_checks)
        assert (wrap(update)(np.arange(3.0), start)[0].get() is None) == (0 <= place <= 1)


def test_an_axis_of_size_zero():
    error, _ = ft.jit(ck.checkify(lambda x, i: x[i], errors=ck.index_checks))(np.ones(0), np.int64(0))
    assert first_line(error) == "index 0 is out of bounds for axis 0 with size 0"


# --- arguments --------------------------------------------------------------------------------------------------


def test_values_in_the_message():
    def f(x):
        ck.check(False, "{} {p[a]:.2f} {i}", x, p={"a": x[0]}, i=np.int8(3))

    for run in (ck.checkify(f), ft.jit(ck.checkify(f))):
        assert first_line(run(np.array([1.25, 2.0]))[0]) == "[1.25 2.  ] 1.25 3"


def test_debug_check():
    def f(x):
        ck.debug_check(x > 0, "{}", x)
        return x

    assert f(-1.0) == ft.jit(f)(-1.0) == -1.0
    assert first_line(ft.jit(ck.checkify(ft.jit(f)))(-1.0)[0]) == "-1.0"


def test_static_arguments_and_control_flow_of_python():
    def f(x, n, mode):
        for _ in range(n):
            x = x * 2 if mode == "twice" else x
        return root(x) if x < 0 else x

    checked = ck.checkify(f)
    assert checked(1.0, 3, "twice")[1] == 8.0
    assert first_line(checked(-1.0, 2, mode="twice")[0]) == BAD


def test_bad_arguments():
    with pytest.raises(ShapeError, match=r"pred must be a scalar, got shape \(2,\)"):
        ck.check(np.ones(2, bool), "")
    with pytest.raises(DtypeError, match="pred must be a bool, got float64"):
        ck.check(1.0, "")
    with pytest.raises(FormatError, match=r"check: '\{x\}' asks for 'x'"):
        ck.check(True, "{x}")
    with pytest.raises(ArgumentError, match="errors must be a union"):
        ck.checkify(root, errors={"nans"})
    with pytest.raises(ArgumentError, match="expected a function for fun"):
        ck.checkify(3)
    with pytest.raises(ConcretizationTypeError, match="Return it from the compiled function"):
        ft.jit(lambda x: ck.checkify(root)(x)[0].get())(1.0)
