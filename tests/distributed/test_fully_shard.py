"""`fully_shard`: gradients are those of one process, messages go out in the order of FSDP2, memory is bounded."""

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.distributed import MixedPrecisionPolicy, fully_shard, make_mesh, run_threads
from functrans.errors import ArgumentError, ArgumentValueError, CheckpointError, DtypeError, ShardingError

BLOCKS = [("blocks", i) for i in range(3)]
TOTAL = 12


def parameters(rows=5, blocks=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "blocks": [
            {
                "w": rng.normal(size=(rows, rows)).astype(dtype),
                "b": rng.normal(size=rows).astype(dtype),
                "s": dtype(1.5),
            }
            for _ in range(blocks)
        ],
        "head": rng.normal(size=(rows, 3)).astype(dtype),
    }


def loss(params, x):
    for block in params["blocks"]:
        x = fnp.tanh(x @ block["w"] + block["b"]) * block["s"]
    return fnp.mean((x @ params["head"]) ** 2)


def batch(rank, size, rows=5):
    x = np.random.default_rng(1).normal(size=(TOTAL, rows))
    each = TOTAL // size
    return x[rank * each : (rank + 1) * each]


def on_threads(n, use, **options):
    """``use(model, shards, batch)`` on each of `n` virtual ranks."""
    params = options.pop("params", None) or parameters()
    fun = options.pop("fun", loss)

    def program(mesh):
        model = fully_shard(fun, mesh, **{"groups": BLOCKS, **options})
        shards = model.init(params)
        return use(model, shards, batch(mesh.rank, n))

    return run_threads((n,), ("dp",), program)


def alone():
    return ft.grad(loss)(parameters(), batch(0, 1))


def assert_trees_close(got, expected, rtol=1e-12):
    a, b = ft.tree_util.tree_leaves(got), ft.tree_util.tree_leaves(expected)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=rtol)


