"""What programs written for JAX pass and read, on one CPU."""

import copy
import pickle
import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.arrays.jax_keywords import WITHOUT_EFFECT

X = np.arange(6.0).reshape(2, 3)


def function_at(path):
    function = ft
    for part in path.split("."):
        function = getattr(function, part)
    return function


#: A value for each keyword without effect, and one that must be refused.
VALUES = {
    "out_sharding": (ft.devices()[0], "gpu"),
    "sharding": (None, "gpu"),
    "in_shardings": (None, 3),
    "out_shardings": (None, 3),
    "device": ("cpu", "tpu"),
    "backend": ("cpu", "tpu"),
    "inline": (True, "yes"),
    "keep_unused": (True, "yes"),
    "compiler_options": ({}, 3),
    "reduce_axes": ((), ("i",)),
    "precision": ("highest", 3),
    "accuracy": (None, "high"),
}
CALLS = {
    "numpy.zeros": (3,),
    "numpy.full": (3, 1.0),
    "numpy.asarray": (X,),
    "numpy.dot": (X, X.T),
    "numpy.tensordot": (X, X.T, 1),
    "numpy.matmul": (X, X.T),
    "numpy.einsum": ("ij,ij->i", X, X),
    "numpy.vecdot": (X, X),
    "lax.sin": (X,),
    "lax.dot_general": (X, X, (((1,), (1,)), ((), ()))),
    "grad": (lambda x: x,),
    "jit": (lambda x: x,),
}


@pytest.mark.parametrize("path", CALLS)
def test_keywords_without_effect(path):
    function, args = function_at(path), CALLS[path]
    for keyword in WITHOUT_EFFECT[path].keys() & VALUES:
        good, bad = VALUES[keyword]
        out = function(*args, **{keyword: good})
        if not callable(out):
            np.testing.assert_array_equal(out, function(*args))
        with pytest.raises(ft.errors.ArgumentError, match=keyword):
            function(*args, **{keyword: bad})


def test_every_listed_function_takes_its_keywords():
    for path, keywords in WITHOUT_EFFECT.items():
        with pytest.raises(Exception) as raised:
            function_at(path)(*[object()] * 9, **dict.fromkeys(keywords), no_such_keyword=1)
        assert not any(f"'{k}'" in str(raised.value) for k in keywords), path


def test_unknown_keywords_raise():
    for path, args in {**CALLS, "numpy.matvec": (X, X[0]), "numpy.vecmat": (X[0, :2], X)}.items():
        with pytest.raises(TypeError, match="no_such"):
            function_at(path)(*args, no_such=None)


@pytest.mark.parametrize(
    "name", ["dot", "inner", "vdot", "tensordot", "convolve", "correlate", "matmul", "vecdot"]
)
def test_preferred_element_type(name):
    x = np.full(4, 100, np.int8)
    args = (x, x, 1) if name == "tensordot" else (x, x)
    out = getattr(fnp, name)(*args, preferred_element_type=np.int32)
    wide = (x.astype(np.int32), x.astype(np.int32), *args[2:])
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, getattr(np, name)(*wide))


def test_preferred_element_type_of_einsum():
    x = np.full(4, 0.1, np.float32)
    out = ft.jit(lambda x: fnp.einsum("i,i", x, x, preferred_element_type=np.float64, precision="high"))(x)
    np.testing.assert_allclose(out, np.dot(x.astype(float), x.astype(float)), rtol=1e-15)


def test_sums_that_do_not_promote():
    x = np.full(300, 2, np.int8)
    assert fnp.sum(x, promote_integers=False) == np.sum(x, dtype=np.int8)
    assert fnp.sum(x, promote_integers=False).dtype == np.int8
    assert fnp.prod(x[:9], promote_integers=False) == np.prod(x[:9], dtype=np.int8)
    assert fnp.sum(x > 0, promote_integers=False) == 300


def test_fill_values():
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(fnp.take(x, [1, 5], mode="fill", fill_value=-1.0), [2.0, -1.0])
    along = ft.jit(
        lambda x, i: fnp.take_along_axis(x, i, 0, mode="fill", fill_value=7.0, wrap_negative_indices=False)
    )
    np.testing.assert_array_equal(along(x, np.array([0, -1, 2])), [1.0, 7.0, 7.0])
    assert fnp.take_along_axis(x, np.array([-1]), 0, wrap_negative_indices=True) == 2.0
    with pytest.raises(ft.errors.ArgumentValueError, match="fill_value is for mode='fill'"):
        fnp.take(x, [0], fill_value=1.0)
    out = fnp.put_along_axis(x, np.array([0, 5]), 9.0, 0, inplace=False, mode="drop")
    np.testing.assert_array_equal(out, [9.0, 2.0])


