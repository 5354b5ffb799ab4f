"""functrans.lax: elementwise operations, shapes, slices, reductions and products."""

import numpy as np
import scipy.special
from coverage_table import B, Call, Entry, I, R, Z

from functrans import lax

TWO = (Call(R(2, 3), R(2, 3)),)
SIGNED = R(2, 3, low=-3.9, high=3.8)
CONSTANT = {"differentiable": False}
STRICT = {"int": "operands of functrans.lax are not promoted", "float32": "operands are not promoted"}


def dot_general(lhs, rhs, dimension_numbers):
    (a, b), (c, d) = dimension_numbers
    left, right = list("abcdefg"[: lhs.ndim]), list("uvwxyz"[: rhs.ndim])
    for i, j in (*zip(a, b), *zip(c, d)):
        right[j] = left[i]
    free = [x for i, x in enumerate(left) if i not in (*a, *c)] + [
        x for j, x in enumerate(right) if j not in (*b, *d)
    ]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join([left[i] for i in c] + free)}", lhs, rhs)


def ragged_dot(lhs, rhs, group_sizes):
    group = np.repeat(np.arange(len(rhs)), group_sizes)[: len(lhs)]
    product = np.matmul(lhs[: len(group), None], rhs[group])[:, 0]
    return np.concatenate([product, np.zeros((len(lhs) - len(group), rhs.shape[2]), product.dtype)])


def sums_of_groups(lhs, rhs, group_sizes, dimension_numbers):
    ends = np.cumsum(group_sizes)
    return np.stack([lhs[end - n : end].T @ rhs[end - n : end] for n, end in zip(group_sizes, ends)])


#: Rows are contracted, within groups.
SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())


def pad(x, value, config):
    out = np.full([max(0, lo + hi + n + max(n - 1, 0) * i) for n, (lo, hi, i) in zip(x.shape, config)], value)
    for index in np.ndindex(x.shape):
        place = tuple(lo + k * (i + 1) for k, (lo, hi, i) in zip(index, config))
        if all(0 <= p < n for p, n in zip(place, out.shape)):
            out[place] = x[index]
    return out


def place(shape, starts, sizes):
    """Where a dynamic slice lies: starts count from the end if negative, and are clamped."""
    starts = [int(s) + n if s < 0 else int(s) for s, n in zip(starts, shape)]
    return tuple(
        slice(max(0, min(s, n - m)), max(0, min(s, n - m)) + m) for s, n, m in zip(starts, shape, sizes)
    )


def updated(x, update, starts):
    out = np.array(x)
    out[place(x.shape, starts, update.shape)] = update
    return out


def along(axis, start, x):
    return [start if d == axis else 0 for d in range(x.ndim)]


def half_away(x, rounding_method=0):
    return (
        np.rint(x)
        if rounding_method
        else np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0)
    )


