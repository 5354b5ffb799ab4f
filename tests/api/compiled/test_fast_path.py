"""The quick call of a jitted function gives what a new function gives, whatever the calls before it were."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.api.compiled.fast_path import NO_CALL
from functrans.frontend.pytree import LEAF
from functrans.frontend.pytree.generated import leaf_reader, tree_expression
from functrans.tree import flatten, structure

Pair = namedtuple("Pair", "first second")
X = np.arange(12.0).reshape(3, 4)

ARGUMENTS = {
    "array": X,
    "Array": fnp.asarray(X),
    "transposed": X.T,
    "other shape": np.arange(12.0).reshape(4, 3),
    "strided": np.arange(24.0).reshape(3, 8)[:, ::2],
    "reversed": X[::-1],
    "float32": X.astype(np.float32),
    "integers": np.arange(12).reshape(3, 4),
    "complex": X + 1j,
    "other byte order": X.astype(">f8"),
    "empty": np.zeros((0, 4)),
    "0-d": np.array(2.0),
    "one element": np.ones((1, 1)),
    "scalar": np.float64(2.0),
    "float32 scalar": np.float32(2.0),
    "float": 2.5,
    "int": 3,
    "bool": True,
    "weak": ft.jit(lambda x: x + 1)(2.0),
    "weak int": ft.jit(lambda x: x + 1)(2),
    "unaligned": np.frombuffer(b"0" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(3, 4),
}


@pytest.fixture(autouse=True)
def unchecked():
    """As users have it: in checked mode, other code makes the results."""
    with ft.config.patch(checked=False):
        yield


def double(x):
    return x * 2


def same(found, wanted):
    assert structure(found) == structure(wanted)
    for a, b in zip(flatten(found)[0], flatten(wanted)[0]):
        assert (type(a), a.dtype, a.flags.num) == (type(b), b.dtype, b.flags.num)
        np.testing.assert_array_equal(a, b)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(ARGUMENTS)), min_size=2, max_size=12))
def test_calls_in_any_order(names):
    f = ft.jit(double)
    for name in names:
        same(f(ARGUMENTS[name]), ft.jit(lambda x: x * 2)(ARGUMENTS[name]))


@ft.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weights: object
    bias: object
    size: object = dataclasses.field(default=1, metadata={"static": True})


class Node:
    """A registered class whose aux data is anything."""

    def __init__(self, children, aux=None):
        self.children, self.aux = children, aux


ft.tree_util.register_pytree_node(
    Node, lambda x: (x.children, x.aux), lambda aux, children: Node([*children], aux)
)


TREES = {
    "dict": {"a": X, "b": {"c": X[0], "d": 1.0}},
    "keys in another order": {"b": {"d": 1.0, "c": X[0]}, "a": X},
    "more keys": {"a": X, "b": {"c": X[0], "d": 1.0}, "e": X},
    "fewer keys": {"a": X},
    "other key": {"a": X, "b": {"c": X[0], "x": 1.0}},
    "other leaf": {"a": X, "b": {"c": X[0], "d": X}},
    "subtree at a leaf": {"a": (X,), "b": {"c": X[0], "d": 1.0}},
    "leaf at a subtree": {"a": X, "b": X},
    "None": {"a": X, "b": {"c": None, "d": 1.0}},
    "tuple": (X, X[0]),
    "one": (X,),
    "list": [X, X[0]],
    "pair": Pair(X, X[0]),
    "nested pair": {"a": Pair(X, [X[0], ()])},
    "ordered": OrderedDict(b=X, a=X[0]),
    "ordered otherwise": OrderedDict(a=X, b=X[0]),
    "default": defaultdict(list, a=X, b=X[0]),
    "another default": defaultdict(dict, a=X, b=X[0]),
    "numbers as keys": {1: X, 2: X[0]},
    "other numbers as keys": {1.0: X, 2: X[0]},
    "leaf": X,
    "layer": Layer(X, X[0]),
    "layer of size 1.0": Layer(X, X[0], 1.0),
    "layer of size True": Layer(X, X[0], True),
    "layer of size 0.0": Layer(X, X[0], 0.0),
    "layer of size -0.0": Layer(X, X[0], -0.0),
    "layer of a string": Layer(X, X[0], "one"),
    "layers": [Layer(X, Layer(X[0], None)), {"a": Layer((X,), [])}],
    "node": Node([X, X[0]]),
    "node of one": Node([X]),
    "node of none": {"a": Node([]), "b": X},
    "nested aux": Node([X], (1, ("a", (2.0, None)), double)),
    "other nested aux": Node([X], (1, ("a", (2, None)), double)),
    "shorter aux": Node([X], (1, ("a",), double)),
    "pair as aux": Node([X], Pair(1, 2)),
    "tuple as aux": Node([X], (1, 2)),
    "list as aux": Node([X], [1, 2]),
}


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(TREES)), min_size=2, max_size=12))
def test_trees_in_any_order(names):
    doubled = partial(ft.tree.map, double)
    f = ft.jit(doubled)
    for name in names:
        same(
            f(TREES[name]),
            doubled(ft.tree.map(fnp.asarray, TREES[name]))
            if name == ""
            else ft.jit(partial(doubled))(TREES[name]),
        )


@pytest.mark.parametrize("name", sorted(TREES))
def test_generated_functions_agree_with_the_general_ones(name):
    call = ((TREES[name], 1.0), {"key": X, "other": TREES[name]})
    leaves, treedef = flatten(call)
    read, names = leaf_reader(treedef), {}
    text = tree_expression(treedef, iter([f"leaves[{i}]" for i in range(len(leaves))]), names)
    assert (read is None) == (text is None) == (name == "list as aux")
    if read is not None:
        assert all(a is b for a, b in zip(read(*call), leaves, strict=True))
        assert structure(eval(text, {**names, "leaves": leaves})) == treedef
        assert read((TREES[name],), call[1]) == read(call[0], {}) == read((), {}) == ()


@partial(
    ft.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["size"], drop_fields=["cached"]
)
@dataclasses.dataclass
class Cached:
    weights: object
    size: object = 1
    cached: object = None


class Wide(Layer):
    """A dataclass that is not registered."""


def test_dataclasses_are_read_and_built_without_calls_but_of_the_class():
    call = (([Layer(X, X[0], 2), Cached(X, 3)],), {})
    treedef, names = structure(call), {}
    text = tree_expression(treedef, iter("abc"), names)
    assert {*filter(callable, names.values())} == {Layer, Cached}, text
    assert leaf_reader(treedef).__code__.co_names == (
        *("type", "len", "weights", "bias", "size", "int", "Exception"),
    )


@pytest.mark.parametrize(
    "other", [Layer(X, X[0], 3), Wide(X, X[0], 2), Cached(X, 2), X, None], ids=lambda x: type(x).__name__
)
def test_other_dataclasses_are_no_quick_call(other):
    call = ((Layer(X, X[0], 2), Cached(X, 3, cached="not read")), {})
    read = leaf_reader(structure(call))
    assert len(read(*call)) == 3
    assert read((other, call[0][1]), {}) == read((call[0][0], other), {}) == ()


def test_a_dataclass_that_lost_a_field():
    f = ft.jit(lambda layer: layer.weights + layer.bias)
    layer = Layer(X, X[0])
    for _ in range(3):
        f(layer)
    del layer.bias
    with pytest.raises(AttributeError, match="bias"):
        f(layer)


def test_keywords_and_positions():
    f = ft.jit(lambda x, y=1.0: x - 2 * y)
    for _ in range(3):
        assert [f(5.0, 1.0), f(5.0, y=1.0), f(y=1.0, x=5.0), f(5.0)] == [3, 3, 3, 3]
        assert [f(1.0, 5.0), f(y=5.0, x=1.0)] == [-9, -9]


def test_options_count():
    calls = []

    @ft.jit
    def f(x):
        calls.append(1)
        return x * 2 + 1

    for _ in range(3):
        f(X)
    for _ in range(3):
        with ft.config.patch(strict=True):
            f(X)
            f(X)
        f(X)
    assert len(calls) == 2
    with ft.disable_jit():
        f(X)
    assert len(calls) == 3


def test_every_call_is_counted():
    f = ft.jit(lambda x: x * 3)
    for i in range(5):
        f(X)
        info = f.cache_info()
        assert (info.traces, info.hits, info.misses) == (1, i, 1)
    f.clear_cache()
    f(X)
    assert f.cache_info().traces == 2


def test_inputs_returned_are_copies_and_results_are_read_only():
    f = ft.jit(lambda x, y: {"same": x, "new": x + y, "both": (x, 3.0)})
    x = X.copy()
    for _ in range(3):
        out = f(x, 1.0)
        assert not any(np.shares_memory(x, leaf) for leaf in flatten(out)[0])
        assert not any(leaf.flags.writeable for leaf in flatten(out)[0])
    x[...] = 0
    np.testing.assert_array_equal(out["same"], X)


def test_failures_on_the_quick_call():
    f = ft.jit(lambda x, i: {"found": x[i]})
    for i in (0, 1, 2):
        np.testing.assert_array_equal(f(X, i)["found"], X[i])
    with pytest.raises(IndexError):
        f(X, 7)
    with ft.config.patch(linalg_errors="nan"):
        g = ft.jit(np.linalg.cholesky)
        for matrix in (np.eye(3), np.eye(3), -np.eye(3)):
            np.testing.assert_array_equal(
                g(matrix), np.eye(3) if matrix[0, 0] > 0 else np.full((3, 3), np.nan)
            )


def test_in_a_trace_it_is_a_call():
    f = ft.jit(lambda x: x * x)
    for _ in range(3):
        f(3.0)
    assert ft.grad(f)(3.0) == 6.0
    assert ft.jit(lambda x: f(x) + f(2.0))(3.0) == 13.0


def test_the_latest_program_is_dropped_with_the_cache():
    f = ft.jit(double)
    for _ in range(3):
        f(X)
    assert f._cache.latest is not NO_CALL
    f.clear_cache()
    assert f._cache.latest is NO_CALL


def test_a_kept_gradient_is_traced_again_after_the_cache_is_cleared():
    factor = [2.0]
    f = ft.jit(lambda x: factor[0] * x * x)
    slope = ft.grad(f)
    assert [slope(1.0) for _ in range(3)] == [4.0] * 3
    factor[0] = 3.0
    f.clear_cache()
    assert [slope(1.0) for _ in range(3)] == [6.0] * 3


def test_gradients_of_a_jitted_function_are_those_of_the_function():
    """Also for aux, several argnums, keywords, weak numbers and errors."""

    def f(x, y, n=1.0):
        return (x * y * n).sum() * 1.0, {"aux": x + 1}

    options = {"has_aux": True, "argnums": (1, 0)}
    for transformation in (ft.grad, ft.value_and_grad):
        ours, plain = transformation(ft.jit(f), **options), transformation(f, **options)
        for _ in range(3):
            same(ours(X, X + 1.0), plain(X, X + 1.0))
            same(ours(X, X + 1.0, n=3.0), plain(X, X + 1.0, n=3.0))
    for _ in range(3):
        same(ft.value_and_grad(ft.jit(double))(2.0), ft.value_and_grad(double)(2.0))
    with pytest.raises(ft.errors.GradientError, match=r"grad of double: argument 0 \('x'\) has dtype int64"):
        ft.grad(ft.jit(double))(2)
    with pytest.raises(ft.errors.GradientError, match="must return a scalar"):
        ft.grad(ft.jit(double))(X)


@pytest.mark.parametrize("captured", range(8))
def test_captured_arrays_and_results_in_namedtuples(captured):
    """The names of captured arrays and of the classes of results are different ones in the generated code."""
    arrays = [np.full(3, float(i)) for i in range(captured)]

    @ft.jit
    def step(state):
        total = sum((state.first * a for a in arrays), state.first)
        return Pair(total, Pair((state.second, Pair(total, 1.0)), {"a": total}))

    state = Pair(np.ones(3), 2.0)
    expected = 1.0 + sum(range(captured))
    for _ in range(4):
        out = step(state)
        assert type(out) is Pair
        np.testing.assert_array_equal(out.first, np.full(3, expected))
        np.testing.assert_array_equal(out.second.first[1].first, np.full(3, expected))


def results(x, n):
    return {
        "same": x,
        "twice": (2 * x, 2 * x),
        "weak": (n + 1, n * 0.5, n > 0),
        "empty": x[:0] + 1,
        "number": 3.0,
        "low": (x + 1).astype("float16"),
        "sum": fnp.sum(x),
        "axes": x[:, None, :] - 1.0,
    }


def test_results_of_every_kind():
    f = ft.jit(results)
    for n in (2, 3):
        first, *more = [f(X + n, n) for _ in range(4)]
        for found in more:
            same(found, first)
        same(first, ft.jit(lambda x, n: results(x, n))(X + n, n))
        assert all(type(v.base) is np.ndarray and v.base.base is None for v in flatten(more)[0])
        assert not any(v.flags.writeable for v in flatten(more)[0])
    f = ft.jit(lambda x: x + 1, donate_argnums=0)
    x = fnp.asarray(X)
    for n in range(4):
        assert x[0, 0] == n
        x = f(x)


# --- numbers that the kernel reads from Python's objects ------------------------------------------------------------

LONG = np.iinfo(np.int64)
NUMBERS = st.one_of(
    st.floats(allow_subnormal=True),
    st.floats().map(np.float64),
    st.integers(LONG.min, LONG.max),
    st.booleans(),
    st.sampled_from([X, X[0], np.array(2.0), np.float32(0.5)]),
)


def everything(*xs):
    """Each argument as it is, sums that mix them, and a loop."""
    total = sum(fnp.sum(fnp.asarray(x).astype(float)) for x in xs)
    return (
        [fnp.asarray(x) for x in xs],
        total,
        ft.lax.fori_loop(0, 3, lambda i, c: c + fnp.asarray(xs[0]), 1.5 * xs[0]),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_numbers_are_those_of_arrays(xs):
    """The slow path makes an array of each number first."""
    f, slow = ft.jit(everything), ft.jit(everything)
    with np.errstate(all="ignore"):
        wanted = slow(*xs)
        for _ in range(3):
            same(f(*xs), wanted)


def test_more_numbers_than_there_is_room_for():
    for n in (16, 17, 64, 65):
        f = ft.jit(lambda *xs: sum(x * k for k, x in enumerate(xs)))
        for start in (0.5, 1.5, 2.5):
            xs = [start + k for k in range(n)]
            assert f(*xs) == pytest.approx(sum(x * k for k, x in enumerate(xs)), rel=1e-14)


def test_an_integer_out_of_range_is_refused_as_at_the_first_call():
    f = ft.jit(lambda x, y: x + y)
    with pytest.raises(OverflowError) as first:
        f(2**63, 1)
    for _ in range(3):
        assert f(1, 2) == 3
    for bad in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError) as found:
            f(bad, 1)
        assert type(found.value) is type(first.value)
        assert str(found.value).split(":")[0] == str(first.value).split(":")[0]
        assert str(bad) in str(found.value)
    assert f(LONG.max - 1, 1) == LONG.max


def test_a_kernel_that_fails_on_numbers():
    f = ft.jit(lambda x, n: x[n] // n)
    a = np.arange(5)
    for n in (2, 3, 4):
        assert f(a, n) == a[n] // n
    with pytest.raises(IndexError):
        f(a, 7)
    assert f(a, 3) == 1


def test_numbers_are_each_call_s_own():
    """Large kernels release the GIL: the numbers lie on the stack of the calling thread."""
    f = ft.jit(lambda x, a, b: fnp.sum(fnp.sin(x * a) + b))
    x = np.linspace(0.0, 1.0, 100_000)
    f(x, 1.0, 2.0), f(x, 1.0, 2.0)
    wanted = {k: float(f(x, float(k), k / 3)) for k in range(8)}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: (k, float(f(x, float(k), k / 3))), [*range(8)] * 20))
    assert all(y == wanted[k] for k, y in found)


def test_generated_functions_tell_all_structures_apart():
    for name, tree in TREES.items():
        call = (tree, 1.0), {}
        read = leaf_reader(structure(call))
        if read is None:
            continue
        for other, found in TREES.items():
            alike = structure(((found, 1.0), {})) == structure(call)
            leaves = read((found, 1.0), {})
            # What stands at the place of a leaf is for the caller to inspect.
            assert alike == (bool(leaves) and all(structure(x) == LEAF for x in leaves)), (name, other)
            if alike:
                assert all(a is b for a, b in zip(leaves, flatten(((found, 1.0), {}))[0], strict=True))


def test_trees_of_many_leaves_are_called_quickly_later():
    """The fast call is generated at the fiftieth call, and gives the same."""
    tree = {f"k{i}": Layer(np.full(3, 1.0 * i), [np.ones(2), i]) for i in range(40)}
    f = ft.jit(lambda t: ft.tree.map(lambda x: x * 2.0, t))
    wanted = f(tree)
    for k in range(60):
        same(f(tree), wanted)
        assert f._cache.latest is NO_CALL or k > 45
    assert f._cache.latest is not NO_CALL
    other = {**tree, "k3": Layer(np.zeros(3), [np.ones(2), 0], 2)}
    assert f(other)["k3"].size == 2
    assert np.array_equal(f(other)["k3"].weights, np.zeros(3))
    same(f(tree), wanted)


def test_a_registered_function_that_raises_does_so_in_the_user_s_call():
    class Moody:
        def __init__(self, x, angry=False):
            self.x, self.angry = x, angry

    def flatten_moody(node):
        if node.angry:
            raise ValueError("not now")
        return (node.x,), None

    ft.tree_util.register_pytree_node(Moody, flatten_moody, lambda aux, children: Moody(*children))
    f = ft.jit(lambda node: node.x * 2)
    for _ in range(3):
        assert np.array_equal(f(Moody(X)), 2 * X)
    with pytest.raises(ValueError, match="not now"):
        f(Moody(X, angry=True))
    assert np.array_equal(f(Moody(X)), 2 * X)
