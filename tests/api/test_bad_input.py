"""Users' mistakes: typed errors that name the argument, what was met, the user's line and the cure."""

import dataclasses
import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors

X = np.arange(3.0)


def fails(f, *args, error, says, line):
    """Call `f`; the message must match `says`, and show this file and the text of the user's line."""
    with pytest.raises(error) as caught:
        f(*args)
    assert isinstance(caught.value, errors.FunctransError)
    message = str(caught.value)
    for part in [says] if isinstance(says, str) else says:
        assert part in message
    assert "test_bad_input.py:" in message
    assert line in message
    return message


JITS = pytest.mark.parametrize("wrap", [ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f))])
STAGED = pytest.mark.parametrize(
    "wrap",
    [
        ft.jit,
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: lambda x: ft.vmap(f)(x[None]),
        lambda f: lambda x: ft.make_jaxpr(f)(x),
    ],
    ids=["jit", "grad-jit", "jit-grad", "vmap", "make_jaxpr"],
)


@JITS
def test_shapes_that_do_not_fit(wrap):
    def f(x):
        return fnp.sum(x + fnp.ones(4))  # shapes

    fails(wrap(f), X, error=ValueError, says=["add", "(3,)", "(4,)", "x[:, None]"], line="# shapes")

    def g(x):
        return fnp.sum(x @ fnp.ones((4, 2)))  # matmul

    fails(wrap(g), X, error=errors.ShapeError, says=["matmul", "(3,)", "(4, 2)"], line="# matmul")

    def h(x):
        return fnp.sum(x.reshape(2, 2))  # reshape

    fails(wrap(h), X, error=errors.ShapeError, says=["reshape", "(3,)", "(2, 2)"], line="# reshape")


@JITS
def test_axes_that_do_not_exist(wrap):
    def f(x):
        return fnp.sum(x, axis=2)  # axis

    fails(wrap(f), X, error=np.exceptions.AxisError, says=["sum", "axis 2"], line="# axis")


def test_argnums():
    f = lambda x, w: x
    for transform in (ft.grad, ft.value_and_grad, ft.jacfwd, ft.jacrev):
        for bad, kind, says in ((2, errors.ArgumentValueError, "2 positional arguments"),
                                ((0, -2), errors.ArgumentValueError, "twice"),
                                ("x", errors.ArgumentError, "argnums must be an integer or a sequence of integers"),
                                ((0, 1.5), errors.ArgumentError, "1.5")):  # fmt: skip
            fails(lambda: transform(f, bad)(1.0, 2.0), error=kind, says=says, line="transform(f, bad)")  # noqa: B023


def test_functions_that_are_not_scalar():
    call = lambda f: ft.grad(f)(X)  # the call
    says = ["must return a scalar", "(3,)", "jacrev"]
    fails(lambda: call(lambda x: x * 2), error=errors.GradientError, says=says, line="# the call")
    fails(lambda: call(ft.jit(lambda x: x * 2)), error=errors.GradientError, says=says, line="# the call")
    fails(
        lambda: call(lambda x: (x, x)),
        error=TypeError,
        says=["one scalar", "has_aux=True"],
        line="# the call",
    )
    fails(lambda: call(lambda x: None), error=errors.GradientError, says="one scalar", line="# the call")
    fails(lambda: call(lambda x: 3), error=errors.GradientError, says=["int64", "float"], line="# the call")
    fails(
        lambda: call(lambda x: fnp.sum(x) * 1j),
        error=errors.GradientError,
        says="complex128",
        line="# the call",
    )
    fails(lambda: call(lambda x: "text"), error=errors.ArgumentError, says="the result of", line="# the call")
    fails(
        lambda: ft.grad(lambda x: x, has_aux=True)(1.0),
        error=errors.ArgumentError,
        says="a pair",
        line="has_aux=True",
    )


