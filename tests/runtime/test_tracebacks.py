"""Errors show the user's frames, and name the user's line."""

import importlib.util
import traceback
import types
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

X = np.ones(3)


class Mine(Exception):
    pass


def wrong(x):
    return fnp.add(x, np.ones(7))


def mine(x):
    raise Mine


def outer(x):
    return ft.grad(lambda x: fnp.sum(wrong(x)))(x)


@ft.custom_vjp
def ruled(x):
    return x


ruled.defvjp(lambda x: (x, None), lambda _, g: mine(g))


class Op(ft.Function):
    @staticmethod
    def forward(ctx, x):
        return wrong(x)


CALLS = {
    "jit": (lambda: ft.jit(wrong)(X), ["wrong"]),
    "grad": (lambda: ft.grad(lambda x: x)(X), []),
    "jit of grad": (lambda: ft.jit(outer)(X), ["outer", "<lambda>", "wrong"]),
    "value_and_grad": (lambda: ft.value_and_grad(mine)(X), ["mine"]),
    "vmap": (lambda: ft.vmap(wrong)(np.ones((2, 3))), ["wrong"]),
    "jvp": (lambda: ft.jvp(wrong, (X,), (X,)), ["wrong"]),
    "vjp": (lambda: ft.vjp(wrong, X), ["wrong"]),
    "pull": (lambda: ft.vjp(lambda x: x, X)[1](np.ones(7)), []),
    "linearize": (lambda: ft.linearize(mine, X), ["mine"]),
    "push": (lambda: ft.linearize(lambda x: x, X)[1](np.ones(7)), []),
    "linear_transpose": (lambda: ft.linear_transpose(wrong, X), ["wrong"]),
    "jacfwd": (lambda: ft.jacfwd(wrong)(X), ["wrong"]),
    "hessian": (lambda: ft.hessian(wrong)(X), ["wrong"]),
    "checkpoint": (lambda: ft.checkpoint(wrong)(X), ["wrong"]),
    "make_jaxpr": (lambda: ft.make_jaxpr(mine)(X), ["mine"]),
    "eval_shape": (lambda: ft.eval_shape(wrong, X), ["wrong"]),
    "cond": (lambda: lax.cond(True, wrong, wrong, X), ["wrong"]),
    "switch": (lambda: lax.switch(0, [wrong], X), ["wrong"]),
    "scan": (lambda: lax.scan(lambda c, x: (wrong(c), x), X, X), ["<lambda>", "wrong"]),
    "map": (lambda: lax.map(mine, X), ["mine"]),
    "while_loop": (lambda: lax.while_loop(lambda x: True, wrong, X), ["wrong"]),
    "fori_loop": (lambda: lax.fori_loop(0, 2, lambda i, x: wrong(x), X), ["<lambda>", "wrong"]),
    "associative_scan": (lambda: lax.associative_scan(lambda a, b: mine(a), X), ["<lambda>", "mine"]),
    "custom_vjp": (lambda: ft.grad(lambda x: ruled(x))(1.0), ["mine"]),
    "Function": (lambda: Op.apply(X), ["forward", "wrong"]),
    "compiled index": (lambda: ft.jit(lambda x, i: x[i])(X, 7), []),
    "sum": (lambda: fnp.sum(X, axis=5), []),
    "dot": (lambda: fnp.dot(X, np.ones(4)), []),
    "inv": (lambda: fnp.linalg.inv(np.zeros((2, 2))), []),
    "a flag": (lambda: fnp.sum(X, keepdims="a"), []),
    "no function": (lambda: ft.grad(None), []),
    "pure_callback": (lambda: ft.pure_callback(mine, ft.ShapeDtypeStruct((), "f8"), 1.0), ["mine"]),
}


