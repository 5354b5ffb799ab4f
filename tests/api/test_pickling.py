"""What can be sent to another process: functions and what was made of them, their errors, structures."""

import copy
import dataclasses
import functools
import inspect
import io
import pickle
import subprocess
import sys
import textwrap
from typing import NamedTuple

import cloudpickle
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, tree_util
from functrans.runtime.portable import Portable


def square(x):
    """The square."""
    return x * x


@ft.jit
def doubled(x):
    return 2.0 * x


@functools.partial(ft.jit, static_argnames="n")
def power(x, n):
    return x**n


@ft.vmap
def mapped(x):
    return fnp.sum(x)


@ft.custom_jvp
def softplus(x):
    return fnp.log1p(fnp.exp(x))


@softplus.defjvp
def _(primals, tangents):
    return softplus(*primals), tangents[0] / (1.0 + fnp.exp(-primals[0]))


class Cube(ft.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g


class Model:
    @ft.jit
    def scaled(self, x):
        return self.w * x

    def __init__(self, w):
        self.w = w

    def energy(self, x):
        return self.w * x**2

    slope = ft.grad(energy, 1)  # not to be mistaken for the method that it was made of


def both(x):
    """Through `pickle`, and through ``cloudpickle``."""
    yield pickle.loads(pickle.dumps(x))
    yield cloudpickle.loads(cloudpickle.dumps(x))


# --- functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [doubled, power, mapped, softplus, Cube.apply, Cube, Model.scaled])
def test_a_global_is_pickled_by_name(f):
    for arrived in both(f):
        assert arrived == f
    assert copy.deepcopy(f) == f
    assert copy.copy(f) == f


def transformations():
    """What `functrans` makes callables of functions by."""
    for name in ft.__all__:
        make = getattr(ft, name)
        if not callable(make) or isinstance(make, type(np)):
            continue
        try:
            first = next(iter(inspect.signature(make).parameters), None)
        except ValueError:
            continue
        if first != "fun":
            continue
        try:
            made = make(square)
        except Exception:  # it also wants arguments
            continue
        if callable(made):
            yield name


NAMES = sorted(
    {*transformations()} - {"named_call"}
)  # it returns a function, not an object with a name of its own


def test_the_transformations_are_enumerated():
    expected = {
        "grad",
        "value_and_grad",
        "jit",
        "vmap",
        "hessian",
        "jacfwd",
        "jacrev",
        "checkpoint",
        "make_jaxpr",
    }
    assert {*NAMES} >= expected | {"custom_jvp", "custom_vjp", "custom_vmap", "custom_gradient"}


@pytest.mark.parametrize("name", NAMES)
def test_a_transformed_global_function_is_pickled_by_name(name):
    made = getattr(ft, name)(square)
    for arrived in both(made):
        assert type(arrived) is type(made)
        assert inspect.signature(arrived) == inspect.signature(square)
        if isinstance(made, Portable):
            assert arrived is not made
            assert arrived.__wrapped__ is square or name == "hessian"
            assert repr(arrived) == repr(made)
            assert copy.deepcopy(made) is made
    assert "square" in repr(made)
    assert name in repr(made) or name in ("hessian", "jacobian", "remat")


@pytest.mark.parametrize(
    "make",
    [
        lambda f: ft.grad(f),
        lambda f: ft.value_and_grad(f),
        lambda f: ft.jit(f),
        lambda f: ft.jit(ft.grad(ft.checkpoint(f))),
        lambda f: ft.vmap(ft.grad(f), in_axes=(0,), out_axes=0),
        lambda f: ft.hessian(f),
        lambda f: ft.jacrev(ft.jit(f), has_aux=False),
        lambda f: fnp.vectorize(f, otypes=[float]),
        lambda f: functools.partial(ft.jit(f)),
        lambda f: tree_util.Partial(ft.jit(f)),
    ],
)
def test_it_computes_the_same(make):
    for f in (square, softplus, doubled, Cube.apply):
        made = make(f)
        x = fnp.asarray([1.0, 2.0]) if "vmap" in repr(made) else fnp.asarray(0.7)
        expected = made(x)
        for arrived in both(made):
            assert repr(arrived(x)) == repr(expected)
    constant = 3.0
    local = make(lambda x: constant * fnp.sin(x))
    expected = local(x)
    assert repr(cloudpickle.loads(cloudpickle.dumps(local))(x)) == repr(expected)
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"local object|lambda"):
        pickle.dumps(local)


