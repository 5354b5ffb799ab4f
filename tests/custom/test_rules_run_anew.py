"""Outside `jit` rules run anew at each call, in loops, branches and `checkpoint` too, whatever they read."""

import functools
import gc
import os
import sys
import types
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.lowering.run import executable

SETTINGS = {"k": 2.0}
NAMESPACE = types.ModuleType("functrans_test_settings")
SCALE = 2.0


class Mixed:
    """What rules read, in the ways that Python has."""

    slotted = 2.0

    def __init__(self):
        self.k = 2.0

    def method(self):
        return SETTINGS["k"]

    @property
    def computed(self):
        return self.method()

    def __call__(self):
        return self.computed

    def __getattr__(self, name):
        return SETTINGS["k"]

    def __eq__(self, other):  # equal to any other
        return type(other) is Mixed

    def __hash__(self):
        return 0


OBJECT = Mixed()
LIST = [2.0]
ARRAY = np.full(1000, 2.0)


def imported():
    import functrans_test_settings

    return functrans_test_settings.k


def drawn():
    return float(np.random.get_state()[1][0])


READERS = {
    "method": lambda: OBJECT.method(),
    "property": lambda: OBJECT.computed,
    "call": lambda: OBJECT(),
    "getattr": lambda: OBJECT.anything,
    "equal object": lambda: OBJECT.k,
    "environment": lambda: float(os.environ["FUNCTRANS_TEST_K"]),
    "globals": lambda: globals()["SCALE"],
    "global": lambda: SCALE,
    "import": imported,
    "module": lambda: NAMESPACE.k,
    "eval": lambda: eval("SETTINGS['k']"),
    "global state": drawn,
    "class": lambda: Mixed.slotted,
    "list": lambda: LIST[0],
    "large array": lambda: fnp.asarray(ARRAY)[999],
    "numpy array": lambda: ARRAY[999],
    "default": lambda settings=SETTINGS: settings["k"],
    "vars": lambda: vars(OBJECT)["k"],
    "partial": functools.partial(SETTINGS.get, "k"),
    "host call": lambda: ft.pure_callback(lambda: np.float64(SETTINGS["k"]), ft.ShapeDtypeStruct((), float)),
}


def change(k):
    SETTINGS["k"] = OBJECT.k = NAMESPACE.k = Mixed.slotted = LIST[0] = k
    globals()["SCALE"] = k
    os.environ["FUNCTRANS_TEST_K"] = str(k)
    np.random.seed(int(k))
    ARRAY[:] = k


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    monkeypatch.setitem(sys.modules, "functrans_test_settings", NAMESPACE)
    monkeypatch.setenv("FUNCTRANS_TEST_K", "2.0")
    state = np.random.get_state()
    yield
    np.random.set_state(state)


# --- functions whose slope is read --------------------------------------------------------------------------


def by_custom_vjp(read):
    f = ft.custom_vjp(lambda x: 1.0 * x)
    f.defvjp(lambda x: (1.0 * x, None), lambda kept, ct: (read() * ct,))
    return f


def by_forward_pass(read):
    f = ft.custom_vjp(lambda x: 1.0 * x)
    f.defvjp(lambda x: (1.0 * x, fnp.asarray(1.0) * read()), lambda kept, ct: (kept * ct,))
    return f


def by_custom_jvp(read):
    f = ft.custom_jvp(lambda x: 1.0 * x)
    f.defjvp(lambda primals, tangents: (1.0 * primals[0], read() * tangents[0]))
    return f


def by_partials(read):
    f = ft.custom_jvp(lambda x: 1.0 * x)
    f.defjvps(lambda t, out, x: read() * t)
    return f


def by_gradient(read):
    return ft.custom_gradient(lambda x: (1.0 * x, lambda ct: read() * ct))


def by_backward(read):
    class Scaled(ft.Function):
        @staticmethod
        def forward(ctx, x):
            return 1.0 * x

        @staticmethod
        def backward(ctx, g):
            return read() * g

    return Scaled.apply


