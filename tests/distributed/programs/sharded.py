"""Three steps of gradient descent on shards, compiled in each order, beside one process."""

import sys

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.distributed import fully_shard, make_mesh

size = int(sys.argv[1])
rng = np.random.default_rng(0)
params = {
    "blocks": [{"w": rng.normal(size=(5, 5)), "b": rng.normal(size=5)} for _ in range(3)],
    "scale": 1.5,
}
data = rng.normal(size=(12, 5))


def loss(params, x):
    for block in params["blocks"]:
        x = fnp.tanh(x @ block["w"] + block["b"])
    return params["scale"] * fnp.mean(x**2)


def descend(step, values, *args):
    for _ in range(3):
        values = ft.tree_util.tree_map(lambda v, g: v - 0.1 * g, values, step(values, *args))
    return values


expected = descend(ft.grad(loss), params, data)
with make_mesh((size,), ("dp",)) as mesh:
    each = len(data) // size
    mine = data[mesh.rank * each : (mesh.rank + 1) * each]
    for reshard in (True, False):
        for form in (ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))):
            groups = [("blocks", i) for i in range(3)]
            model = fully_shard(loss, mesh, groups=groups, reshard_after_forward=reshard)
            got = model.full(descend(form(model), model.init(params), mine))
            pairs = zip(ft.tree_util.tree_leaves(got), ft.tree_util.tree_leaves(expected), strict=True)
            for a, b in pairs:
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)
    if mesh.rank == 0:
        print("equal")
