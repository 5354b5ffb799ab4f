"""A program for JAX that uses, name by name, what its libraries need: it runs on JAX 0.10.2 and on functrans alike.

Each function is a check, of one name or a few that go together. It prints those that fail, and exits with their number.
"""

import functools
import pathlib
import sys
import tempfile
import traceback
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_num_cpu_devices", 1)
X = np.linspace(0.2, 1.4, 6, dtype="f4").reshape(2, 3)


def same(found, expected, tol=1e-6):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tol, atol=tol)


def raises(kind, f, *args, text=""):
    try:
        f(*args)
    except kind as error:
        if text in str(error):
            return
        raise
    raise AssertionError(f"no {kind} was raised")


class Node:
    """A node of trees whose auxiliary data may be unhashable."""

    def __init__(self, child, aux):
        self.child, self.aux = child, aux


jax.tree_util.register_pytree_node(Node, lambda n: ((n.child,), n.aux), lambda aux, c: Node(*c, aux))


class Sizes:
    """A shape that is no `collections.abc.Sequence`."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        return self.sizes[i]


class Held:
    """An object that says which array it is."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)


# --- traced values, trees and types ---------------------------------------------------------------------------


def ensure_compile_time_eval_lets_traced_values_pass():
    def f(x):
        with jax.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.arange(4)))
            y = jnp.sin(x) * 2.0
        return y * jnp.ones(n)

    same(jax.jit(f)(0.5), 2 * np.sin(0.5) * np.ones(6))
    same(jax.grad(lambda x: f(x).sum())(0.5), 12 * np.cos(0.5))
    same(jax.jit(jax.vmap(f))(X[0]), 2 * np.sin(X[0])[:, None] * np.ones(6))


def auxiliary_data_may_be_unhashable():
    f = lambda n: Node(jnp.sin(n.child), n.aux)
    for aux in ([1, 2], {"a": [3]}, {1, 2}):
        same(jax.vmap(f)(Node(X, aux)).child, np.sin(X))
        out = jax.grad(lambda n: f(n).child.sum())(Node(X, aux))
        same(out.child, np.cos(X))
        assert out.aux == aux
        assert jax.tree.structure(Node(1, aux)) == jax.tree.structure(Node(2, aux))
        assert jax.tree.map(lambda a, b: a + b, Node(1, aux), Node(2, aux)).child == 3
        same(lax.scan(lambda c, _: (f(c), None), Node(X, aux), None, length=2)[0].child, np.sin(np.sin(X)))


def shapes_and_dtypes_of_structs():
    s = jax.ShapeDtypeStruct((2, 3), jnp.complex64)
    assert jnp.shape(s) == (2, 3)
    assert jnp.ndim(s) == 2
    assert jnp.size(s) == 6
    assert jnp.result_type(s) == jnp.result_type(s, jnp.float32) == np.complex64
    assert jnp.iscomplexobj(s)
    assert not jnp.iscomplexobj(jax.ShapeDtypeStruct((), jnp.float32))
    assert lax.dtype(s) == jnp.complex64
    assert jax.tree.leaves(jax.eval_shape(lambda x: x, s)) == [s]
    assert jnp.zeros_like(s).shape == jnp.ones_like(s).shape == jnp.empty_like(s).shape == (2, 3)
    assert jnp.full_like(s, 2.0).dtype == np.complex64


def structs_are_results_under_eval_shape():
    s = jax.ShapeDtypeStruct((4,), jnp.float32)
    found = jax.eval_shape(lambda x: (s, x + 1.0), jax.ShapeDtypeStruct((2,), jnp.float32))
    assert (found[0].shape, found[1].shape) == ((4,), (2,))


def shapes_are_sequences():
    for shape in ([2, 3], np.array([2, 3]), (np.int32(2), np.int64(3)), Sizes(2, 3)):
        assert jnp.zeros(shape).shape == (2, 3)
        assert jnp.broadcast_to(1.0, shape).shape == (2, 3)
        assert jnp.reshape(jnp.arange(6), shape).shape == (2, 3)
    assert jax.random.normal(jax.random.key(0), [2, 3]).shape == (2, 3)
    assert jax.random.normal(jax.random.key(0), Sizes(2, 3)).shape == (2, 3)


