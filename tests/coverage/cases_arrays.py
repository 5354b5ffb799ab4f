"""NumPy's functions that make, shape, join, reduce and multiply arrays."""

import numpy as np
from coverage_table import Call, Entry, I, R, Z

X = np.arange(6.0).reshape(2, 3)
CONSTANT = {"differentiable": False}
OWN = {"numpy": "NumPy does not hand it to others"}
ACCIDENT = {"0-d": "NumPy's error is one of its code, not of its own"}

TABLES = {
    "functrans.numpy": [
        # --- new arrays
        Entry("array asarray", Call(R(2, 3)), Call(R(2), dtype=np.float32), skip=OWN),
        Entry("copy", Call(R(2, 3))),
        Entry("astype", Call(R(2, 3), np.float32), Call(I(3), float)),
        Entry("zeros ones", Call((2, 3)), Call(2, np.int32), Call((0, 2)), **CONSTANT),
        Entry("empty", Call((2, 3)), Call(2, np.int32), oracle=np.zeros, **CONSTANT),
        Entry("full", Call((2, 3), R(), dtype=float), Call(2, 7), skip=OWN),
        Entry("zeros_like ones_like", Call(R(2, 3)), Call(X, shape=(4,)), **CONSTANT),
        Entry("empty_like", Call(R(2, 3)), oracle=np.zeros_like, **CONSTANT),
        Entry("full_like", Call(X, R()), skip={"numpy": "NumPy hands on what the first argument is"}),
        Entry("eye", Call(3), Call(2, 4, 1, dtype=np.float32), **CONSTANT),
        Entry("identity", Call(3), **CONSTANT),
        Entry("tri", Call(3), Call(3, 4, -1), **CONSTANT),
        Entry("arange", Call(5), Call(1.0, 2.0, 0.25), Call(7, 2, -2), **CONSTANT),
        Entry("linspace", Call(R(), R(low=2.0, high=3.0), 5), Call(R(2), 4.0, 3, endpoint=False, axis=1)),
        Entry("logspace", Call(R(), R(low=2.0, high=3.0), 4)),
        Entry("geomspace", Call(R(), R(low=2.0, high=3.0), 4)),
        Entry("indices", Call((2, 3)), Call((2, 3), sparse=True), **CONSTANT),
        Entry("meshgrid", Call(R(2), R(3)), Call(R(2), R(3), indexing="ij", sparse=True)),
        # --- shapes
        Entry("reshape", Call(R(2, 3), (3, -1)), Call(R(2, 3), 6, order="F")),
        Entry("ravel", Call(R(2, 3)), Call(R(2, 3), "F")),
        Entry("transpose", Call(R(2, 3)), Call(R(2, 3, 2), (1, 2, 0)), Call(Z(2, 3))),
        Entry("permute_dims", Call(R(2, 3, 2), (1, 2, 0))),
        Entry("matrix_transpose", Call(R(2, 2, 3))),
        Entry("moveaxis", Call(R(2, 3, 2), 0, -1)),
        Entry("rollaxis", Call(R(2, 3, 2), 2)),
        Entry("swapaxes", Call(R(2, 3, 2), 0, 2)),
        Entry("squeeze", Call(R(1, 3, 1)), Call(R(1, 3, 1), axis=0)),
        Entry("expand_dims", Call(R(2, 3), 1), Call(R(2), (0, 2))),
        Entry("atleast_1d atleast_2d atleast_3d", Call(R(3)), Call(R(), R(2))),
        Entry("broadcast_to", Call(R(3), (2, 3))),
        Entry("broadcast_arrays", Call(R(2, 1), R(3))),
        Entry("broadcast_shapes", Call((2, 1), (3,)), **CONSTANT),
        Entry("flip", Call(R(2, 3)), Call(R(2, 3), 1)),
        Entry("flipud", Call(R(2, 3))),
        Entry("fliplr", Call(R(2, 3))),
        Entry("roll", Call(R(2, 3), 1), Call(R(2, 3), (1, -2), (0, 1))),
        Entry("rot90", Call(R(2, 3)), Call(R(2, 3), 2)),
        Entry("repeat", Call(R(2, 3), 2), Call(R(2, 3), np.array([1, 0, 2]), axis=1)),
        Entry("tile", Call(R(2, 3), 2), Call(R(3), (2, 2))),
        # --- joining
        Entry(
            "concatenate",
            Call([R(2, 3), R(1, 3)]),
            Call((R(2, 3), R(2, 1)), axis=1),
            Call([R(2, 2), R(2)], axis=None),
        ),
        Entry("concat", Call([R(2, 3), R(1, 3)])),
        Entry("stack", Call([R(2, 3), R(2, 3)]), Call([R(2), R(2)], axis=1)),
        Entry("unstack", Call(R(2, 3))),
        Entry("vstack hstack dstack column_stack", Call([R(2, 3), R(2, 3)]), Call([R(3), R(3)])),
        Entry("append", Call(R(2, 3), R(3)), Call(R(2, 3), R(1, 3), axis=0)),
        Entry("split", Call(R(4), 2), Call(R(2, 3), [1], axis=1)),
        Entry("array_split", Call(R(5), 2)),
        Entry("vsplit", Call(R(4, 2), 2)),
        Entry("hsplit", Call(R(2, 4), 2)),
        Entry("dsplit", Call(R(2, 1, 4), 2)),
        Entry(
            "pad",
            Call(R(2, 3), 1),
            Call(R(3), (1, 2), constant_values=R()),
            Call(R(4), 2, mode="reflect"),
            Call(R(3), 1, "edge"),
        ),
        # --- elements
        Entry("take", Call(R(2, 3), I(4, high=3), axis=1), Call(R(2, 3), np.array([0, -1, 7]), mode="clip")),
        Entry("take_along_axis", Call(R(2, 3), I(2, 2, high=3), axis=1)),
        Entry("diag", Call(R(3)), Call(R(3, 3), 1)),
        Entry("diagflat", Call(R(2, 2))),
        Entry("diagonal", Call(R(3, 3)), Call(R(2, 3, 3), 1, 1, 2)),
        Entry("trace", Call(R(3, 3)), Call(R(2, 3, 3), 1, 1, 2)),
        Entry("tril triu", Call(R(3, 3)), Call(R(2, 2, 3), 1), skip=ACCIDENT),
        # --- reductions
        Entry(
            "sum mean prod",
            Call(R(2, 3)),
            Call(R(2, 3), axis=0, keepdims=True),
            Call(Z(2, 3), axis=1),
            Call(R(2, 3), where=X > 1),
        ),
        Entry("var std", Call(R(2, 3)), Call(R(2, 3), axis=0, ddof=1), Call(Z(2, 3), axis=1)),
        Entry("max min amax amin", Call(R(2, 3)), Call(R(2, 3), axis=0, keepdims=True)),
        Entry("ptp", Call(R(2, 3)), Call(R(2, 3), axis=0)),
        Entry("argmax argmin", Call(R(2, 3)), Call(R(2, 3), axis=0), **CONSTANT),
        Entry("all any count_nonzero", Call(R(2, 3)), Call(I(2, 3, high=2), axis=0), **CONSTANT),
        Entry(
            "average",
            Call(R(2, 3)),
            Call(R(2, 3), axis=1, weights=R(3)),
            Call(R(2, 3), weights=R(2, 3), returned=True),
        ),
        Entry("diff", Call(R(2, 3)), Call(R(4), 2), Call(R(2, 3), axis=0, prepend=R(1, 3))),
        Entry("trapezoid", Call(R(2, 3)), Call(R(2, 3), R(3))),
        # --- products
        Entry("matmul", Call(R(2, 3), R(3, 2)), Call(R(3), R(2, 3, 2)), Call(Z(2, 2), R(2, 2))),
        # NumPy's are of 2.2.
        Entry(
            "matvec",
            Call(R(2, 2, 3), R(3)),
            Call(Z(2, 3), R(3)),
            oracle=getattr(np, "matvec", lambda x, y: np.einsum("...ij,...j->...i", x, y)),
        ),
        Entry(
            "vecmat",
            Call(R(3), R(2, 3, 2)),
            Call(Z(3), R(3, 2)),
            oracle=getattr(np, "vecmat", lambda x, y: np.einsum("...i,...ij->...j", np.conj(x), y)),
        ),
        Entry("vecdot", Call(R(2, 3), R(3)), Call(Z(3), Z(3))),
        Entry("dot", Call(R(2, 3), R(3, 2)), Call(R(2, 3), R(3)), Call(R(2), R())),
        Entry("vdot", Call(R(3), R(3)), Call(Z(3), Z(3))),
        Entry("inner", Call(R(2, 3), R(3)), Call(R(2, 3), R(4, 3))),
        Entry("outer", Call(R(3), R(2)), Call(Z(2), R(2))),
        Entry("kron", Call(R(2, 2), R(2, 3)), Call(R(2), R(2, 2))),
        Entry(
            "tensordot",
            Call(R(2, 3), R(3, 2), 1),
            Call(R(2, 3), R(2, 3), axes=([0, 1], [0, 1])),
            skip=ACCIDENT,
        ),
        Entry("cross", Call(R(3), R(3)), Call(R(2, 3), R(3))),
        Entry(
            "einsum",
            Call("ij,jk->ik", R(2, 3), R(3, 2)),
            Call("ii->i", R(3, 3)),
            Call("...i,i", R(2, 2, 3), R(3)),
            Call("ab,bc,cd", R(2, 2), Z(2, 3), R(3, 2), optimize=True),
        ),
        Entry("einsum_path", Call("ij,jk->ik", X, X.T), skip={"numpy": "nothing is traced"}, **CONSTANT),
        # --- types
        Entry("shape ndim size", Call(R(2, 3)), **CONSTANT),
        Entry("can_cast issubdtype promote_types", Call(np.int32, np.int64), **CONSTANT),
        Entry("isdtype", Call(np.dtype(np.float32), "real floating"), **CONSTANT),
        Entry("finfo", Call(np.float32), **CONSTANT),
        Entry("result_type", Call(np.int32, R(2)), **CONSTANT),
        Entry("iscomplexobj isrealobj isscalar", Call(R(2, 3)), Call(2.0), **CONSTANT),
    ]
}