TABLES = {
    "functrans.lax": [
        Entry(
            "exp exp2 expm1 log log1p sqrt sin cos tan sinh cosh tanh square reciprocal asinh abs "
            "asin acos atan atanh",
            Call(R(2, 3)),
            Call(Z(3)),
            skip=STRICT,
        ),
        Entry("acosh", Call(R(2, 3, low=1.1, high=2.0)), skip=STRICT),
        Entry("cbrt", Call(R(2, 3)), skip=STRICT),
        Entry("neg", Call(R(2, 3)), Call(Z(3)), oracle=np.negative),
        Entry("sign", Call(SIGNED), differentiable=False),
        Entry("floor ceil", Call(SIGNED), differentiable=False, skip=STRICT),
        Entry("round", Call(SIGNED), Call(SIGNED, 1), oracle=half_away, differentiable=False, skip=STRICT),
        Entry("is_finite", Call(R(2, 3)), oracle=np.isfinite, differentiable=False, skip=STRICT),
        Entry("erf", Call(R(2, 3)), oracle=scipy.special.erf, skip=STRICT),
        Entry("erfc", Call(R(2, 3)), oracle=scipy.special.erfc, skip=STRICT),
        Entry("lgamma", Call(R(2, 3)), oracle=scipy.special.gammaln, skip=STRICT),
        Entry("digamma", Call(R(2, 3)), oracle=scipy.special.digamma, skip=STRICT),
        Entry("logistic", Call(R(2, 3)), oracle=scipy.special.expit, skip=STRICT),
        Entry("rsqrt", Call(R(2, 3)), Call(Z(3)), oracle=lambda x: 1 / np.sqrt(x), skip=STRICT),
        Entry("integer_pow", Call(R(2, 3), 3), Call(R(2), -2), Call(Z(2), 4), oracle=np.power),
        Entry("real imag", Call(Z(3)), skip=dict.fromkeys(("float32", "int"), "of complex numbers only")),
        Entry("conj", Call(Z(3)), skip=STRICT),
        Entry("bitwise_not", Call(I(3)), **CONSTANT),
        Entry("add", *TWO, Call(Z(2), Z(2))),
        Entry("sub", *TWO, oracle=np.subtract),
        Entry("mul", *TWO, Call(Z(2), 2.0), oracle=np.multiply),
        Entry("div", *TWO, oracle=np.divide, skip=STRICT),
        Entry("max", *TWO, oracle=np.maximum),
        Entry("min", *TWO, oracle=np.minimum),
        Entry("rem", Call(SIGNED, R(2, 3)), oracle=np.fmod),
        Entry("pow", *TWO),
        Entry("atan2", *TWO, skip=STRICT),
        Entry("nextafter", *TWO, skip=STRICT),
        Entry(
            "complex",
            *TWO,
            oracle=lambda x, y: (x + 1j * y).astype(np.complex64 if x.dtype == np.float32 else complex),
            skip=STRICT,
        ),
        Entry("bitwise_and bitwise_or bitwise_xor", Call(I(2, 3), I(2, 3)), **CONSTANT),
        Entry("shift_left", Call(I(3), I(3)), oracle=np.left_shift, **CONSTANT),
        Entry("shift_right_arithmetic", Call(I(3, low=-9), I(3)), oracle=np.right_shift, **CONSTANT),
        Entry(
            "shift_right_logical",
            Call(I(3, low=-9), I(3)),
            **CONSTANT,
            oracle=lambda x, y: (x.view(np.uint64) >> y.astype(np.uint64)).view(np.int64),
            skip={"0-d": "views", "empty": "views"},
        ),
        Entry("eq", *TWO, oracle=np.equal, **CONSTANT),
        Entry("ne", *TWO, oracle=np.not_equal, **CONSTANT),
        Entry("lt", *TWO, oracle=np.less, **CONSTANT),
        Entry("le", *TWO, oracle=np.less_equal, **CONSTANT),
        Entry("gt", *TWO, oracle=np.greater, **CONSTANT),
        Entry("ge", *TWO, oracle=np.greater_equal, **CONSTANT),
        Entry("clamp", Call(0.4, R(2, 3), 0.7), oracle=lambda lo, x, hi: np.clip(x, lo, hi), skip=STRICT),
        Entry("select", Call(B(2, 3), R(2, 3), R(2, 3)), oracle=np.where),
        Entry(
            "select_n",
            Call(B(3), R(3), R(3)),
            Call(np.array([2, 0, 1], np.int32), R(3), R(3), R(3)),
            oracle=lambda which, *cases: np.choose(which.astype(int), cases),
        ),
        Entry(
            "convert_element_type",
            Call(R(2, 3), np.float32),
            Call(I(3), float),
            oracle=lambda x, d: x.astype(d),
        ),
        Entry("stop_gradient", Call(R(2, 3)), oracle=np.copy, differentiable=False),
        # --- shapes
        Entry(
            "reshape",
            Call(R(2, 3), (3, 2)),
            Call(R(2, 3), (6,), (1, 0)),
            skip={"0-d": "another error"},
            oracle=lambda x, s, d=None: np.reshape(x if d is None else x.transpose(d), s),
        ),
        Entry("transpose", Call(R(2, 3), (1, 0))),
        Entry("broadcast", Call(R(3), (2, 1)), oracle=lambda x, s: np.broadcast_to(x, (*s, *x.shape))),
        Entry(
            "broadcast_in_dim",
            Call(R(2), (2, 3), (0,)),
            skip={"0-d": "no axis to name", "empty": "another shape"},
            oracle=lambda x, s, d: np.broadcast_to(x[:, None], s),
        ),
        Entry("broadcast_shapes", Call((2, 1), (1, 3)), **CONSTANT),
        Entry("squeeze", Call(R(1, 3), (0,))),
        Entry("expand_dims", Call(R(2, 3), (1,))),
        Entry(
            "collapse",
            Call(R(2, 3, 2), 1),
            Call(R(2, 3, 2), 0, 2),
            skip={"0-d": "no axes", "empty": "the oracle cannot"},
            oracle=lambda x, a, b=None: x.reshape(*x.shape[:a], -1, *(() if b is None else x.shape[b:])),
        ),
        Entry("concatenate", Call([R(2, 3), R(1, 3)], 0)),
        Entry("pad", Call(R(2, 3), R(), [(1, 0, 1), (-1, 2, 0)]), oracle=pad, skip={"0-d": "no axes"}),
        Entry("rev", Call(R(2, 3), (1,)), oracle=np.flip),
        # --- slices
        Entry(
            "slice",
            Call(R(4, 3), (1, 0), (4, 2)),
            Call(R(4, 3), (0, 0), (4, 3), (2, 1)),
            oracle=lambda x, a, b, s=(1, 1): x[a[0] : b[0] : s[0], a[1] : b[1] : s[1]],
            skip={"0-d": "another error", "empty": "bounds must fit"},
        ),
        Entry(
            "slice_in_dim",
            Call(R(4, 3), 1, 3),
            Call(R(4, 3), 0, 4, 2),
            oracle=lambda x, a, b, s=1: x[a:b:s],
            skip={"0-d": "another error", "empty": "bounds must fit"},
        ),
        Entry(
            "index_in_dim",
            Call(R(4, 3), 1),
            Call(R(4, 3), -1, 0, False),
            skip={"0-d": "another error"},
            oracle=lambda x, i, axis=0, keepdims=True: x[i][None] if keepdims else x[i],
        ),
        Entry(
            "dynamic_slice",
            Call(R(4, 3), [I(), I()], (2, 2)),
            oracle=lambda x, s, n: x[place(x.shape, s, n)],
            skip={"0-d": "as many starts as axes", "empty": "the slice must fit"},
        ),
        Entry(
            "dynamic_slice_in_dim",
            Call(R(4, 3), I(), 2),
            oracle=lambda x, i, n: x[place(x.shape, (i, 0), (n, 3))],
            skip={"0-d": "no axis", "empty": "the slice must fit"},
        ),
        Entry(
            "dynamic_index_in_dim",
            Call(R(4, 3), I()),
            Call(R(4, 3), I(), 0, False),
            skip={"0-d": "no axis", "empty": "no element"},
            oracle=lambda x, i, axis=0, keepdims=True: x[min(i, 3)][None] if keepdims else x[min(i, 3)],
        ),
        Entry(
            "dynamic_update_slice",
            Call(R(4, 3), R(2, 2), [I(), I()]),
            oracle=updated,
            skip={"0-d": "as many starts as axes", "empty": "the update must fit"},
        ),
        Entry(
            "dynamic_update_slice_in_dim",
            Call(R(4, 3), R(2, 3), I(), 0),
            skip={"0-d": "no axis", "empty": "the update must fit"},
            oracle=lambda x, u, i, axis: updated(x, u, along(axis, i, x)),
        ),
        Entry(
            "dynamic_update_index_in_dim",
            Call(R(4, 3), R(3), I(), 0),
            skip={"0-d": "no axis", "empty": "the update must fit"},
            oracle=lambda x, u, i, axis: updated(x, u[None], along(axis, i, x)),
        ),
        # --- new arrays
        Entry("iota", Call(np.int32, 4), oracle=lambda d, n: np.arange(n, dtype=d), **CONSTANT),
        Entry(
            "broadcasted_iota",
            Call(float, (2, 3), 1),
            oracle=lambda d, s, k: np.indices(s)[k].astype(d),
            **CONSTANT,
        ),
        Entry("full", Call((2, 3), R(), float)),
        Entry("full_like", Call(np.ones((2, 3)), R())),
        Entry("zeros_like_array", Call(R(2, 3)), oracle=np.zeros_like, **CONSTANT),
        # --- reductions
        Entry("reduce_sum", Call(R(2, 3), (0,)), Call(Z(2, 3), (0, 1)), oracle=np.sum),
        Entry("reduce_prod", Call(R(2, 3), (0,)), Call(Z(2, 3), (0, 1)), oracle=np.prod),
        Entry("reduce_max", Call(R(2, 3), (0,)), oracle=np.max),
        Entry("reduce_min", Call(R(2, 3), (0,)), oracle=np.min),
        Entry("reduce_and", Call(B(2, 3), (0,)), oracle=np.all, **CONSTANT),
        Entry("reduce_or", Call(B(2, 3), (0,)), oracle=np.any, **CONSTANT),
        Entry(
            "argmax",
            Call(R(2, 3), 0, np.int32),
            oracle=lambda x, a, d: np.argmax(x, a).astype(d),
            skip={"0-d": "NumPy takes axis 0"},
            **CONSTANT,
        ),
        Entry(
            "argmin",
            Call(R(2, 3), 0, np.int32),
            oracle=lambda x, a, d: np.argmin(x, a).astype(d),
            skip={"0-d": "NumPy takes axis 0"},
            **CONSTANT,
        ),
        # --- products
        Entry(
            "dot_general",
            Call(R(2, 3, 2), R(2, 3, 2), (((1,), (1,)), ((0,), (0,)))),
            Call(Z(2, 3), Z(3), (((1,), (0,)), ((), ()))),
            oracle=dot_general,
            skip={"0-d": "no axes"},
        ),
        Entry(
            "dot",
            Call(R(2, 3), R(3, 2)),
            Call(R(3), R(3)),
            skip={"0-d": "want axes", "empty": "another error"},
        ),
        Entry("batch_matmul", Call(R(2, 2, 3), R(2, 3, 2)), oracle=np.matmul),
        Entry(
            "ragged_dot",
            Call(R(4, 2), R(3, 2, 2), I(3, high=3)),
            Call(Z(3, 2), Z(2, 2, 1), np.array([1, 2])),
            oracle=ragged_dot,
            skip={"0-d": "want axes", "empty": "another error"},
        ),
        Entry(
            "ragged_dot_general",
            Call(R(4, 2), R(4, 3), I(3, high=3), SUMS),
            oracle=sums_of_groups,
            skip={"0-d": "want axes", "empty": "another error"},
        ),
    ]
}