def test_integer_arguments():
    def loss(n, w):
        return w * n

    says = ["argument 0 ('n')", "int64", "1.0 instead of 1"]
    for f in (ft.grad(loss), ft.grad(ft.jit(loss)), ft.jacrev(loss), ft.jit(ft.grad(loss))):
        fails(lambda: f(3, 2.0), error=TypeError, says=says, line="f(3, 2.0)")  # noqa: B023
    fails(lambda: ft.grad(loss)({"a": [True]}, 2.0), error=errors.GradientError, says="bool", line="True")
    holomorphic = ft.grad(loss, holomorphic=True)
    fails(lambda: holomorphic(1.0, 1j), error=errors.GradientError, says="complex arguments", line="1j")
    fails(lambda: ft.jacfwd(loss)(1j, 1j), error=errors.GradientError, says="holomorphic=True", line="1j")


def test_leaked_tracers():
    stored = []

    def f(x):
        stored.append(x * 2)
        return fnp.sum(x)

    for transform, name in ((ft.jit, "jit of f"), (ft.grad, "grad"), (ft.vmap, "vmap")):
        transform(f)(np.ones((2,)))
        says = [f"a leak from {name}", "Return the value"]
        use = lambda g=lambda x: x + 1: g(stored[-1])  # the use
        fails(use, error=errors.UnexpectedTracerError, says=says, line="# the use")
        other = lambda: ft.jit(lambda x: x + stored[-1])(1.0)  # the other use
        fails(other, error=errors.UnexpectedTracerError, says=name, line="# the other use")


@STAGED
@pytest.mark.parametrize(
    ("use", "error", "says", "line"),
    [
        (
            lambda t: 1.0 if t > 0 else t,
            errors.TracerBoolConversionError,
            "where(condition, a, b)",
            "if t > 0",
        ),
        (lambda t: t > 0 and t, errors.TracerBoolConversionError, "& | ~", "t > 0 and"),
        (lambda t: float(t) * t, errors.TracerScalarConversionError, "functrans.numpy", "float(t)"),
        (lambda t: int(t) * t, errors.TracerScalarConversionError, "int()", "int(t)"),
        (
            lambda t: math.sin(t) * t,
            errors.TracerScalarConversionError,
            "Write functrans.numpy.sin",
            "math.sin(t)",
        ),
        (lambda t: np.array([t, t]), errors.TracerArrayConversionError, "stack", "np.array([t"),
        (lambda t: range(t.astype(int)), errors.TracerIntegerConversionError, "static", "range("),
        (lambda t: X[t.astype(int)], errors.TracerArrayConversionError, "asarray(X)[i]", "X[t."),
        (lambda t: [1, 2][t.astype(int)], errors.TracerIntegerConversionError, "integer value", "[1, 2]["),
    ],
    ids=["if", "and", "float", "int", "math", "np.array", "range", "index", "list"],
)
def test_numbers_that_are_not_known_while_tracing(wrap, use, error, says, line):
    f = wrap(lambda x: use(x[1]) * x[1])
    fails(f, X, error=error, says=["a traced value of type", says], line=line)


@STAGED
def test_writing_into_a_numpy_array(wrap):
    """NumPy raises its own error there, whatever ours was; it is the cause of ours."""

    def f(x):
        np.zeros(3)[0] = x[0]

    says = [".at[i].set(v)", "float() of a traced value"]
    fails(wrap(f), X, error=errors.TracerScalarConversionError, says=says, line="np.zeros(3)[0] = x[0]")


@STAGED
def test_a_mask_is_not_known_while_tracing(wrap):
    f = wrap(lambda x: fnp.sum(x[x > 1]))
    fails(f, X, error=errors.NonConcreteBooleanIndexError, says="where", line="x[x > 1]")


def test_tracers_cannot_be_changed_in_place():
    def f(x):
        x[0] = 1.0
        return x

    fails(ft.jit(f), X, error=errors.ImmutableArrayError, says="x.at[i].set(v)", line="x[0] = 1.0")
    fails(ft.vjp, f, X, error=errors.ImmutableArrayError, says="x.at[i].set(v)", line="x[0] = 1.0")
    fails(f, ft.jit(lambda x: x)(X), error=errors.ImmutableArrayError, says=".at[", line="x[0] = 1.0")