def zero_from_primal_of_trees():
    tree = {"w": jnp.ones((2, 3)), "n": (jnp.arange(3), 1.0)}
    zero = jax.custom_derivatives.zero_from_primal(tree)
    f = jax.custom_jvp(lambda p: p)
    f.defjvp(lambda primals, tangents: (primals[0], jax.custom_derivatives.zero_from_primal(primals[0])))
    for g in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        assert g(lambda w: f({"w": w, "n": (jnp.arange(3), w)})["w"])(3.0) == 0.0
    assert zero["w"].shape == (2, 3)
    assert zero["n"][0].dtype == jax.dtypes.float0
    symbolic = jax.custom_derivatives.zero_from_primal(tree, symbolic_zeros=True)
    assert all(isinstance(z, jax.custom_derivatives.SymbolicZero) for z in (symbolic["w"], *symbolic["n"]))


def jax_arrays_of_objects():
    h = Held(X)
    same(jnp.asarray(h), X)
    same(jnp.array(h), X)
    same(jnp.ones((2, 3)) * h, X)
    same(jax.jit(lambda: jnp.exp(jnp.asarray(h)))(), np.exp(X))
    same(jax.grad(lambda x: jnp.sum(jnp.sin(jnp.asarray(Held(x)))))(X), np.cos(X))


def types_of_tangents():
    aval = jax.typeof(jnp.ones((2, 3)))
    assert aval.to_tangent_aval() == aval
    whole = jax.typeof(jnp.arange(3)).to_tangent_aval()
    assert (whole.shape, whole.dtype) == ((3,), jax.dtypes.float0)
    assert aval.update(shape=(4,)).shape == (4,)
    assert aval.update(dtype=np.dtype("int32")).dtype == np.int32


def dtypes_cast_traced_values():
    same(jax.jit(lambda x: jnp.float32(x) + jnp.int32(x))(1.5), 2.5)
    assert jax.jit(jnp.int32)(2.7).dtype == np.int32
    assert jnp.float32.dtype == np.float32
    assert jnp.dtype(jnp.bfloat16) == jnp.bfloat16.dtype


def operators_of_other_objects():
    class K:
        def __rmul__(self, x):
            return "rmul"

        def __rpow__(self, x):
            return "rpow"

    assert jnp.ones(2) * K() == "rmul"
    assert jnp.ones(2) ** K() == "rpow"


# --- primitives, rules and traces ------------------------------------------------------------------------------