def names(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def own_frames(error):
    package = str(Path(ft.__file__).parent)
    return [
        f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith((package, "<functrans"))
    ]


@pytest.mark.parametrize("name", CALLS)
def test_tracebacks_show_the_frames_of_the_user(name):
    call, frames = CALLS[name]
    with pytest.raises((ft.errors.FunctransError, Mine)) as caught:
        call()
    actual = names(caught.value)
    assert actual[-len(frames) :] == frames if frames else actual[-1] == "<lambda>"
    assert own_frames(caught.value) == []
    assert not {"inner", "wrapper"} & {*actual}  # of contextlib and functools
    with ft.config.patch(traceback_filtering=False), pytest.raises(type(caught.value)) as caught:
        call()
    assert own_frames(caught.value) != []


def test_causes_and_contexts_are_filtered_too():
    def wrapping(x):
        try:
            ft.jit(wrong)(x)
        except ft.errors.ShapeError as error:
            raise Mine from error

    with pytest.raises(Mine) as caught:
        ft.jit(wrapping)(X)
    assert names(caught.value)[-1] == "wrapping"
    assert names(caught.value.__cause__) == ["wrapping", "wrong"]

    def handling(x):
        try:
            ft.jit(wrong)(x)
        except ft.errors.ShapeError:
            mine(x)

    with pytest.raises(Mine) as caught:
        ft.grad(handling)(X)
    assert names(caught.value)[-2:] == ["handling", "mine"]
    assert names(caught.value.__context__) == ["handling", "wrong"]


def test_an_error_that_is_not_meant_keeps_the_frame_that_raised_it(monkeypatch):
    def broken(*args, **kwargs):
        return {}["missing"]

    source = ft.tree_util.tree_map
    exec(
        compile("def tree_flatten(tree): return {}['missing']", source.__code__.co_filename, "exec"),
        names_ := {},
    )
    monkeypatch.setattr("functrans.frontend.arguments.tree_flatten", names_["tree_flatten"])
    with pytest.raises(KeyError) as caught:
        ft.grad(fnp.sum)(X)
    assert [f.name for f in own_frames(caught.value)] == ["tree_flatten"]


def test_interrupts_are_left_alone():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ft.jit(interrupted)(X)
    assert own_frames(caught.value) != []


# --- the line in the message ------------------------------------------------------------------------------------


def line_of(error):
    return error.source.describe().rpartition("\n")[2].strip()


def test_the_line_is_the_users_even_through_pandas_or_matplotlib():
    pandas = pytest.importorskip("pandas")
    axes = pytest.importorskip("matplotlib.figure").Figure().add_subplot()
    with pytest.raises(ft.errors.TracerArrayConversionError) as caught:
        ft.grad(lambda x: pandas.Series(x).sum())(X)
    assert "pandas.Series(x)" in line_of(caught.value)
    with pytest.raises(ft.errors.TracerArrayConversionError) as caught:
        ft.jit(lambda x: axes.plot(x))(X)
    assert "axes.plot(x)" in line_of(caught.value)
    with pytest.raises(ft.errors.ImmutableArrayError) as caught:
        pandas.Series([1.0]).map(lambda v: fnp.asarray([v]).sort())
    assert "fnp.asarray([v]).sort()" in line_of(caught.value)


PROGRAM = """
{imported}
def apply(f, x):
    return f(x)
def shown(x):
    return float(x[0]) if False else x.__setitem__(0, 1.0)
"""


def installed(folder, name, imported):
    path = folder / "site-packages" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM.format(imported=imported))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "imported", ["import functrans as ft", "from functrans import grad", "import numpy", ""]
)
def test_a_library_that_is_built_on_functrans_is_named(tmp_path, imported):
    library = installed(tmp_path, "some_library", imported)
    with pytest.raises(ft.errors.ImmutableArrayError) as caught:
        library.apply(library.shown, fnp.zeros(2))
    named = "__setitem__" in line_of(caught.value)
    assert named == ("functrans" in imported)
    if not named:
        assert line_of(caught.value) == "library.apply(library.shown, fnp.zeros(2))"


def test_instructions_without_a_line():
    """An interrupt may arrive at one; Python's own modules have some."""

    def fails(x):
        raise ZeroDivisionError

    parts = len(fails.__code__.co_code) // 16 + 1  # each of up to eight instructions without a place
    without = fails.__code__.replace(co_linetable=b"\xff" * parts)
    lineless = types.FunctionType(without, {"ZeroDivisionError": ZeroDivisionError})
    with pytest.raises(ZeroDivisionError):
        ft.jit(lineless)(1.0)