def test_dtype_of_argsort():
    x = np.array([3.0, 1.0, 2.0])
    for descending in (False, True):
        out = fnp.argsort(x, dtype=np.int32, descending=descending)
        assert out.dtype == np.int32
        np.testing.assert_array_equal(x[out], np.sort(x)[:: -1 if descending else 1])


def test_negative_starts():
    x = np.arange(5)
    for start in (-2, np.int64(-2)):
        f = ft.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,), allow_negative_indices=False))
        np.testing.assert_array_equal(f(x, start), [0, 1])
        np.testing.assert_array_equal(lax.dynamic_slice_in_dim(x, start, 2), [3, 4])
    out = lax.dynamic_update_slice(
        np.zeros((2, 3)), np.ones((1, 1)), (-1, -1), allow_negative_indices=(True, False)
    )
    np.testing.assert_array_equal(out, [[0, 0, 0], [1, 0, 0]])


def test_polynomials_keep_their_zeros():
    np.testing.assert_array_equal(fnp.polymul([0, 1], [0, 1], trim_leading_zeros=False), [0, 0, 1])
    quotient, rest = fnp.polydiv([1.0, 0.0, -1.0], [1.0, -1.0], trim_leading_zeros=False)
    np.testing.assert_allclose(np.polymul(quotient, [1.0, -1.0])[:2], [1.0, 0.0])
    np.testing.assert_allclose(rest, [0.0], atol=1e-15)


def test_symmetrized_decompositions():
    a = np.array([[4.0, 1.0], [0.0, 3.0]])
    s = (a + a.T) / 2
    np.testing.assert_allclose(fnp.linalg.cholesky(a, symmetrize_input=True), np.linalg.cholesky(s))
    np.testing.assert_allclose(fnp.linalg.eigvalsh(a, symmetrize_input=True), np.linalg.eigvalsh(s))
    g = ft.grad(lambda a: fnp.linalg.eigh(a, symmetrize_input=True)[0][0])(a)
    np.testing.assert_allclose(g, np.asarray(g).T)


def test_some_singular_values():
    a = np.random.default_rng(0).normal(size=(4, 3))
    u, s, vh = fnp.linalg.svd(a, subset_by_index=(0, 2))
    best = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose((u * s) @ vh, (best.U[:, :2] * best.S[:2]) @ best.Vh[:2], atol=1e-12)
    with pytest.raises(ft.errors.ArgumentValueError, match="subset_by_index"):
        fnp.linalg.svd(a, subset_by_index=(0, 9))


def test_gradients_in_integers():
    n, x = np.arange(2), 2.0
    dn, dx = ft.grad(lambda n, x: fnp.sum(n * x), argnums=(0, 1), allow_int=True)(n, x)
    assert dn.dtype == ft.float0
    assert dn.shape == (2,)
    assert dx == 1.0
    assert ft.value_and_grad(lambda n: n * 2.0, allow_int=True)(3)[1].dtype == ft.float0
    rows = ft.jacrev(lambda n, x: n * x * np.ones(3)[:, None], argnums=(0, 1), allow_int=True)(n, x)
    assert rows[0].dtype == ft.float0
    assert rows[0].shape == (3, 2, 2)
    np.testing.assert_array_equal(rows[1], np.tile(n, (3, 1)))
    with pytest.raises(ft.errors.GradientError, match="allow_int"):
        ft.grad(lambda n: n * 2.0)(3)


def test_leaves_by_path():
    tree = {"a": [1, 2], "b": 3}

    def is_leaf(path, x):
        return ft.tree_util.keystr(path) == "['a']"

    assert ft.tree.leaves_with_path(tree, is_leaf, is_leaf_takes_path=True)[0][1] == [1, 2]
    out = ft.tree.map_with_path(lambda p, x: x, tree, is_leaf=is_leaf, is_leaf_takes_path=True)
    assert out == tree
    assert ft.tree.flatten_with_path(tree, is_leaf, is_leaf_takes_path=True)[1].num_leaves == 2


def test_static_names_of_checkpoint():
    f = ft.checkpoint(lambda x, flag: fnp.sin(x) if flag else x, static_argnames="flag")
    assert ft.grad(f)(1.0, flag=True) == np.cos(1.0)
    assert ft.grad(f)(1.0, flag=False) == 1.0
    g = ft.checkpoint(lambda flag, x: fnp.sin(x) if flag else x, static_argnums=0)
    assert ft.grad(g, argnums=1)(True, 1.0) == np.cos(1.0)