def primitives_with_rules():
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    cube = Primitive("cube")
    cube.def_impl(lambda x: x**3)
    cube.def_abstract_eval(lambda x: x)
    ad.defjvp(cube, lambda t, x: 3.0 * x**2 * t)
    batching.defvectorized(cube)
    mlir.register_lowering(cube, mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
    same(jax.jit(jax.vmap(jax.grad(cube.bind)))(X[0]), 3 * X[0] ** 2)

    scaled = Primitive("scaled")
    scaled.def_impl(lambda x, *, by: x * by)
    scaled.def_abstract_eval(lambda x, *, by: x)
    ad.primitive_jvps[scaled] = lambda xs, ts, *, by: (scaled.bind(*xs, by=by), scaled.bind(*ts, by=by))
    ad.primitive_transposes[scaled] = lambda ct, x, *, by: [scaled.bind(ct, by=by)]
    batching.primitive_batchers[scaled] = lambda xs, dims, *, by: (scaled.bind(*xs, by=by), dims[0])
    mlir.register_lowering(scaled, mlir.lower_fun(lambda x, *, by: x * by, multiple_results=False))
    f = lambda x: scaled.bind(x, by=2.5)
    same(jax.grad(f)(1.0), 2.5)
    same(jax.jit(jax.vmap(f))(X), 2.5 * X)
    assert scaled in ad.primitive_jvps
    assert scaled.name == "scaled"

    pair = Primitive("pair")
    pair.multiple_results = True
    pair.def_impl(lambda x: [x + 1, x * 2])
    pair.def_abstract_eval(lambda x: [x, x])
    mlir.register_lowering(pair, mlir.lower_fun(lambda x: [x + 1, x * 2], multiple_results=True))
    a, b = jax.jit(pair.bind)(3.0)
    assert (float(a), float(b)) == (4.0, 6.0)


def jaxprs_are_functions():
    from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun

    closed = jax.make_jaxpr(lambda x: (jnp.sin(x) * 2.0,))(X)
    assert isinstance(closed, ClosedJaxpr | Jaxpr)
    (out,) = jaxpr_as_fun(closed)(X)
    same(out, 2 * np.sin(X))
    eqns = closed.jaxpr.eqns
    assert all(isinstance(e, JaxprEqn) for e in eqns)
    assert str(eqns[0].primitive) == "sin"
    assert isinstance(eqns[0].invars[0], Var)
    assert any(isinstance(v, Literal) for v in eqns[1].invars)
    assert [v.aval.shape for v in closed.jaxpr.outvars] == [(2, 3)]
    (again,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, X)
    same(again, out)


def traces():
    from jax._src.core import trace_state_clean

    outside = jax.core.get_opaque_trace_state()
    states = []

    def f(x):
        states.append((jax.core.get_opaque_trace_state(), trace_state_clean()))
        return x

    jax.jit(f)(1.0)
    assert outside == jax.core.get_opaque_trace_state() != states[0][0]
    assert trace_state_clean()
    assert not states[0][1]
    assert jax.typeof(1.0).shape == ()
    assert isinstance(jax.typeof(X), jax.core.AbstractValue | jax.core.ShapedArray)


def linear_util_and_partial_eval():
    from jax.extend import linear_util as lu

    @lu.transformation
    def doubled(*args):
        out = yield [2.0 * a for a in args], {}
        yield out + 1.0

    wrapped = lu.wrap_init(lambda a: a**2, debug_info=jax.api_util.debug_info("f", lambda a: a, (1.0,), {}))
    assert doubled(wrapped).call_wrapped(3.0) == 37.0
    from jax.interpreters import partial_eval as pe

    assert pe.PartialVal.known(1.0).is_known()
    assert not pe.PartialVal.unknown(jax.typeof(1.0)).is_known()


# --- stages and compiling ------------------------------------------------------------------------------------


def stages():
    jitted = jax.jit(lambda x: jnp.sin(x) @ x.T)
    assert isinstance(jitted, jax.stages.Wrapped)
    traced = jitted.trace(X)
    assert isinstance(traced, jax.stages.Traced)
    assert traced.out_info.shape == (2, 2)
    lowered = traced.lower()
    assert isinstance(lowered, jax.stages.Lowered)
    assert isinstance(lowered.as_text(), str)
    assert lowered.compiler_ir() is not None
    assert lowered.out_info.shape == (2, 2)
    assert jax.tree.leaves(lowered.args_info)[0].shape == (2, 3)
    assert lowered.in_tree == jax.tree.structure(((0,), {}))
    compiled = lowered.compile(compiler_options={})
    assert isinstance(compiled, jax.stages.Compiled)
    same(compiled(X), np.sin(X) @ X.T)
    assert compiled.in_tree == lowered.in_tree
    assert compiled.out_tree == jax.tree.structure(0)
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().argument_size_in_bytes == X.nbytes
    assert isinstance(compiled.as_text(), str)
    assert jitted.eval_shape(X).shape == (2, 2)


def pointers_of_arrays():
    x = jnp.arange(4.0)
    assert x.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() > 0
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert x.block_until_ready() is x
    assert x.on_device_size_in_bytes() == 16
    assert list(x.devices()) == [x.device] == [jax.devices()[0]]
    same(jax.jit(lambda x: jax.device_get({"traced": x})["traced"] * 2)(x), [0, 2, 4, 6])


def options():
    assert len(jax.devices()) == jax.device_count() == jax.local_device_count() == 1
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_platform_name", "cpu")
    jax.config.update("jax_debug_nans", False)
    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_default_matmul_precision", None)
    assert jax.config.jax_enable_x64 is jax.config.read("jax_enable_x64")
    assert jax.default_backend() == "cpu"
    with jax.enable_x64(True):
        assert jnp.ones(2).dtype == np.float64
    assert jnp.ones(2).dtype == np.float32


# --- shardings of one device ---------------------------------------------------------------------------------


def shardings_of_one_device():
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

    device = jax.devices()[0]
    one = SingleDeviceSharding(device)
    assert one == jnp.ones(2).sharding
    assert isinstance(one, Sharding)
    for mesh in (
        Mesh(np.array(jax.devices()), ("i",)),
        jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,)),
        Mesh([device], "i"),
    ):
        assert mesh.shape["i"] == mesh.size == 1
        assert tuple(mesh.axis_names) == ("i",)
        assert not mesh.empty
        assert list(np.ravel(mesh.devices)) == [device]
        spec = PartitionSpec("i", None)
        sharding = NamedSharding(mesh, spec)
        assert isinstance(sharding, Sharding)
        assert sharding.spec == spec
        assert sharding.mesh == mesh
        assert sharding.shard_shape((2, 3)) == (2, 3)
        assert sharding.is_fully_replicated
        assert set(sharding.device_set) == {device}
        same(jax.device_put(X, sharding), X)
        same(jax.jit(lambda x, s=sharding: lax.with_sharding_constraint(x, s) + 1)(X), X + 1)
        same(jax.jit(lambda x: x * 2, in_shardings=sharding, out_shardings=sharding)(X), 2 * X)
        same(
            jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec())(X),
            X,
        )
        with mesh:
            same(jax.jit(jnp.sin)(X), np.sin(X))
        jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=sharding)
    assert PartitionSpec("i", None) != PartitionSpec(None, "i")
    same(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(X[:1]), X[:1])
    none = jax.sharding.get_abstract_mesh()
    assert none.empty
    assert none.axis_sizes == none.axis_names == none.shape_tuple == none.manual_axes == none.auto_axes == ()