def test_static_arguments():
    def f(x, shape):
        return x

    jitted = ft.jit(f, static_argnums=1)
    says = ["the static argument 1 ('shape') is a list", "tuple instead of a list"]
    fails(lambda: jitted(1.0, [3]), error=errors.StaticArgumentError, says=says, line="[3]")
    fails(lambda: jitted(1.0, shape=[3]), error=ValueError, says="'shape'", line="shape=[3]")
    fails(lambda: jitted(1.0, X), error=errors.StaticArgumentError, says="ndarray", line="X")
    fails(
        lambda: ft.jit(f, static_argnums=5), error=errors.StaticArgumentError, says="2 positional", line="=5"
    )
    fails(
        lambda: ft.jit(f, static_argnames="size"),
        error=errors.StaticArgumentError,
        says="x, shape",
        line="size",
    )
    fails(
        lambda: ft.jit(f, static_argnums="x"), error=errors.ArgumentError, says="static_argnums", line='"x"'
    )
    fails(lambda: ft.jit(3), error=errors.ArgumentError, says="expected a function", line="ft.jit(3)")


@pytest.mark.parametrize("dtype", ["g", "O", "U3", "M8[s]", "V8"])
def test_unsupported_dtypes(dtype):
    x = np.zeros(3, dtype)
    f = lambda p: fnp.sum(p["w"])
    for g in (ft.jit(f), ft.grad(f), ft.vmap(f), lambda p: ft.vjp(f, p), lambda p: ft.jvp(f, (p,), (p,))):
        error = fails(lambda: g({"w": x}), error=errors.UnsupportedDtypeError, says="['w']", line="")  # noqa: B023
        assert "argument 0 ('p')" in error


def test_arguments_that_are_not_arrays():
    f = ft.jit(lambda x, how: x)
    says = ["argument 1 ('how')", "'mean'", "static"]
    fails(lambda: f(X, "mean"), error=errors.ArgumentError, says=says, line='"mean"')
    fails(lambda: ft.grad(lambda x: x)(object()), error=TypeError, says="argument 0 ('x')", line="object()")
    fails(
        lambda: ft.jit(lambda: object())(), error=errors.ArgumentError, says="the result of", line="object()"
    )


def test_vmap_axes():
    f = lambda x, y: x
    value, axis = errors.ArgumentValueError, np.exceptions.AxisError
    cases = [
        (lambda: ft.vmap(f)(X, np.ones(4)), value, ["differ in size", "(3,)", "(4,)"]),
        (lambda: ft.vmap(f, axis_size=5)(X, X), value, ["axis_size=5", "(3,)"]),
        (lambda: ft.vmap(f, (0,))(X, X), value, ["1 entries for 2 positional"]),
        (lambda: ft.vmap(f, None)(X, X), value, ["pass axis_size"]),
        (lambda: ft.vmap(f, (0, 1))(X, X), axis, ["axis 1 of argument", "(3,)", "None"]),
        (lambda: ft.vmap(f)(X, 2.0), axis, ["axis 0 of argument 1 ('y')", "()"]),
        (lambda: ft.vmap(f, out_axes=1)(X, X), axis, ["out_axes asks for axis 1"]),
        (lambda: ft.vmap(f, out_axes=None)(X, X), value, ["out_axes is None"]),
        (lambda: ft.vmap(f, in_axes="x")(X, X), errors.ArgumentError, ["in_axes", "'x'"]),
        (lambda: ft.vmap(f, in_axes=(0, {"a": 0}))(X, X), ValueError, ["in_axes"]),
        (lambda: ft.vmap(f, out_axes=(0, 0))(X, X), ValueError, ["out_axes"]),
        (lambda: ft.vmap(f, in_axes=(0, 0.5))(X, X), errors.ArgumentError, ["0.5"]),
    ]
    for call, error, says in cases:
        fails(call, error=error, says=says, line="ft.vmap(f")


