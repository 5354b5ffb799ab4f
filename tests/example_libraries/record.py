"""Write `recorded.json`: what JAX computes for `programs`. Run it where JAX is installed."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jax
import numpy as np
import programs
from jax.example_libraries import optimizers, stax

jax.config.update("jax_enable_x64", True)


def _listed(tree):
    return [np.asarray(x).tolist() for x in jax.tree.leaves(tree)]


def optimized(name, args):
    """The parameters after some steps."""
    init, update, get_params = getattr(optimizers, name)(*args)
    state = init(programs.PARAMS)
    for i in range(programs.STEPS):
        state = update(i, jax.tree.map(lambda x, i=i: programs.gradient(i, x), get_params(state)), state)
    return _listed(get_params(state))


def scheduled(name, args):
    """The step sizes."""
    schedule = getattr(optimizers, name.partition(" ")[0])(*args)
    return [float(schedule(i)) for i in range(15)]


def computed(layer, shape):
    """The shape of the result, the parameters, and the result."""
    init, apply = layer
    out, params = init(jax.random.key(1), shape)
    result = apply(params, programs.inputs(shape), rng=jax.random.key(2))
    return {"shape": [int(n) for n in out], "params": _listed(params), "result": np.asarray(result).tolist()}


if __name__ == "__main__":
    recorded = {
        "jax": jax.__version__,
        "optimizers": {k: optimized(k, args) for k, args in programs.OPTIMIZERS.items()},
        "schedules": {k: scheduled(k, args) for k, args in programs.SCHEDULES.items()},
        "networks": {k: computed(*v) for k, v in programs.networks(stax).items()},
    }
    Path(__file__).with_name("recorded.json").write_text(json.dumps(recorded) + "\n")