def errors_of_callbacks():
    class OwnError(Exception):
        """What a library raises."""

    def fails(x):
        raise OwnError("too large")

    def checked(x):
        jax.debug.callback(fails, x)
        return x + 1.0

    def looped(x):
        return lax.fori_loop(0, 3, lambda i, x: jax.pure_callback(fails, jax.typeof(x), x), x)

    def finished(f):
        jax.block_until_ready(f(jnp.float32(1.0)))
        jax.effects_barrier()

    for f in (jax.jit(checked), jax.jit(looped), looped, jax.jit(lambda x: lax.map(checked, x[None]))):
        raises(jax.errors.JaxRuntimeError, finished, f, text="OwnError: too large")
    raises(OwnError, checked, 1.0)


# --- types, dtypes, symbolic zeros ----------------------------------------------------------------------------


def types_for_annotations():
    from jax.typing import ArrayLike, DTypeLike  # noqa: F401

    assert isinstance(jnp.ones(2), jax.Array)
    seen = []
    jax.jit(lambda x: seen.append((isinstance(x, jax.Array), isinstance(x, jax.core.Tracer))) or x)(1.0)
    assert seen == [(True, True)]


def dtypes():
    d = jax.dtypes
    assert d.canonicalize_dtype("float64") == np.float32
    assert d.result_type(np.int8, 1.0) == np.float32
    assert d.issubdtype(np.float32, np.floating)
    assert d.issubdtype(jax.random.key(0).dtype, d.prng_key)
    assert d.float0 == np.dtype([("float0", "V")])
    assert d.scalar_type_of(np.float32(1)) is float
    assert jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.int8).max == 127
    assert jnp.promote_types("int8", "uint8") == np.int16
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)


