"""Each process writes its rows; then each half of a smaller mesh reads."""

import sys

import numpy as np

from functrans.distributed import make_mesh, shards

with make_mesh(3, "dp") as mesh:
    c = mesh.communicator("dp")
    table = np.arange(10.0).reshape(5, 2)
    for _ in range(2):
        shards.save(sys.argv[1], {"table": table[shards.rows(5, 3, mesh.rank)]}, {"table": 5}, c)
    mine = shards.load(sys.argv[1], c)["table"]
    expected = [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [0, 0]]][mesh.rank]
    np.testing.assert_array_equal(mine, expected)