def test_tangents_and_cotangents():
    f = lambda x, y: x * y
    pull, push = ft.vjp(f, X, X)[1], ft.linearize(f, X, X)[1]
    cases = [
        (lambda: ft.jvp(f, X, X), errors.ArgumentError, "tuples or lists"),
        (lambda: ft.jvp(f, (X, X), (X,)), errors.ArgumentError, "tangents must have the structure"),
        (
            lambda: ft.jvp(f, (X, X), (X, np.ones(4))),
            errors.ShapeError,
            "leaf 1 has shape (4,), but its primal has",
        ),
        (lambda: ft.jvp(f, (X, X), (X, 1j * X)), errors.GradientError, "is complex"),
        (lambda: pull(np.ones(4)), errors.ShapeError, "(4,)"),
        (lambda: pull((X, X)), errors.ArgumentError, "the cotangent must have the structure"),
        (lambda: push(X), errors.ArgumentError, "tangents must have the structure"),
        (lambda: push(X, 1.0), errors.ShapeError, "has shape ()"),
        (lambda: pull("text"), errors.ArgumentError, "the cotangent"),
    ]
    for call, error, says in cases:
        fails(call, error=error, says=says, line="lambda: ")


# --- indices out of bounds --------------------------------------------------------------------------------------


def take(x, i):
    return fnp.sum(fnp.take(x, i) ** 2)  # the user's line


def put(x, i):
    return fnp.sum(x.at[i].set(2.0 * x[0]))  # the user's line


@pytest.mark.parametrize("f", [take, put])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: lambda x, i: f(x, fnp.asarray(i)),
        ft.jit,
        ft.grad,
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.jit(ft.grad(ft.jit(f))),
        lambda f: ft.vmap(f, (None, 0)),
        lambda f: ft.jit(ft.vmap(f, (None, 0))),
        lambda f: ft.vmap(ft.grad(ft.jit(f)), (None, 0)),
        lambda f: lambda x, i: ft.jvp(ft.jit(lambda x: f(x, i)), (x,), (x,)),
        lambda f: lambda x, i: ft.hessian(ft.jit(f))(x, i),
    ],
    ids=[
        "eager",
        "jit",
        "grad",
        "grad-jit",
        "jit-grad",
        "jit-grad-jit",
        "vmap",
        "jit-vmap",
        "vmap-grad",
        "jvp",
        "hess",
    ],
)
def test_an_index_out_of_bounds_names_its_line(wrap, f):
    g = wrap(f)
    x = fnp.asarray(np.arange(5.0))
    g(x, np.array([1, -5, 4]))
    for bad in ([1, 7, 2], [-6, 0, 0]):
        seen = next(i for i in bad if not -5 <= i < 5)
        says = [f"index {seen} is out of bounds", "size 5", 'mode="clip"']
        fails(lambda: g(x, np.array(bad)), error=IndexError, says=says, line="# the user's line")  # noqa: B023
    g(x, np.array([1, -5, 4]))


def test_an_unused_result_still_raises():
    f = ft.jit(lambda x, i: (x[i], x)[1])
    f(X, np.array(2))
    fails(lambda: f(X, np.array(3)), error=IndexError, says="index 3 is out of bounds", line="x[i]")