def test_methods():
    model = Model(3.0)
    for arrived in both(model.scaled):
        assert arrived(2.0) == 6.0
    for arrived in both(model.slope):
        assert arrived.__self__.w == 3.0
        assert arrived(2.0) == 12.0


def test_options_are_pickled():
    f = ft.jit(lambda x, n: x**n, static_argnums=1)
    assert cloudpickle.loads(cloudpickle.dumps(f))(2.0, 3) == 8.0
    g = ft.grad(lambda x, y: (x * y**2, y), argnums=1, has_aux=True)
    assert cloudpickle.loads(cloudpickle.dumps(g))(2.0, 3.0) == (12.0, 3.0)


def test_rules_are_pickled():
    @ft.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (10.0 * ct,))

    @ft.custom_gradient
    def g(x):
        return x, lambda ct: 20.0 * ct

    @ft.custom_vmap
    def h(x):
        return x

    h.def_vmap(lambda size, batched, x: (30.0 * x, True))
    f2, g2, h2 = cloudpickle.loads(cloudpickle.dumps((f, g, h)))
    assert (ft.grad(f2)(1.0), ft.grad(g2)(1.0)) == (10.0, 20.0)
    np.testing.assert_array_equal(ft.vmap(h2)(np.ones(2)), [30.0, 30.0])


def test_a_function_that_refers_to_itself():
    @functools.partial(ft.jit, static_argnames="depth")
    def f(x, depth=2):
        return x if depth == 0 else f(2.0 * x, depth=depth - 1)

    assert cloudpickle.loads(cloudpickle.dumps(f))(3.0) == 12.0


def test_copies_in_one_process_share_compiled_code():
    doubled(1.0)
    traces = doubled.cache_info().traces
    made = ft.jit(square)
    made(1.0)
    before = made.cache_info().traces
    arrived = pickle.loads(pickle.dumps(made))
    arrived(1.0)
    assert arrived.cache_info().traces == made.cache_info().traces == before
    pickle.loads(pickle.dumps(doubled))(1.0)
    assert doubled.cache_info().traces == traces


def test_generated_functions_have_distinct_names_and_docstrings():
    f = ft.grad(ft.grad(square), argnums=(0,))
    assert repr(f) == "<grad of grad of square>"
    assert repr(ft.jit(f)) == "<jit of grad of grad of square>"
    assert f.__name__ == "square"
    assert f.__doc__ == "grad of grad of square.\n\ngrad of square.\n\nThe square."
    assert f.__module__ == square.__module__


# --- values and structures ----------------------------------------------------------------------------------


class Point(NamedTuple):
    x: float
    y: float


@tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    a: float
    b: float


