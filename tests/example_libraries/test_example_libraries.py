"""The optimisers and networks against JAX's recorded results, and what is not JAX's."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.example_libraries import optimizers, stax

sys.path.insert(0, str(Path(__file__).parent))

import programs

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())


def optimized(name, compiled=lambda f: f, params=programs.PARAMS):
    init, update, get_params = getattr(optimizers, name)(*programs.OPTIMIZERS[name])
    state, step = init(params), compiled(update)
    for i in range(programs.STEPS):
        grads = ft.tree.map(lambda x, i=i: programs.gradient(i, x), get_params(state))
        state = step(i, grads, state)
    return get_params(state)


@pytest.mark.parametrize("name", programs.OPTIMIZERS)
def test_optimizers_are_jaxs(name):
    for x, y in zip(ft.tree.leaves(optimized(name)), RECORDED["optimizers"][name]):
        np.testing.assert_allclose(x, y, rtol=1e-14)


def test_compiled_states_keep_their_dtypes():
    single = ft.tree.map(lambda x: np.asarray(x, np.float32), programs.PARAMS)
    for name in ("adam", "sm3"):
        found = optimized(name, ft.jit, single)
        for x, y in zip(ft.tree.leaves(found), RECORDED["optimizers"][name]):
            assert x.dtype == np.float32
            np.testing.assert_allclose(x, y, atol=1e-4)


@pytest.mark.parametrize("name", programs.SCHEDULES)
def test_schedules_are_jaxs(name):
    schedule = getattr(optimizers, name.partition(" ")[0])(*programs.SCHEDULES[name])
    np.testing.assert_allclose([schedule(i) for i in range(15)], RECORDED["schedules"][name], rtol=1e-15)
    found = optimizers.sgd(schedule).update_fn(7, 1.0, optimizers.sgd(0.0).init_fn(1.0))
    assert found.packed_state[0][0] == pytest.approx(1.0 - RECORDED["schedules"][name][7])


def test_gradients_are_clipped_to_a_norm():
    tree = {"a": np.array([3.0, 0.0]), "b": 4.0}
    assert optimizers.l2_norm(tree) == 5.0
    assert optimizers.l2_norm(np.array([3j, 4.0])) == 5.0
    assert optimizers.clip_grads(tree, 10.0)["b"] == 4.0
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)["a"], [0.6, 0.0])
    assert optimizers.clip_grads([0.0], 1.0)[0] == 0.0


def test_states_are_trees_that_can_be_stored():
    init, update, get_params = optimizers.adam(0.1)
    state = update(0, programs.PARAMS, init(programs.PARAMS))
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["b"][1], optimizers.JoinPoint)
    (subtree,) = marked["b"][1]
    assert len(subtree) == 3
    again = optimizers.pack_optimizer_state(marked)
    assert ft.tree.structure(again) == ft.tree.structure(state)
    mapped = ft.tree.map(lambda x: x, state)
    assert type(mapped) is optimizers.OptimizerState
    np.testing.assert_array_equal(get_params(mapped)["a"], get_params(state)["a"])


@pytest.mark.parametrize("name", RECORDED["networks"])
def test_networks_are_jaxs(name):
    (init, apply), shape = programs.networks(stax)[name]
    out, params = init(ft.random.key(1), shape)
    recorded = RECORDED["networks"][name]
    assert list(out) == recorded["shape"]
    leaves = ft.tree.leaves(params)
    assert len(leaves) == len(recorded["params"])
    for x, y in zip(leaves, recorded["params"]):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-14)
    result = apply(params, programs.inputs(shape), rng=ft.random.key(2))
    np.testing.assert_allclose(result, recorded["result"], rtol=1e-11, atol=1e-12)


def test_any_size_of_the_batch():
    (init, _), _ = programs.networks(stax)["convolutions"]
    assert init(ft.random.key(0), (-1, 8, 9, 2))[0] == (-1, 2)
    (init, _), _ = programs.networks(stax)["channels first"]
    assert init(ft.random.key(0), (-1, 2, 4, 4))[0] == (-1, 2, 2, 3)


def test_a_network_learns():
    """Exclusive or."""
    x, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
    init, apply = stax.serial(stax.Dense(8), stax.Tanh, stax.Dense(2), stax.LogSoftmax)
    start, update, get_params = optimizers.adam(0.05)
    loss = lambda params: -fnp.mean(apply(params, x)[fnp.arange(4), y])

    @ft.jit
    def train(state):
        step = lambda i, s: update(i, ft.grad(loss)(get_params(s)), s)
        return ft.lax.fori_loop(0, 200, step, state)

    params = get_params(train(start(init(ft.random.key(0), (-1, 2))[1])))
    assert loss(params) < 0.05


def test_errors():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(errors.PytreeError, match="gradients must be a tree like the parameters"):
        update(0, [1.0], init((1.0,)))
    with pytest.raises(errors.PytreeError, match="update must return a state like"):
        made = optimizers.optimizer(lambda: (lambda x: x, lambda i, g, x: (x, g), lambda x: x))()
        made.update_fn(0, 1.0, made.init_fn(1.0))
    with pytest.raises(errors.PytreeError, match="must be a JoinPoint"):
        optimizers.pack_optimizer_state([1.0])
    with pytest.raises(errors.ArgumentError, match="must be a real number"):
        optimizers.adam([0.1, 0.2])
    with pytest.raises(errors.ShapeError, match="one more value"):
        optimizers.piecewise_constant([1, 2], [0.1])
    with pytest.raises(errors.ArgumentError, match=r"layer 1 must be a pair.*call it"):
        stax.serial(stax.Relu, stax.Dense)
    with pytest.raises(errors.ArgumentValueError, match="needs a key"):
        stax.Dropout(0.5)[1]((), np.ones(3))
    assert (stax.Dropout(0.5, mode="test")[1]((), np.ones(3), rng=ft.random.key(0)) == 1).all()
