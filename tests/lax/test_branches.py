"""`cond`, `switch` and `while_loop` are Python's `if` and `while`, for trees and weak types, in any transformation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, lax
from functrans.testing import check


def plain(f):
    return f


def stepped(f):
    def run(*args):
        with ft.disable_jit():
            return f(*args)

    return run


WAYS = pytest.mark.parametrize("way", [plain, ft.jit, stepped], ids=["eager", "jit", "disable_jit"])
POINTS = np.array([-2.0, -0.5, 0.5, 3.0])


def root(a):
    return lax.while_loop(lambda x: fnp.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)


def halvings(x):
    """A number halved while it is above 1, and how often."""

    def body(state):
        return {"x": 0.5 * state["x"], "n": state["n"] + 1}

    return lax.while_loop(lambda s: s["x"] > 1.0, body, {"x": x, "n": 0})


@WAYS
def test_while_loop_is_the_loop(way):
    for a in (0.3, 1.0, 2.0, 1e4):
        assert_allclose(way(root)(a), np.sqrt(a))
    for x, n in [(0.5, 0), (3.0, 2), (100.0, 7)]:
        found = way(halvings)(x)
        assert found["n"] == n
        assert found["n"].dtype == np.int64
        assert found["x"] == x / 2**n


@WAYS
def test_while_loop_takes_on_dtypes(way):
    f = way(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + x, 0))
    assert f(np.float32(0.5)).dtype == np.float32
    assert f(0.5).dtype == np.float64
    assert f(np.int32(1)).dtype == np.int32
    assert way(lambda: lax.while_loop(lambda c: False, lambda c: c, 1.5))() == 1.5


@WAYS
def test_while_loop_over_buffers_and_captured_values(way):
    table = np.linspace(0.0, 1.0, 100)

    def f(x, limit):
        def body(state):
            i, y = state
            return i + 1, (y * x + table).at[i].set(0.0)

        return lax.while_loop(lambda s: fnp.sum(s[1]) < limit, body, (0, fnp.zeros(100)))

    i, y = 0, np.zeros(100)
    while y.sum() < 200.0:
        y = y * 0.9 + table
        y[i] = 0.0
        i += 1
    found = way(f)(0.9, 200.0)
    assert found[0] == i
    assert_allclose(found[1], y)


@pytest.mark.slow
def test_derivatives_of_while_loop():
    assert_allclose(ft.grad(root)(2.0), 0.5 / np.sqrt(2))
    assert_allclose(ft.jit(ft.grad(root))(2.0), 0.5 / np.sqrt(2))
    assert_allclose(ft.jvp(root, (2.0,), (1.0,))[1], 0.5 / np.sqrt(2))

    def powers(x):
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, fnp.sin(s[1]) * x), (0, x))[1]

    check(powers, 0.7, order=2)
    check(ft.jit(powers), 0.7, order=2)
    with ft.disable_jit():
        check(powers, 0.7, order=2)


def test_lanes_of_while_loop_run_to_their_own_ends():
    x = np.array([0.5, 3.0, 100.0, 7.0])
    for f in (ft.vmap(halvings), ft.jit(ft.vmap(halvings)), stepped(ft.vmap(halvings))):
        found = f(x)
        assert_array_equal(found["n"], [0, 2, 7, 3])
        assert_array_equal(found["x"], x / 2.0 ** found["n"])
    assert_allclose(ft.vmap(ft.grad(root))(x), 0.5 / np.sqrt(x))
    assert_allclose(ft.grad(lambda x: fnp.sum(ft.vmap(root)(x)))(x), 0.5 / np.sqrt(x))


# --- branches -----------------------------------------------------------------------------------------------


def log_or_line(x):
    return lax.cond(x > 1.0, fnp.log, lambda x: x - 1.0, x)


@WAYS
def test_cond_is_if(way):
    for x in POINTS:
        assert_allclose(way(log_or_line)(x), np.log(x) if x > 1 else x - 1)
    tree = way(lambda p, x: lax.cond(p, lambda x: {"a": x, "n": None}, lambda x: {"a": -x, "n": None}, x))
    assert tree(False, np.ones(3))["n"] is None
    assert_array_equal(tree(False, np.ones(3))["a"], -np.ones(3))
    assert_array_equal(tree(True, np.ones(3))["a"], np.ones(3))


@WAYS
def test_forms_of_operands(way):
    assert way(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(True) == 1.0
    assert way(lambda p: lax.cond(p, lambda x, y: x - y, lambda x, y: x + y, 3.0, 4.0))(False) == 7.0
    assert way(lambda p: lax.cond(p, lambda t: t[0], lambda t: t[1], operand=(3.0, 4.0)))(False) == 4.0
    assert way(lambda p: lax.cond(p, lambda _: 3.0, lambda _: 4.0, operand=None))(True) == 3.0
    assert way(lambda p: lax.cond(p, 3.0, lambda x: x, 4.0, lambda y: -y))(False) == -4.0
    assert way(lambda i: lax.switch(i, [lambda x: x, lambda x: -x], operand=3.0))(1) == -3.0


@WAYS
@pytest.mark.parametrize("pred", [True, False, 0, 2, 0.0, -0.5, np.bool_(True), np.int8(0), np.array(True)])
def test_what_counts_as_true(way, pred):
    assert way(lambda p: lax.cond(p, lambda: 1, lambda: 2))(pred) == (1 if pred else 2)


@WAYS
@pytest.mark.parametrize("dtype", [int, np.int8, np.uint64])
def test_switch_clamps_its_index(way, dtype):
    f = way(lambda i, x: lax.switch(i, [fnp.sin, fnp.cos, lambda x: -x], x))
    want = [np.sin(3.0), np.cos(3.0), -3.0]
    for i in [0, 1, 2, 3, 100] + ([] if dtype is np.uint64 else [-1, -100]):
        assert_allclose(f(dtype(i), 3.0), want[min(max(i, 0), 2)])
    assert_allclose(f(np.uint64(2**63 + 1), 3.0), -3.0)
    assert lax.switch(7, [lambda x: x], 3.0) == 3.0


def test_python_numbers_take_on_the_dtype_of_the_other_branch():
    f = ft.jit(lambda p, x: lax.cond(p, lambda x: x, lambda x: 0.0, x))
    assert f(True, np.float32(2)).dtype == np.float32
    assert f(False, np.float32(2)).dtype == np.float32
    g = ft.jit(lambda i, x: lax.switch(i, [lambda x: 1, lambda x: x, lambda x: 3], x))
    assert g(2, np.int8(2)).dtype == np.int8
    h = ft.jit(lambda p, x: x * lax.cond(p, lambda: 1.0, lambda: 2.0))
    assert h(True, np.ones(2, np.float32)).dtype == np.float32


def test_the_branch_that_is_not_taken_does_not_matter():
    def f(x, m):
        return lax.cond(
            fnp.sum(m) > 0, lambda: fnp.sum(fnp.linalg.cholesky(m)) * x, lambda: fnp.sqrt(-x) * 0 + x
        )

    bad, good = -np.eye(2), np.eye(2)
    for way in (plain, ft.jit):
        assert way(f)(-2.0, bad) == -2.0
        assert way(f)(2.0, good) == 4.0
        assert way(ft.grad(f))(2.0, good) == 2.0
        assert way(ft.grad(f))(-2.0, bad) == 1.0
    x, m = np.array([2.0, -2.0]), np.stack([good, bad])
    for way in (plain, ft.jit):
        assert_allclose(way(ft.vmap(f))(x, m), [4.0, -2.0])
        assert_allclose(way(ft.vmap(ft.grad(f)))(x, m), [2.0, 1.0])
        assert_allclose(way(ft.grad(lambda x: fnp.sum(ft.vmap(f)(x, m))))(x), [2.0, 1.0])


@pytest.mark.slow
def test_derivatives_of_branches():
    for x in (0.4, 2.5):
        check(log_or_line, x, order=2)
        check(ft.jit(log_or_line), x, order=2)
    branches = [lambda x, y: x * y, lambda x, y: fnp.sin(x) + y, lambda x, y: x]
    for i in range(3):
        check(lambda x, y, i=i: lax.switch(i, branches, x, y), 0.4, 0.7, order=2)
    assert_allclose(ft.vmap(ft.grad(log_or_line))(POINTS), np.where(POINTS > 1, 1 / POINTS, 1.0))


@pytest.mark.slow
def test_branches_capture_values_of_every_level():
    def f(x, y):
        def body(c, row):
            return lax.cond(row > 0, lambda c: c * x + y, lambda c: fnp.sin(c) + row * x, c), c

        return lax.scan(body, y, POINTS)[0]

    def loop(x, y):
        c = y
        for row in POINTS:
            c = c * x + y if row > 0 else np.sin(c) + row * x
        return c

    assert_allclose(f(0.3, 0.2), loop(0.3, 0.2))
    assert_allclose(ft.jit(f)(0.3, 0.2), loop(0.3, 0.2))
    check(f, 0.3, 0.2, order=2)
    assert_allclose(ft.vmap(f, in_axes=(0, None))(POINTS, 0.2), [loop(x, 0.2) for x in POINTS])


# --- mistakes -----------------------------------------------------------------------------------------------


def fails(error, says, line, f, way=plain):
    with pytest.raises(error) as caught:
        way(f)(2.0)
    message = str(caught.value)
    for part in [*says, line, "test_branches.py:"]:
        assert part in message, message


CONDITIONS = {
    "a number": (lambda x: x, ["f64[]", "x != 0"]),
    "an array": (lambda x: fnp.ones(3) > x, ["bool[3]", "fnp.all"]),
    "a tuple": (lambda x: (x > 0,), ["(*,)"]),
    "nothing": (lambda x: None, ["None"]),
}


@WAYS
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_that_is_no_boolean(way, name):
    condition, says = CONDITIONS[name]
    says = ["while_loop: the condition <lambda> must return a scalar boolean", *says]
    fails(errors.ConditionTypeError, says, f'"{name}"', lambda x: lax.while_loop(condition, abs, x), way)


def test_a_predicate_that_is_no_scalar():
    def f(x):
        return lax.cond(fnp.ones(2) > x, lambda: 1, lambda: 2)  # array

    fails(
        errors.ConditionTypeError,
        ["cond: pred must be a scalar boolean", "bool[2]", "fnp.where"],
        "# array",
        f,
    )


@WAYS
def test_a_loop_whose_carry_changes(way):
    def f(x):
        def body(c):
            return {"x": c["x"], "n": c["n"] + x}  # float

        return lax.while_loop(lambda c: c["n"] < 3, body, {"x": x, "n": np.int32(0)})

    says = ["while_loop of body", "type at ['n']", "i32[] goes in", "f64[] comes out"]
    fails(errors.CarryTypeError, says, "# float", f, way)


def test_branches_of_different_types():
    def f(x):
        def no(x):
            return {"a": (x, fnp.stack([x, x]))}  # two

        return lax.cond(x > 0, lambda x: {"a": (x, fnp.stack([x, x, x]))}, no, x)

    says = [
        "cond",
        "different types at ['a'][1]",
        "f64[3] from true_fun (<lambda>)",
        "f64[2] from false_fun (no)",
    ]
    fails(errors.BranchTypeError, says, "# two", f)
    fails(errors.BranchTypeError, says, "# two", f, ft.jit)

    def g(x):
        return lax.switch(1, [lambda: 1, lambda: 2, lambda: 1.5])  # kinds

    fails(
        errors.BranchTypeError,
        ["switch", "i64[]* from branch 0", "f64[]* from branch 2", "float64"],
        "# kinds",
        g,
    )

    def h(x):
        return lax.cond(x > 0, lambda: (x, x), lambda: (x, (x, x)))  # structures

    fails(errors.BranchTypeError, ["structures at [1]", "a leaf", "a tuple of length 2"], "# structures", h)


def test_what_is_no_function_or_no_index():
    fails(errors.ArgumentError, ["cond", "expected a function"], "lax.cond", lambda x: lax.cond(True, x, x))
    fails(
        errors.ArgumentError, ["switch", "expected a function"], "lax.switch", lambda x: lax.switch(0, [x, x])
    )
    fails(errors.ArgumentValueError, ["branches is empty"], "lax.switch", lambda x: lax.switch(0, []))
    fails(errors.ArgumentError, ["while_loop"], "while_loop", lambda x: lax.while_loop(x, abs, x))
    for index in (1.0, True, np.arange(2)):
        fails(
            errors.ArgumentError,
            ["integer scalar"],
            "switch",
            lambda x, i=index: lax.switch(i, [abs, abs], x),
        )
    both = [lambda x: x, lambda x: x]
    fails(errors.ArgumentError, ["not both"], "lax.cond", lambda x: lax.cond(True, *both, x, operand=x))