def by_both(read):
    class Scaled(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.scale = read()
            return 1.0 * x

        @staticmethod
        def backward(ctx, g):
            return ctx.scale * g

        @staticmethod
        def jvp(ctx, t):
            return ctx.scale * t

    return Scaled.apply


def by_argument(read):
    class Scaled(ft.Function):
        @staticmethod
        def forward(ctx, x, read):
            ctx.read = read
            return 1.0 * x

        @staticmethod
        def backward(ctx, g):
            return ctx.read() * g, None

    return lambda x: Scaled.apply(x, read)


def by_linear_call(read):
    # linear, so its value has the slope, too
    scaled = lambda _, x: read() * x
    return lambda x: ft.custom_derivatives.linear_call(scaled, scaled, (), x)


def by_linear_solve(read):
    def f(x):
        divided = lambda v: v / read()
        return lax.custom_linear_solve(divided, x, lambda matvec, b: b * read(), symmetric=True)

    return f


def by_root(read):
    def f(x):
        return lax.custom_root(lambda y: y / read() - x, x, lambda f, y: read() * x, lambda g, y: y * read())

    return f


FRONTS = {
    "custom_vjp": by_custom_vjp,
    "forward pass": by_forward_pass,
    "custom_jvp": by_custom_jvp,
    "defjvps": by_partials,
    "custom_gradient": by_gradient,
    "Function": by_backward,
    "Function, both modes": by_both,
    "Function, argument": by_argument,
    "linear_call": by_linear_call,
    "custom_linear_solve": by_linear_solve,
    "custom_root": by_root,
}
LOOPS = {
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "while_loop": lambda f: (
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]
    ),
    "cond": lambda f: lambda x: lax.cond(fnp.all(x > -9), lambda x: f(f(f(x))), lambda x: x, x),
    "switch": lambda f: lambda x: lax.switch(1, [lambda x: x, lambda x: f(f(f(x))), lambda x: -x], x),
    "map": lambda f: lambda x: fnp.sum(lax.map(lambda y: f(f(f(y))), fnp.reshape(x, (1,)))),
    "associative_scan": lambda f: (
        lambda x: lax.associative_scan(lambda a, b: f(f(f(a))) + 0.0 * b, fnp.stack([x, x]))[1]
    ),
    "checkpoint": lambda f: ft.checkpoint(lambda x: f(f(f(x)))),
    "checkpoint of loop": lambda f: ft.checkpoint(LOOPS["scan"](f)),
    "scan of checkpoint": lambda f: LOOPS["scan"](ft.checkpoint(f)),
    "loop of branch": lambda f: LOOPS["fori_loop"](lambda c: lax.cond(c > -9.0, f, lambda x: x, c)),
    "loop of loop": lambda f: (
        lambda x: lax.scan(lambda c, _: (lax.fori_loop(0, 1, lambda i, c: f(c), c), None), x, None, length=3)[
            0
        ]
    ),
    "custom_vmap": lambda f: ft.custom_vmap(LOOPS["scan"](f)),
}
SLOPES = {
    "grad": lambda f: ft.grad(f),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](1.0),
    "jacrev": lambda f: ft.jacrev(f),
    "jacfwd": lambda f: ft.jacfwd(f),
    "vmap(grad)": lambda f: lambda x: ft.vmap(ft.grad(f))(np.full(2, x))[1],
    "grad(vmap)": lambda f: lambda x: ft.grad(lambda x: fnp.sum(ft.vmap(f)(x)))(np.full(2, x))[1],
    "vmap(jvp)": lambda f: lambda x: ft.vmap(SLOPES["jvp"](f))(np.full(2, x))[1],
    "grad of power": lambda f: lambda x: ft.grad(lambda x: f(x) * f(x))(x) / (2.0 * f(x)),
}


def check(front, reader, loop, slope):
    read = READERS[reader]
    function = LOOPS[loop](FRONTS[front](read))
    slope = SLOPES[slope](function)
    for k in (2.0, 3.0):
        change(k)
        np.testing.assert_allclose(slope(1.5), k**3, rtol=1e-12)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("front", FRONTS)
def test_front_ends(front, loop):
    check(front, "method", loop, "grad")


@pytest.mark.parametrize("reader", READERS)
def test_readers(reader):
    check("custom_vjp", reader, "fori_loop", "grad")
    check("Function", reader, "checkpoint", "grad")
    check("custom_jvp", reader, "cond", "jvp")


@pytest.mark.wide(2)
@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("front", ["custom_vjp", "custom_jvp", "Function, both modes", "custom_root"])
def test_transformations(front, slope):
    for loop in ("fori_loop", "while_loop", "cond", "checkpoint", "loop of loop"):
        check(front, "property", loop, slope)


def test_a_rule_for_vmap():
    f = ft.custom_vmap(lambda x: 1.0 * x)
    f.def_vmap(lambda size, batched, x: (OBJECT.method() * x, True))
    for loop in ("fori_loop", "checkpoint", "loop of loop"):
        mapped = ft.vmap(LOOPS[loop](f))
        for k in (2.0, 3.0):
            change(k)
            assert mapped(np.ones(2)).tolist() == [k**3, k**3]
            assert ft.grad(lambda x: mapped(x)[1])(np.ones(2)).tolist() == [0.0, k**3]  # noqa: B023