def symbolic_zeros_reach_rules():
    seen = []

    @jax.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        seen.append([type(t) is jax.custom_derivatives.SymbolicZero for t in tangents])
        x, y = primals
        return f(x, y), tangents[0] * y

    f.defjvp(rule, symbolic_zeros=True)
    same(jax.grad(f)(2.0, 3.0), 3.0)
    assert seen[-1] == [False, True]


def hijax_of_nnx():
    from jax.experimental import hijax

    assert all(hasattr(hijax, name) for name in ("HiPrimitive", "HiType", "MutableHiType", "register_hitype"))


# --- arguments of functions that JAX takes -----------------------------------------------------------------


def objects_pass_through_vmap():
    same(jax.vmap(lambda x: 2.0, out_axes=None)(X), 2.0)
    forwarded = lambda x, c: lax.cond(True, lambda c: c, lambda c: c + 1, c)
    same(jax.vmap(forwarded, (0, None), out_axes=None)(X, 3.0), 3.0)
    same(jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X[0]), X[0].sum())


def keywords_and_batches():
    x = jnp.arange(4.0)
    same(x.at[-1].set(9.0, mode="drop", wrap_negative_indices=False), np.arange(4.0))
    same(lax.dot(jnp.ones((2, 3), "float32"), jnp.ones(3, "float32")), [3, 3])
    values, indices = lax.top_k(x, 2)
    assert indices.dtype == np.int32
    same(values, [3, 2])
    same(jnp.vecdot(X, X, axis=0), (X * X).sum(0))
    same(jnp.vectorize(lambda a, b: a if b is None else b, signature="()->()", excluded={1})(X, None), X)
    a = np.stack([np.eye(2, dtype="f4"), 2 * np.eye(2, dtype="f4")])
    same(jax.vmap(lambda a: jax.scipy.linalg.solve_sylvester(a, a, X[:, :2]))(a)[1], X[:, :2] / 4)
    solution, *_ = jnp.linalg.lstsq(X.T, X.T[:, 0], numpy_resid=True)
    same(solution, [1, 0], 1e-4)
    assert jax.nn.softmax(jnp.zeros((0,))).shape == (0,)
    z = X + 1j
    same(jax.scipy.special.logsumexp(z), np.log(np.exp(z).sum()), 1e-5)
    from jax.experimental.ode import odeint

    same(odeint(lambda y, t: (-y[0], y[0]), (1.0, 0.0), jnp.array([0.0, 1.0]))[0][-1], np.exp(-1.0), 1e-4)
    same(jax.jacfwd(lambda t: jnp.exp(1j * t))(0.5), 1j * np.exp(0.5j))
    same(jax.scipy.special.polygamma(jnp.array([1, 2]), 1.0), [np.pi**2 / 6, -2.4041138], 1e-5)


def random_keys_of_negative_seeds():
    for seed in (-1, np.int32(-1), np.int64(-1)):
        assert jax.random.key_data(jax.random.key(seed)).tolist()[1] == 4294967295


def products_of_rows_in_groups():
    matrices = jnp.arange(12.0).reshape(2, 3, 2)
    sizes = jnp.array([0, 1])
    f = lambda x, y: lax.ragged_dot(x, y, sizes)
    same(jax.jit(f)(X, matrices), [X[0] @ np.asarray(matrices[1]), [0, 0]])
    of_x, of_y = jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(X, matrices)
    same(of_x, [np.asarray(matrices[1]).sum(1), [0, 0, 0]])
    same(of_y, [np.zeros((3, 2)), np.stack([X[0], X[0]], 1)])
    assert f(X, matrices).dtype == np.float32
    raises(TypeError, lambda: lax.ragged_dot(X, matrices, jnp.array([0.5, 1.0])))
    raises(TypeError, lambda: lax.ragged_dot(X, matrices[:1], sizes))
    sums = lax.RaggedDotDimensionNumbers((([0], [0]), ([], [])), [0], [])
    same(lax.ragged_dot_general(X, X, sizes, sums), [np.zeros((3, 3)), np.outer(X[0], X[0])])


