"""Every collective on every dtype, beside NumPy: each rank knows what the others send."""

import sys
import threading

import numpy as np
import pytest
from ml_dtypes import bfloat16

from functrans.distributed import make_mesh
from functrans.errors import CollectiveError, ShardingError

DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int32,
    np.int64,
    np.uint64,
    np.float16,
    bfloat16,
    np.float32,
    np.float64,
]
DTYPES += [np.complex64, np.complex128]
SHAPES = [(), (0,), (3,), (2, 3)]
REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def sent(rank, shape, dtype, salt=0):
    """Small integers, so that sums are exact."""
    values = np.random.default_rng([rank, salt]).integers(0, 5, shape)
    return np.asarray(values * (1 - 2j) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def equal(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


def check_dtype(c, shape, dtype):
    """All collectives, called directly."""
    mine = sent(c.rank, shape, dtype)
    all_ = np.stack([sent(r, shape, dtype) for r in range(c.size)])
    for op, ufunc in REDUCE.items():
        got = np.zeros(shape, dtype)
        c.all_reduce(mine, got, op)
        equal(got, np.asarray(ufunc.reduce(all_, dtype=all_.dtype)))
        got[...] = mine
        c.all_reduce(got, got, op)  # in place
        equal(got, np.asarray(ufunc.reduce(all_, dtype=all_.dtype)))
    got = np.zeros((c.size, *shape), dtype)
    c.all_gather(mine, got)
    equal(got, all_)
    rows = [sent(r, (c.size, *shape), dtype, 1) for r in range(c.size)]
    got = np.zeros(shape, dtype)
    c.reduce_scatter(rows[c.rank], got)
    equal(got, np.asarray(np.add.reduce([x[c.rank] for x in rows], dtype=got.dtype)))
    got = np.zeros((c.size, *shape), dtype)
    c.all_to_all(rows[c.rank], got)
    equal(got, np.stack([x[c.rank] for x in rows]))
    got = np.ones(shape, dtype)
    c.permute(mine, got, tuple((r, (r + 1) % c.size) for r in range(c.size)))
    equal(got, all_[c.rank - 1])
    if c.size > 1:
        got = np.ones(shape, dtype)
        c.permute(mine, got, ((1, 0),))
        equal(got, all_[1] if c.rank == 0 else np.zeros(shape, dtype))
    got = mine.copy()
    c.broadcast(got, c.size - 1)
    equal(got, all_[-1])
    c.barrier()


def check_extremes(c):
    """NaN goes through; complex numbers are ordered as NumPy orders them."""
    values = np.array([np.nan if c.rank == 0 else 1.0, float(c.rank), -0.5])
    for op, last in (("max", c.size - 1.0), ("min", 0.0)):
        got = np.zeros(3)
        c.all_reduce(values, got, op)
        equal(got, np.array([np.nan, last, -0.5]))


def check_background(c):
    """In the order in which they were started, while others are called directly."""
    many = [np.zeros(c.size) for _ in range(20)]
    requests = [c.start("all_gather", np.array(float(i * c.rank)), many[i]) for i in range(20)]
    total = np.zeros(1)
    c.all_reduce(np.ones(1), total, "sum")
    for i, request in reversed([*enumerate(requests)]):
        request.wait()
        assert request.done
        equal(many[i], i * np.arange(c.size, dtype=float))
    equal(total, np.array([float(c.size)]))
    assert c.pending() == 0


def check_errors(c):
    """Of arguments: on every rank, before anything is sent."""
    x, rows = np.zeros(3), np.zeros((c.size, 3))
    for call, text in [
        (lambda: c.all_reduce(x, x, "prod"), "op must be one of sum, max, min, got 'prod'"),
        (lambda: c.all_reduce(x, np.zeros(4), "sum"), r"must have the shape \(3,\), got \(4,\)"),
        (lambda: c.all_gather(x, rows[:, :2].copy()), "recv must have the shape"),
        (lambda: c.reduce_scatter(np.zeros((c.size + 1, 3)), x), "one a rank"),
        (lambda: c.all_to_all(np.zeros(()), x), "one a rank"),
        (lambda: c.permute(x, x, ((0, c.size),)), f"target {c.size} does not exist"),
        (lambda: c.permute(x, x, ((0, 0), (0, 0))), "rank 0 is a source twice"),
        (lambda: c.permute(x, x, ((0, 0), (c.size - 1, 0))), "twice"),
        (lambda: c.broadcast(x, -1), "root must be from 0"),
        (lambda: c.all_reduce(x, x.astype(int), "sum"), "one numeric dtype, got float64 and int64"),
        (lambda: c.all_reduce(np.zeros(6)[::2], x, "sum"), "contiguous"),
        (lambda: c.start("psum", x), "the collectives are all_reduce"),
    ]:
        raises(CollectiveError, text, call)


def raises(kind, text, call):
    with pytest.raises(kind, match=text):
        call()


def check(mesh):
    """Everything, over each axis and all of them."""
    for axes in dict.fromkeys([mesh.names, mesh.names[::-1], *((name,) for name in mesh.names)]):
        c = mesh.communicator(axes)
        whole = axes == mesh.names
        for dtype in DTYPES if whole else [np.float16, np.complex64]:
            for shape in SHAPES if whole else SHAPES[-1:]:
                check_dtype(c, shape, dtype)
        check_extremes(c)
        check_background(c)
        check_errors(c)
        c.agree("the same")
    c = mesh.communicator(mesh.names)
    big = np.full(1 << 20, c.rank + 1.0)
    c.all_reduce(big, big, "sum")
    assert (big == sum(range(1, c.size + 1))).all()
    mesh.close()
    mesh.close()
    assert mesh.closed
    raises(ShardingError, "the mesh is closed", lambda: c.barrier())
    raises(ShardingError, "the mesh is closed", lambda: c.start("barrier"))
    raises(ShardingError, "the mesh is closed", lambda: mesh.communicator(mesh.names))


if __name__ == "__main__":
    sizes = tuple(map(int, sys.argv[1:]))
    check(make_mesh(sizes, ("dp", "tp")[: len(sizes)]))
    assert not [t for t in threading.enumerate() if "functrans" in t.name]
    if "4" in sys.argv:
        raises(CollectiveError, "has 8 ranks, but there are 4", lambda: make_mesh((8,), ("dp",)))
    print("all right")