def test_devices():
    (cpu,) = ft.devices()
    x = fnp.zeros(2)
    assert x.device is cpu
    assert x.devices() == {cpu}
    assert x.block_until_ready() is x
    assert (cpu.platform, cpu.id, cpu == "cpu", repr(cpu)) == ("cpu", 0, True, "CpuDevice(id=0)")
    assert pickle.loads(pickle.dumps(cpu)) == copy.deepcopy(cpu) == cpu
    assert np.zeros(2, device=x.device).shape == (2,)
    assert ft.jit(lambda x: fnp.ones(3, device=x.device))(x).device is cpu
    assert (ft.device_count(), ft.local_device_count(), ft.process_count(), ft.process_index()) == (
        1,
        1,
        1,
        0,
    )
    assert ft.default_backend() == "cpu"
    assert ft.local_devices() == [cpu]
    with ft.default_device(cpu), ft.named_scope("block"):
        pass
    for call in (
        lambda: ft.devices("gpu"),
        lambda: ft.device_put(x, "gpu"),
        lambda: ft.default_device("tpu").__enter__(),
    ):
        with pytest.raises(ft.errors.ArgumentValueError, match="one CPU"):
            call()


def test_device_put_and_get():
    own = np.ones(2)
    tree = ft.device_put({"a": own, "b": [1.0, np.int32(2)]})
    own[:] = 5.0
    np.testing.assert_array_equal(tree["a"], 1.0)
    assert isinstance(tree["a"], ft.Array)
    assert isinstance(tree["b"][1], ft.Array)
    back = ft.device_get(tree)
    assert type(back["a"]) is np.ndarray
    assert back["b"][1].dtype == np.int32
    assert ft.grad(lambda x: ft.device_put(x) ** 2)(3.0) == 6.0
    assert ft.block_until_ready(tree) is tree
    with pytest.raises(ft.errors.TracerArrayConversionError):
        ft.jit(ft.device_get)(own)


def test_types():
    assert ft.typeof(1.0).weak_type
    assert not ft.typeof(np.float64(1)).weak_type
    assert ft.typeof(fnp.ones((2, 3), np.float32)) == fnp.ones((2, 3), np.float32).aval
    assert isinstance(ft.typeof(X), ft.core.ShapedArray)
    assert ft.core.ShapedArray((2,), "float32") == fnp.zeros(2, np.float32).aval
    assert ft.jit(lambda x: x.aval.ndim * x)(X).shape == X.shape


def test_an_interpreter_written_for_jax():
    """The inverse of a composition, equation by equation, as JAX's tutorial on interpreters writes it."""
    inverse = {lax.exp_p: fnp.log, lax.tanh_p: fnp.arctanh, lax.neg_p: lambda x: -x}

    def inverted(fun):
        def call(*args):
            closed = ft.make_jaxpr(fun)(*args)
            env = dict(zip(closed.jaxpr.outvars, args))
            env.update(zip(closed.jaxpr.constvars, closed.consts))
            for eqn in closed.jaxpr.eqns[::-1]:
                (y,) = [v.val if isinstance(v, ft.core.Literal) else env[v] for v in eqn.outvars]
                env[eqn.invars[0]] = inverse[eqn.primitive](y)
            return env[closed.jaxpr.invars[0]]

        return call

    x = np.array([0.1, 0.5])
    np.testing.assert_allclose(inverted(lambda x: -fnp.exp(fnp.tanh(x)))(-np.exp(np.tanh(x))), x)


def test_jaxprs_evaluate():
    closed = ft.make_jaxpr(lambda x, y: (fnp.dot(x, X.T), y * 2.0))(X, 1.0)
    out = ft.core.eval_jaxpr(closed.jaxpr, closed.consts, X, 3.0)
    np.testing.assert_allclose(out[0], X @ X.T)
    assert out[1] == 6.0
    assert [a.shape for a in closed.in_avals] == [(2, 3), ()]
    assert [a.shape for a in closed.out_avals] == [(2, 2), ()]
    swapped = ft.core.eval_jaxpr(closed, [2 * c for c in closed.consts], X, 3.0)
    np.testing.assert_allclose(swapped[0], 2 * X @ X.T)
    np.testing.assert_allclose(ft.jit(ft.core.jaxpr_as_fun(closed))(X, 3.0)[0], X @ X.T)
    subfuns, params = closed.eqns[-1].primitive.get_bind_params(closed.eqns[-1].params)
    assert subfuns == []
    assert params == closed.eqns[-1].params