def what_the_compiler_is_told():
    square = lambda x: x * x
    for run in (lambda f: f, jax.jit):
        same(run(lambda x: lax.platform_dependent(x, cpu=square, tpu=jnp.sin))(X), X * X)
        same(run(lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=square))(X), X * X)
        raises(NotImplementedError, run(lambda x: lax.platform_dependent(x, tpu=square)), X)
    same(jax.grad(lambda x: lax.platform_dependent(x, cpu=square, default=jnp.sin))(3.0), 6.0)
    raises(ValueError, lambda: lax.platform_dependent(X, gpu=square), text="cuda")
    raises(TypeError, lambda: lax.platform_dependent(X, cpu=3), text="cpu")
    raises(TypeError, lambda: lax.platform_dependent(X, cpu=square, default=3), text="default")

    @functools.partial(lax.composite, name="my.scaled")
    def scaled(x, /, *, by, shift=None):
        return {"out": x["in"] * by + (0.0 if shift is None else shift)}

    same(scaled({"in": X}, by=np.float32(2.0))["out"], 2 * X)
    same(jax.jit(lambda x: scaled({"in": x}, by=3.0, shift=None))(X)["out"], 3 * X)
    raises(jax.errors.UnexpectedTracerError, jax.jit(lambda x: scaled({"in": X}, by=x)), 2.0)
    raises(TypeError, lambda: scaled({"in": "text"}, by=2.0))

    drawn = [np.asarray(lax.rng_uniform(np.float32(2), np.float32(3), (50,))) for _ in range(2)]
    assert drawn[0].dtype == np.float32
    assert (drawn[0] >= 2).all()
    assert (drawn[0] < 3).all()
    assert (drawn[0] != drawn[1]).any()
    assert set(np.asarray(lax.rng_uniform(np.int32(1), np.int32(4), (99,)))) == {1, 2, 3}
    raises(ValueError, lambda: lax.rng_uniform(jnp.zeros(2), jnp.ones(2), (2,)))
    same(jax.grad(lambda x: x * lax.rng_uniform(1.0, 1.0001, ()))(3.0), 1.0, 1e-3)

    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    tree = {"a": X, "b": X[0]}
    for shardings in (rows, {"a": rows, "b": rows}):
        out = lax.with_sharding_constraint(tree, shardings)
        same(out["b"], X[0])
    raises(ValueError, lambda: lax.with_sharding_constraint(tree, {"a": rows}))
    raises(ValueError, lambda: lax.with_sharding_constraint(X, None))
    too_many = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "i"))
    raises(ValueError, lambda: lax.with_sharding_constraint(X[0], too_many))


def profiles_without_a_block():
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder)
        raises(RuntimeError, lambda: jax.profiler.start_trace(folder))
        with jax.profiler.StepTraceAnnotation("train", step_num=3):
            same(jax.jit(lambda x: lax.exp(x, accuracy=lax.AccuracyMode.DEFAULT))(X), np.exp(X))
        jax.profiler.stop_trace()
        assert list(pathlib.Path(folder).glob("plugins/profile/*/*"))
    raises(RuntimeError, jax.profiler.stop_trace)
    assert jax.NamedSharding is jax.sharding.NamedSharding


CHECKS = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__ and callable(f)
          and not isinstance(f, type) and f.__name__ not in ("same", "raises")]  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    failed = 0
    for check in CHECKS:
        try:
            check()
        except Exception:
            failed += 1
            print(f"--- {check.__name__}")
            traceback.print_exc(limit=-4, file=sys.stdout)
    side = "functrans" if hasattr(jax, "__functrans__") else "jax"
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks pass on {side}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