FORMS = {
    "eager": ft.grad,
    "jit of grad": lambda model: ft.jit(ft.grad(model)),
    "grad of jit": lambda model: ft.grad(ft.jit(model)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_gradients_are_those_of_one_process(n, form):
    """5 rows on 3 ranks are 2, 2 and 1."""
    outs = on_threads(n, lambda model, shards, x: model.full(FORMS[form](model)(shards, x)))
    for out in outs:
        assert_trees_close(out, alone())


@pytest.mark.parametrize(
    "options",
    [
        {"reshard_after_forward": False},
        {"prefetch": 0},
        {"prefetch": 2},
        {"prefetch": 9},
        {"groups": None},
        {"groups": ["head"]},
        {"groups": [("head",), ("blocks",)]},
        {"groups": [("blocks", 1, "w"), ("blocks", 0), ("blocks", 1, "b"), ("blocks", 1, "s")]},
    ],
    ids=str,
)
def test_every_division_has_the_same_gradients(options):
    outs = on_threads(2, lambda model, shards, x: model.full(ft.jit(ft.grad(model))(shards, x)), **options)
    assert_trees_close(outs[0], alone())
    assert_trees_close(outs[1], alone())


def test_groups_whose_uses_cross_are_gathered_before_their_first_use():
    """a, b, a, b: one part of the program with both; a third that is not used has a gradient of zero."""

    def crossed(params, x):
        y = fnp.sin(x @ params["a"])
        return fnp.sum(fnp.cos(y @ params["b"]) @ params["a"] @ params["b"])

    params = {name: np.random.default_rng(i).normal(size=(5, 5)) for i, name in enumerate("abc")}
    x = batch(0, 2)

    def use(model, shards, _):
        return model.full(ft.grad(model)(shards, x)), list(model.events)

    (got, events), _ = on_threads(2, use, fun=crossed, params=params, groups=["a", "b", "c"])
    assert_trees_close(got, ft.grad(crossed)(params, x))
    assert ("all_gather", "['c']") not in events
    assert events.count(("all_gather", "['a']")) == 2
    assert events.count(("reduce_scatter", "['a']")) == 1


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 4),
    rows=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    width=st.integers(1, 3),
    prefetch=st.integers(0, 2),
    reduce=st.sampled_from(["mean", "sum", 0.25]),
)
def test_any_number_of_rows(n, rows, width, prefetch, reduce):
    """Empty arrays, fewer rows than ranks, numbers: shards and back, and the factor of the sum over ranks."""
    params = {f"p{i}": np.random.default_rng(i).normal(size=(r, width)) for i, r in enumerate(rows)}
    params["number"] = 2.0

    def weighed(params, weight):
        total = params["number"] * sum(fnp.sum(params[f"p{i}"] ** 2) for i in range(len(rows)))
        return weight * total

    def program(mesh):
        groups = [f"p{i}" for i in range(len(rows))]
        model = fully_shard(weighed, mesh, groups=groups, prefetch=prefetch, reduce=reduce)
        shards = model.init(params)
        for i, r in enumerate(rows):
            assert shards[f"p{i}"].shape == (-(-r // n), width)
        return model.full(shards), model.full(ft.grad(model)(shards, float(mesh.rank + 1)))

    factor = {"mean": 1 / n, "sum": 1.0}.get(reduce, reduce) * sum(range(1, n + 1))
    expected = ft.tree_util.tree_map(lambda g: factor * g, ft.grad(weighed)(params, 1.0))
    for whole, gradient in run_threads((n,), ("dp",), program):
        assert_trees_close(whole, params, 0.0)
        assert_trees_close(gradient, expected)


def directional(params):
    return ft.tree_util.tree_map(lambda a: np.random.default_rng(7).normal(size=np.shape(a)), params)


SECOND = {
    "forward over reverse": lambda model, s, x, v: ft.jvp(lambda q: ft.grad(model)(q, x), (s,), (v,))[1],
    "reverse over reverse": lambda model, s, x, v: ft.grad(
        lambda q: sum(
            fnp.vdot(a, b)
            for a, b in zip(ft.tree_util.tree_leaves(ft.grad(model)(q, x)), ft.tree_util.tree_leaves(v))
        )
    )(s),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("order", SECOND)
def test_products_with_the_hessian(order, compiled):
    v = directional(parameters())

    def use(model, shards, x):
        product = SECOND[order]
        f = ft.jit(lambda s, x, v: product(model, s, x, v)) if compiled else lambda *a: product(model, *a)
        return model.full(f(shards, x, model.init(v)))

    whole = batch(0, 1)
    expected = ft.jvp(lambda p: ft.grad(loss)(p, whole), (parameters(),), (v,))[1]
    for out in on_threads(2, use):
        assert_trees_close(out, expected)


def test_vmap_over_arguments_sends_one_message():
    def use(model, shards, x):
        model.events.clear()
        return ft.vmap(ft.grad(model), in_axes=(None, 0))(shards, x[:, None]), list(model.events)

    outs = on_threads(2, use)
    for gradients, events in outs:
        assert [g for e, g in events if e == "reduce_scatter"].count("root") == 1
        assert gradients["head"].shape == (6, 3, 3)
    pairs = [batch(r, 2) for r in range(2)]
    first = [ft.grad(loss)(parameters(), x[:1])["head"] for x in pairs]
    got = np.concatenate([outs[r][0]["head"][0] for r in range(2)])[:5]
    np.testing.assert_allclose(got, (first[0] + first[1]) / 2, rtol=1e-12)


# --- the order of things --------------------------------------------------------------------------------------


def events_of(form, **options):
    def use(model, shards, x):
        FORMS[form](model)(shards, x)
        return [f"{event} {group.replace('blocks', 'b')}" for event, group in model.events]

    return on_threads(2, use, **options)[0]


@pytest.mark.parametrize("form", FORMS)
def test_events(form):
    """Those of FSDP2: the next group leaves before one computes, backward in reverse order; the root stays."""
    assert events_of(form) == [
        "lazy_init root", "pre_forward root", "all_gather root", "all_gather ['b'][0]",
        "pre_forward ['b'][0]", "all_gather ['b'][1]", "post_forward ['b'][0]", "reshard ['b'][0]",
        "pre_forward ['b'][1]", "all_gather ['b'][2]", "post_forward ['b'][1]", "reshard ['b'][1]",
        "pre_forward ['b'][2]", "post_forward ['b'][2]", "reshard ['b'][2]", "post_forward root",
        "pre_backward root", "pre_backward ['b'][2]", "all_gather ['b'][2]", "all_gather ['b'][1]",
        "post_backward ['b'][2]", "reshard ['b'][2]", "reduce_scatter ['b'][2]",
        "pre_backward ['b'][1]", "all_gather ['b'][0]",
        "post_backward ['b'][1]", "reshard ['b'][1]", "reduce_scatter ['b'][1]",
        "pre_backward ['b'][0]",
        "post_backward ['b'][0]", "reshard ['b'][0]", "reduce_scatter ['b'][0]",
        "post_backward root", "reduce_scatter root", "final_callback root",
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_without_reshard_the_backward_pass_gathers_nothing(form):
    events = events_of(form, reshard_after_forward=False)
    forward, backward = (
        events[: events.index("post_forward root")],
        events[events.index("post_forward root") :],
    )
    assert sum(e.startswith("all_gather") for e in forward) == 4
    assert not any(e.startswith("all_gather") for e in backward)
    assert not any(e.startswith("reshard") for e in forward)
    assert sum(e.startswith("reduce_scatter") for e in backward) == 4


def test_without_prefetch_groups_are_gathered_when_they_are_used():
    events = events_of("jit of grad", prefetch=0)
    for i, event in enumerate(events):
        if event.startswith("all_gather ['b']"):
            assert events[i - 1].split(" ", 1)[0] in ("pre_forward", "pre_backward")
            assert events[i - 1].split(" ", 1)[1] == event.split(" ", 1)[1]


def test_a_second_step_begins_as_the_first_but_for_lazy_init():
    def use(model, shards, x):
        step = ft.jit(ft.grad(model))
        step(shards, x)
        first = list(model.events)
        model.events.clear()
        step(shards, x)
        return first, list(model.events)

    first, second = on_threads(2, use)[0]
    assert first[1:] == second
    assert first[0] == ("lazy_init", "root")


def test_states_and_functions_at_events():
    def use(model, shards, x):
        seen = []
        root, *blocks = model.states
        handle = blocks[0].register("post_backward", lambda state: seen.append(state.training_state.name))
        removed = root.register("final_callback", seen.append)
        removed.remove()
        removed.remove()
        step = ft.jit(ft.grad(model))
        step(shards, x)
        handle.remove()
        step(shards, x)
        return seen, model.states

    (seen, states), _ = on_threads(2, use)
    assert seen == ["POST_BACKWARD"]
    assert [s.group for s in states] == ["root", *[f"['blocks'][{i}]" for i in range(3)]]
    assert [s.is_root for s in states] == [True, False, False, False]
    assert states[0].names == ("['head']",)
    assert states[1].names == ("['blocks'][0]['b']", "['blocks'][0]['s']", "['blocks'][0]['w']")
    assert all(s.comm_ctx is states[0].comm_ctx for s in states)
    assert {s.training_state.name for s in states} == {"IDLE"}


def test_a_pass_that_an_error_ends_leaves_nothing_behind():
    """The groups that it had sent for are not those of the next pass."""

    def fails(params, x):
        y = fnp.sin(x @ params["a"])
        y = ft.pure_callback(check, ft.ShapeDtypeStruct(y.shape, y.dtype), y)
        return fnp.sum(y @ params["b"])

    failing = []

    def check(y):
        if failing:
            raise RuntimeError("on purpose")
        return y

    def program(mesh):
        model = fully_shard(fails, mesh, groups=["a", "b"])
        first = model.init({"a": np.eye(3), "b": np.eye(3)})
        second = model.init({"a": np.eye(3), "b": 2 * np.eye(3)})
        failing.append(True)
        with pytest.raises(Exception, match="on purpose"):
            model(first, np.ones((2, 3)))
        failing.clear()
        return model(second, np.ones((2, 3)))

    mesh = make_mesh((1,), ("dp",), backend="self")
    assert float(program(mesh)) == pytest.approx(2 * 6 * np.sin(1.0), rel=1e-12)
    mesh.close()


# --- precision ------------------------------------------------------------------------------------------------


def test_mixed_precision_has_wide_masters():
    policy = MixedPrecisionPolicy(
        param_dtype=np.float32, reduce_dtype=np.float64, output_dtype=np.float64, cast_forward_inputs=True
    )

    def use(model, shards, x):
        value, gradient = ft.value_and_grad(model)(shards, x)
        return value, model.full(gradient)

    def by_hand(rank):
        """The recipe: cast, compute, cast back, and take the mean in double precision."""
        narrow = ft.tree_util.tree_map(lambda a: np.asarray(a, np.float32), parameters())
        g = ft.grad(loss)(narrow, batch(rank, 2).astype(np.float32))
        return ft.tree_util.tree_map(lambda a: np.asarray(a, np.float64), g)

    expected = ft.tree_util.tree_map(lambda a, b: (a + b) / 2, by_hand(0), by_hand(1))
    for value, gradient in on_threads(2, use, mp_policy=policy):
        assert value.dtype == np.float64
        assert {leaf.dtype for leaf in ft.tree_util.tree_leaves(gradient)} == {np.dtype(np.float64)}
        assert_trees_close(gradient, expected, 1e-15)


@pytest.mark.parametrize("dtype", [fnp.bfloat16, np.float16, np.float32, np.complex128])
def test_means_in_every_dtype(dtype):
    """1 and 2 on two ranks: 1.5, not 3."""

    def gradient(mesh):
        model = fully_shard(lambda p, x: fnp.sum(p["a"] * x).real, mesh)
        shards = model.init({"a": fnp.ones(3, dtype)})
        return model.full(ft.grad(model)(shards, fnp.ones(3, dtype) * (1 + mesh.rank)))["a"]

    for g in run_threads(2, "dp", gradient):
        assert g.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(g).astype(complex), 1.5)


def test_a_policy_holds_for_bfloat16():
    seen = []

    def result(mesh):
        def f(p, x):
            seen.append((p["a"].dtype, x.dtype))
            return fnp.sum(p["a"] * x)

        policy = MixedPrecisionPolicy(param_dtype=np.float32, output_dtype=np.float64)
        model = fully_shard(f, mesh, mp_policy=policy)
        return model(model.init({"a": fnp.ones(3, fnp.bfloat16)}), fnp.ones(3, fnp.bfloat16)).dtype

    assert run_threads(2, "dp", result) == [np.float64] * 2
    assert set(seen) == {(np.dtype(np.float32), np.dtype(np.float32))}


def test_a_reduce_dtype_like_that_of_parameters_says_nothing():
    assert MixedPrecisionPolicy(param_dtype="float32", reduce_dtype=np.float32).reduce_dtype is None


# --- memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("form", ["forward", *FORMS])
def test_few_groups_are_whole_at_once(form, prefetch):
    """Above shards and gradients: `prefetch` + 1 groups; the cotangents of one, and what is sent of them."""
    n, count = 200, 10
    nbytes = 8 * n * n
    params = {"b": [{"w": np.eye(n)} for _ in range(count)]}

    def deep(params, x):
        for block in params["b"]:
            x = fnp.tanh(x @ block["w"])
        return fnp.sum(x)

    with make_mesh((1,), ("dp",), backend="self") as mesh, ft.config.patch(checked=False):
        model = fully_shard(deep, mesh, groups=[("b", i) for i in range(count)], prefetch=prefetch)
        shards = model.init(params)
        f = {"forward": ft.jit, **FORMS}[form](model)
        f(shards, np.ones((2, n)))
        gc.collect()
        tracemalloc.start()
        out = f(shards, np.ones((2, n)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    results = 0 if form == "forward" else count
    del out
    assert peak < nbytes * (results + prefetch + 1 + (4.5 if results else 3.0))


# --- files ----------------------------------------------------------------------------------------------------


def test_shards_on_disk_load_on_any_number_of_ranks(tmp_path):
    params = parameters()

    def save(mesh):
        model = fully_shard(loss, mesh)
        model.save(tmp_path, model.init(params))

    run_threads((3,), ("dp",), save)

    def load(mesh):
        model = fully_shard(loss, mesh, groups=BLOCKS)
        shards = model.load(tmp_path)  # without init
        assert ft.tree_util.tree_structure(shards) == ft.tree_util.tree_structure(params)
        return model.full(shards), model.full(ft.grad(model)(shards, batch(mesh.rank, 2)))

    for whole, gradient in run_threads((2,), ("dp",), load):
        assert_trees_close(whole, params, 0.0)
        assert_trees_close(gradient, alone())
    victim = next(iter(sorted(tmp_path.glob("*.shard"))))
    data = bytearray(victim.read_bytes())
    data[5] ^= 1
    victim.write_bytes(data)
    with (
        make_mesh((1,), ("dp",), backend="self") as mesh,
        pytest.raises(CheckpointError, match=victim.name),
    ):
        fully_shard(loss, mesh).load(tmp_path)


# --- bad input ------------------------------------------------------------------------------------------------


@pytest.fixture
def mesh():
    with make_mesh((1,), ("dp",), backend="self") as mesh:
        yield mesh


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"axis": "tp"}, ShardingError, "no axis 'tp'"),
        ({"groups": [("blocks", 0), ("blocks",)]}, ShardingError, "have the same parameters"),
        ({"groups": [()]}, ShardingError, "empty"),
        ({"groups": "blocks"}, ArgumentError, "list of key-path prefixes"),
        ({"prefetch": -1}, ArgumentValueError, "prefetch"),
        ({"reduce": "max"}, ArgumentValueError, "reduce"),
        ({"reduce": None}, ArgumentError, "'mean', 'sum' or a number, got None"),
        ({"mp_policy": "float32"}, ArgumentValueError, "MixedPrecisionPolicy"),
    ],
)
def test_bad_options(mesh, options, kind, words):
    with pytest.raises(kind, match=words):
        fully_shard(loss, mesh, **options)


@pytest.mark.parametrize("field", ["param_dtype", "reduce_dtype", "output_dtype"])
@pytest.mark.parametrize("dtype", ["int8", bool, complex, "floaty", 3])
def test_dtypes_that_are_no_floats(field, dtype):
    with pytest.raises(DtypeError, match=f"MixedPrecisionPolicy: {field}"):
        MixedPrecisionPolicy(**{field: dtype})


def test_bad_parameters(mesh):
    w = np.ones((2, 2))
    with pytest.raises(ShardingError, match=r"no parameter is in the group \('blok',\).*\['head'\]"):
        fully_shard(loss, mesh, groups=[("blok",)]).init(parameters())
    with pytest.raises(ShardingError, match=r"\['a'\] and \['b'\] are one array in two groups"):
        fully_shard(loss, mesh, groups=["a", "b"]).init({"a": w, "b": w})
    with pytest.raises(ShardingError, match=r"\['a'\] is float64, \['b'\] is float32"):
        fully_shard(loss, mesh).init({"a": w, "b": w.astype(np.float32)})
    with pytest.raises(ShardingError, match="mesh must be a mesh"):
        fully_shard(loss, None)


def test_bad_calls():
    with make_mesh((1,), ("dp",), backend="self") as mesh:
        model = fully_shard(loss, mesh)
        with pytest.raises(ArgumentError, match=r"fully_shard of loss: .* positional arguments only, got x="):
            model({}, x=1.0)
        model.init(parameters())
        with pytest.raises(ArgumentError, match="must be a function, got '3'"):
            model.states[0].register("pre_forward", 3)
        model = fully_shard(loss, mesh)
        with pytest.raises(ShardingError, match=r"init\(params\) or load"):
            model(parameters(), batch(0, 1))
        shards = model.init(parameters())
        with pytest.raises(ShardingError, match="another structure"):
            model({"head": shards["head"]}, batch(0, 1))
        with pytest.raises(ShardingError, match=r"\['head'\] has the shape \(4, 3\)"):
            model({**shards, "head": np.ones((4, 3))}, batch(0, 1))
        with pytest.raises(ArgumentValueError, match="final_callback"):
            model.states[0].register("at_last", print)
    mesh.close()  # leaving a mesh of one rank does not: it can be entered again
    with pytest.raises(ShardingError, match="the mesh is closed"):
        model(shards, batch(0, 1))


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes(on_ranks, n):
    done = on_ranks(n, "sharded.py", n)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "equal\n"