# --- the state afterwards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_exception_while_tracing_leaves_the_state_usable(depth):
    broken = [True]

    def f(x):
        y = x * 2
        if broken:
            raise RuntimeError("the user's own")
        return fnp.sum(y * x)

    stacks = [
        ft.jit,
        ft.grad,
        lambda f: lambda x: ft.vmap(f)(x[None])[0],
        lambda f: lambda x: ft.jvp(f, (x,), (x,))[1],
    ]
    for k in range(len(stacks)):
        broken[:] = [True]
        g = f
        for step in (stacks * 2)[k : k + depth]:
            g = step((lambda g: lambda x: fnp.sum(g(x)))(g))  # noqa: B023
        with pytest.raises(RuntimeError, match="the user's own"):
            g(X)
        np.testing.assert_array_equal(fnp.sin(X), np.sin(X))
        assert type(fnp.sin(X)) is ft.Array
        broken.clear()
        g(X)
        np.testing.assert_array_equal(ft.grad(f)(X), 4 * X)
        np.testing.assert_array_equal(ft.grad(ft.jit(f))(X), 4 * X)


def test_leaves_are_named_by_their_path():
    p = {"w": X, "n": np.arange(3)}
    f = lambda p: fnp.sum(p["w"])
    says = ["argument 0 ('p')['n']", "int64"]
    fails(lambda: ft.grad(f)(p), error=errors.GradientError, says=says, line="ft.grad(f)(p)")
    says = ["axis 0 of argument 0 ('p')['n'] of shape (3,)", "axis 0 of argument 0 ('p')['w'] of shape (2,)"]
    fails(lambda: ft.vmap(f)({**p, "w": X[:2]}), error=ValueError, says=says, line="ft.vmap(f)")


@pytest.mark.parametrize(
    "name", ["jit", "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "make_jaxpr"]
)
def test_transformations_of_objects_that_are_not_functions(name):
    fails(
        lambda: getattr(ft, name)(X), error=errors.ArgumentError, says="expected a function", line="getattr"
    )


def test_errors_for_masked_arrays_and_dataclasses_suggest_a_cure():
    x = np.ma.array([1.0, 2.0], mask=[0, 1])
    fails(lambda: ft.jit(lambda x: x)(x), error=errors.ArgumentError, says="x.filled(v)", line="(x)(x)")
    p = dataclasses.make_dataclass("P", ["w"])(X)
    fails(
        lambda: ft.jit(lambda p: p)(p), error=errors.ArgumentError, says="register_dataclass", line="(p)(p)"
    )


@pytest.mark.parametrize("call", [ft.jit(fnp.sum), lambda x: ft.grad(fnp.sum)(x), fnp.sum])
def test_a_mask_is_not_lost(call):
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ft.errors.ArgumentError, match="masked array, and its mask would be lost"):
        call(masked)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * x,
        lambda x: 1.0 / (x + 1.0),
        lambda x: x @ x,
        lambda x: fnp.where(x > 0, x, 0.0),
        fnp.sin,
    ],
)
def test_the_transpose_of_a_function_that_is_not_linear(f):
    says = "the function is not linear"
    fails(lambda: ft.linear_transpose(f, X)(f(X)), error=errors.GradientError, says=says, line="(f, X)(f(X))")


def test_a_traced_axis():
    f = ft.jit(lambda x, axis: fnp.sum(x, axis=axis))  # axis
    says = ["sum", "i64[]", "static"]
    fails(lambda: f(X, 0), error=errors.TracerIntegerConversionError, says=says, line="# axis")


def test_results_shaped_by_data():
    f = ft.jit(lambda x: np.unique(x))  # unique
    fails(
        lambda: f(X),
        error=errors.ConcretizationTypeError,
        says=["unique", "depends on", "size="],
        line="# unique",
    )


def test_a_value_that_is_differentiated_prints_its_numbers(capsys):
    ft.grad(lambda x: (print(x), fnp.sum(x))[1])(X)
    assert "[0. 1. 2.]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "call",
    [
        lambda: ft.vjp(3, 1.0),
        lambda: ft.jvp(3, (1.0,), (1.0,)),
        lambda: ft.linearize(3, 1.0),
        lambda: ft.linear_transpose(3, 1.0),
    ],
)
def test_products_want_a_function(call):
    with pytest.raises(ft.errors.ArgumentError, match="expected a function for fun, got 3 of type int"):
        call()