def test_primitives_by_jaxs_names():
    eqn = ft.make_jaxpr(fnp.arcsin)(0.5).eqns[-1]
    assert eqn.primitive is lax.asin_p
    assert lax.scan_p.name == "scan"
    assert lax.while_p.name == "while"
    assert lax.cond_p.name == "cond"
    assert lax.dot_general_p.name == "dot_general"
    with pytest.raises(AttributeError, match="sine_p"):
        _ = lax.sine_p


def test_dtypes():
    from functrans import dtypes

    key = ft.random.key(0)
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key)
    assert np.issubdtype(fnp.stack([key, key]).dtype, dtypes.extended)
    assert not fnp.issubdtype(X.dtype, dtypes.extended)
    assert pickle.loads(pickle.dumps(key)).dtype.type is dtypes.prng_key
    assert (dtypes.itemsize_bits(np.int16), dtypes.scalar_type_of(X > 0)) == (16, bool)
    assert dtypes.result_type(np.float32, 1.0, np.int8) == np.float32
    assert dtypes.result_type(np.int32, np.float32) == np.result_type(np.int32, np.float32)
    with pytest.raises(dtypes.TypePromotionError, match="keys"):
        dtypes.canonicalize_dtype(key.dtype)
    assert dtypes.canonicalize_dtype(key.dtype, allow_extended_dtype=True) == key.dtype
    assert (dtypes.float16, dtypes.itemsize_bits("float16")) == (np.float16, 16)


def test_saved_residuals(capsys):
    from functrans.ad_checkpoint import Recompute, Saveable, print_saved_residuals

    def f(x):
        return fnp.sum(fnp.sin(fnp.sin(x) @ X.T))

    def lines(g):
        print_saved_residuals(g, X)
        return capsys.readouterr().out.splitlines()

    assert [x.split()[2] for x in lines(f)] == ["cos", "cos", "a"]
    assert lines(ft.checkpoint(f)) == ["f64[2,3] from argument 0 ('x')"]
    policy = lambda primitive, *_, **__: Saveable if primitive.name == "dot_general" else Recompute
    assert len(lines(ft.checkpoint(f, policy=policy))) == 2


def test_breakpoint(monkeypatch):
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(sys._getframe(1).f_locals["values"]))

    @ft.jit
    def f(x):
        y, _label = x * 2.0, "not a number"
        ft.debug.breakpoint()
        return y

    f(3.0)
    ft.vmap(f)(np.arange(2.0))
    assert [(sorted(s), float(s["y"])) for s in stops] == [
        (["x", "y"], 6.0),
        (["x", "y"], 0.0),
        (["x", "y"], 2.0),
    ]


def test_what_only_has_a_shape():
    like = ft.ShapeDtypeStruct((2, 3), np.float32)
    for make, value in ((fnp.zeros_like, 0), (fnp.ones_like, 1), (fnp.empty_like, None)):
        assert (make(like).shape, make(like).dtype) == ((2, 3), np.float32)
        if value is not None:
            np.testing.assert_array_equal(make(like), value)
    assert fnp.full_like(like, 3).dtype == np.float32


def test_rows_of_a_traced_array_as_leaves():
    tree = ft.tree.structure({"a": 0, "b": 0})
    f = ft.jit(lambda x: ft.tree.unflatten(tree, x))
    np.testing.assert_array_equal(f(X)["b"], X[1])
    keys = ft.jit(lambda k: ft.tree.unflatten(tree, ft.random.split(k, 2)))(ft.random.key(0))
    assert keys["b"] == ft.random.split(ft.random.key(0), 2)[1]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all"])
def test_where_none_is_everywhere(name):
    extra = {"initial": 0.0} if name in ("max", "min") else {}
    expected = getattr(np, name)(X, axis=1)
    for f in (
        lambda x: getattr(fnp, name)(x, axis=1, where=None, **extra),
        lambda x: getattr(fnp.asarray(x), name)(axis=1, where=None, **extra),
    ):
        if name == "min":
            expected = np.min(X, axis=1, initial=0.0)
        np.testing.assert_allclose(f(X), expected)
        np.testing.assert_allclose(ft.jit(f)(X), expected)


def test_shardings():
    x = fnp.zeros(2)
    cpu = ft.sharding.SingleDeviceSharding(ft.devices()[0])
    assert isinstance(x.sharding, ft.sharding.Sharding)
    assert x.sharding == ft.typeof(x).sharding == cpu
    assert fnp.zeros(3, out_sharding=x.sharding).shape == (3,)
    with pytest.raises(AttributeError, match="Make a mesh of processes"):
        _ = ft.sharding.AbstractMesh