def test_a_rule_of_a_class_that_is_no_function():
    class Rule:
        @staticmethod
        def backward(ctx, g):
            return 2.0 * g

    class Scaled(Rule, ft.Function):
        @staticmethod
        def forward(ctx, x):
            return 1.0 * x

    assert ft.grad(Scaled.apply)(1.0) == 2.0
    Rule.backward = staticmethod(lambda ctx, g: 3.0 * g)
    assert (
        ft.grad(Scaled.apply)(1.0)
        == ft.grad(lambda x: lax.fori_loop(0, 1, lambda i, c: Scaled.apply(c), x))(1.0)
        == 3.0
    )


def test_classes_and_functions_made_anew():
    def scaled(k):
        class Scaled(ft.Function):
            forward = staticmethod(lambda ctx, x: x)
            backward = staticmethod(lambda ctx, g: k * g)

        return Scaled.apply

    for k in (2.0, 3.0, 2.0):
        assert ft.grad(LOOPS["scan"](scaled(k)))(1.0) == k**3


def test_jit_keeps_the_rule_that_it_traced():
    change(2.0)
    f = ft.jit(LOOPS["scan"](by_custom_vjp(OBJECT.method)))
    assert ft.grad(f)(1.0) == 8.0
    change(3.0)
    assert ft.grad(f)(1.0) == 8.0
    f.clear_cache()
    assert ft.grad(f)(1.0) == 27.0


# --- cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("front", ["custom_vjp", "custom_jvp", "Function", "custom_root"])
@pytest.mark.parametrize(
    "loop", ["fori_loop", "while_loop", "cond", "checkpoint", "loop of loop", "associative_scan"]
)
def test_equal_equations_are_lowered_once(front, loop, monkeypatch):
    lowered = []

    def lower(jaxpr, *options):
        lowered.append(jaxpr)
        return original(jaxpr, *options)

    original = executable.lower
    monkeypatch.setattr(executable, "lower", lower)
    weights = np.linspace(1.0, 2.0, 5_000)

    def slope():  # rules made anew, which capture an array
        f = LOOPS[loop](FRONTS[front](lambda: fnp.sum(fnp.asarray(weights)) / 7_500.0))
        return ft.grad(f)(1.5), ft.vmap(ft.grad(f))(np.ones(3))

    ft.clear_caches()
    first = slope()
    count = len(lowered)
    assert count or loop in ("checkpoint", "associative_scan")
    np.testing.assert_allclose(slope()[0], first[0])
    assert len(lowered) == count


@pytest.mark.parametrize("loop", ["fori_loop", "while_loop"])
def test_a_jvp_that_captures_an_array_is_run_in_a_linearised_loop(loop):
    f = LOOPS[loop](by_both(lambda: fnp.sum(fnp.asarray(np.full(100, 0.02)))))
    np.testing.assert_allclose(ft.linearize(f, 1.0)[1](1.0), 8.0)


# --- memory -------------------------------------------------------------------------------------------------


class Held:
    def __init__(self):
        self.array = np.ones(100)


def use(held):
    def read():
        return fnp.sum(fnp.asarray(held.array))

    for front in FRONTS.values():
        for loop in ("fori_loop", "cond", "checkpoint"):
            ft.grad(LOOPS[loop](front(read)))(1.0)
    f = LOOPS["while_loop"](by_both(read))
    ft.vmap(ft.grad(f))(np.ones(2))
    ft.linearize(f, 1.0)[1](1.0)
    told = lambda x: ft.pure_callback(
        lambda x: np.float64(x * held.array.sum()), ft.ShapeDtypeStruct((), float), x
    )
    kept = lambda x: ft.checkpoint(fnp.sin, policy=lambda *avals, **params: held is None)(x)
    for loop in ("fori_loop", "while_loop", "cond"):
        LOOPS[loop](told)(1.0)
        ft.grad(LOOPS[loop](kept))(1.0)
    lax.while_loop(lambda c: told(c) < 0.0, lambda c: 2.0 * c, 1.0)
    lax.cond(True, fnp.sin, told, 1.0)
    lax.cond(True, told, fnp.sin, 1.0)


def test_nothing_of_the_users_is_kept_alive():
    held = Held()
    there = weakref.ref(held)
    use(held)
    del held
    gc.collect()
    assert there() is None