VALUES = {
    "array": fnp.asarray([1.0, 2.0]),
    "scalar": fnp.asarray(2.0),
    "struct": ft.ShapeDtypeStruct((2, 3), "float32"),
    "treedef": tree_util.tree_structure({"a": (1, [2, None]), "b": Point(1, Pair(2, 3))}),
    "leaf": tree_util.tree_structure(0),
    "key path": tree_util.tree_leaves_with_path({"a": Pair(1, 2)})[0][0],
    "partial": tree_util.Partial(square, 3.0),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    value = VALUES[name]
    for arrived in (*both(value), copy.deepcopy(value)):
        assert type(arrived) is type(value)
        assert repr(arrived) == repr(value)


REFUSED = {
    "jaxpr": lambda: ft.make_jaxpr(square)(1.0),
    "lowered": lambda: ft.jit(square).lower(1.0),
    "compiled": lambda: ft.jit(square).lower(1.0).compile(),
    "vjp": lambda: ft.vjp(square, 1.0)[1],
    "linearize": lambda: ft.linearize(square, 1.0)[1],
    "transpose": lambda: ft.linear_transpose(doubled, 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_programs_of_this_process_are_refused(name):
    value = REFUSED[name]()
    with pytest.raises(errors.PicklingError, match=r"cannot be pickled.*[Ss]end the"):
        cloudpickle.dumps(value)
    assert copy.deepcopy(value) is value


def test_traced_values_are_refused():
    with pytest.raises(errors.PicklingError, match=r"a traced value of type f64.*Return it"):
        ft.jit(lambda x: pickle.dumps(x))(1.0)
    with pytest.raises(errors.PicklingError, match="a traced value of type f64"):
        ft.grad(lambda x: pickle.dump(x, io.BytesIO()))(1.0)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_arrive_as_they_were(name):
    kind = getattr(errors, name)
    with pytest.raises(kind) as info:
        raise kind("what was wrong")  # this line
    raised = info.value
    raised.add_note("a note")
    raised.detail = (1, "two")
    for arrived in (*both(raised), copy.copy(raised), *both(pickle.loads(pickle.dumps(raised)))):
        assert type(arrived) is kind
        assert str(arrived) == str(raised)
        assert arrived.args == raised.args
        assert arrived.message == "what was wrong"
        assert arrived.source.line == raised.source.line
        assert arrived.source.text == 'raise kind("what was wrong")  # this line'
        assert arrived.source.describe() == raised.source.describe()
        assert arrived.__notes__ == ["a note"]
        assert arrived.detail == (1, "two")


@pytest.mark.parametrize(
    "program",
    [
        lambda: ft.grad(lambda x: x * 2)(np.ones(3)),
        lambda: ft.jit(lambda x: float(x))(1.0),
        lambda: ft.jit(lambda x: 1 if x > 0 else 2)(1.0),
        lambda: fnp.zeros(3)[0:1] @ fnp.ones(5),
        lambda: fnp.asarray([1.0])[7],
        lambda: ft.config.patch(nothing=1),
        lambda: ft.jit(fnp.linalg.cholesky)(-np.eye(2)),
        lambda: ft.jit(lambda x, i: x[i])(np.ones(3), 7),
        lambda: fnp.nothing,
    ],
)
def test_errors_of_programs_arrive(program):
    with pytest.raises(Exception) as info:
        program()
    for arrived in both(info.value):
        assert type(arrived) is type(info.value)
        assert str(arrived) == str(info.value)


# --- to a process that has nothing --------------------------------------------------------------------------


SCRIPT = """
    import dataclasses, sys, cloudpickle
    import functrans as ft, functrans.numpy as fnp
    from functrans import tree_util

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Pair:
        a: float
        b: float

    @tree_util.register_pytree_node_class
    class Box:
        def __init__(self, x):
            self.x = x
        def tree_flatten(self):
            return (self.x,), None
        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    class Named:
        def __init__(self, x):
            self.x = x
    key = tree_util.GetAttrKey("x")
    tree_util.register_pytree_with_keys(Named, lambda n: (((key, n.x),), None), lambda aux, xs: Named(*xs))

    @ft.custom_jvp
    def softplus(x):
        return fnp.log1p(fnp.exp(x))

    @softplus.defjvp
    def _(primals, tangents):
        return softplus(*primals), tangents[0] / (1.0 + fnp.exp(-primals[0]))

    class Cube(ft.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3.0 * x**2 * g

    @ft.jit
    def loss(x):
        return softplus(x) + Cube.apply(x)

    class Model:
        def __init__(self, w):
            self.w = w
        @ft.jit
        def scaled(self, x):
            return 2.0 * x

    slope = ft.grad(loss)

    def everything():
        return (
            float(slope(0.0)),
            float(ft.vmap(ft.jit(slope))(fnp.zeros(2))[1]),
            float(ft.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0)).a),
            float(ft.jit(lambda box: box.x + 1.0)(Box(1.0))),
            tree_util.keystr(tree_util.tree_leaves_with_path(Named(1.0))[0][0]),
            float(Model(1.0).scaled(2.0)),
        )

    Cube.apply(fnp.asarray(1.0)), everything()
    structure = tree_util.tree_structure(Pair(1, Box(2)))
    sys.stdout.buffer.write(cloudpickle.dumps((everything, structure, Pair(1.0, 2.0))))
"""
READER = """
    import pickle, sys
    everything, structure, pair = pickle.load(sys.stdin.buffer)
    import functrans as ft
    print(everything(), ft.tree.leaves(pair), structure.num_leaves, structure)
"""


@pytest.mark.slow
def test_cloudpickle_takes_the_functions_and_classes_of_a_script_along():
    sent = subprocess.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, check=True)
    got = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(READER)], input=sent.stdout, stdout=subprocess.PIPE, check=True
    )
    structure = "CustomNode(Pair[()], [*, CustomNode(Box[None], [*])])"
    values = (0.5, 0.5, 3.0, 2.0, ".x", 4.0)
    assert got.stdout.decode().strip() == f"{values} [1.0, 2.0] 2 {structure}"
