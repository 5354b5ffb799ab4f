"""Activations, softmax and its like, segments."""

import numpy as np
import scipy.special as sp
from coverage_table import Call, Entry, I, R

WIDE = Call(R(2, 3, low=-2.9, high=2.8))
#: Of one array, by NumPy and SciPy.
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0.0, 6.0),
    "hard_sigmoid": lambda x: np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "hard_silu": lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "hard_tanh": lambda x: np.clip(x, -1.0, 1.0),
    "leaky_relu": lambda x: np.maximum(x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1.0),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1.0)),
    "sparse_plus": lambda x: np.where(x > 1, x, np.clip(x + 1.0, 0.0, None) ** 2 / 4.0),
    "sparse_sigmoid": lambda x: np.clip(x / 2.0 + 0.5, 0.0, 1.0),
    "sigmoid": sp.expit,
    "soft_sign": lambda x: x / (1.0 + np.abs(x)),
    "softplus": lambda x: np.log(1.0 + np.exp(x)),
    "log_sigmoid": sp.log_expit,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4.0)) / 2.0,
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, x.dtype.type(0))),
    "tanh": np.tanh,
}


def gelu(x, approximate):
    if approximate:
        return x * (1.0 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2.0
    return x * sp.ndtr(x)


def glu(x, axis=-1):
    first, second = np.split(x, 2, axis)
    return first * sp.expit(second)


def standardize(x, axis=-1):
    x = x * 1.0
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def attention(q, k, v):
    logits = np.einsum("tnd,snd->nts", q * 1.0, np.repeat(k, 2, axis=1)) / np.sqrt(q.dtype.type(2))
    return np.einsum("nts,snd->tnd", sp.softmax(logits, axis=-1), np.repeat(v, 2, axis=1)).astype(
        logits.dtype
    )


def last(f):
    """The function along the last axis by default."""
    return lambda x, axis=-1: f(x, axis=axis)


def counted(method, start):
    """The ufunc's `at` on an array of `start`."""

    def segments(data, segment_ids, num_segments):
        if np.shape(data)[:1] != np.shape(segment_ids):
            raise ValueError("shapes")
        fill = start(data.dtype) if callable(start) else start
        out = np.full((num_segments, *data.shape[1:]), fill, data.dtype)
        method.at(out, segment_ids, data)
        return out

    return segments


def limit(sign):
    """The number that each one of a dtype is above (below) or equal to."""
    return lambda dtype: (
        sign * np.inf if dtype.kind == "f" else (np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)
    )


NUMBERS = {"0-d": "NumPy's numbers have an axis -1"}
IDS = np.array([2, 0, 2, 1])
SEGMENTS = {"segment_sum": (np.add, 0), "segment_prod": (np.multiply, 1)}
EXTREMES = {"segment_max": (np.maximum, limit(-1)), "segment_min": (np.minimum, limit(1))}

TABLES = {
    "functrans.nn": [
        *[Entry(name, WIDE, oracle=f) for name, f in ACTIVATIONS.items()],
        Entry(
            "celu",
            Call(R(2, 3, low=-2.9, high=2.8), 0.5),
            oracle=lambda x, a: np.where(x > 0, x, a * (np.exp(x / a) - 1.0)),
        ),
        Entry("gelu", *[Call(*WIDE.args, approximate=way) for way in (False, True)], oracle=gelu),
        Entry("identity", Call(R(2)), oracle=lambda x: x, order=1),
        Entry("log1mexp", Call(R(2, 3)), oracle=lambda x: np.log(1.0 - np.exp(-x)), skip={"int": "digits"}),
        Entry("glu", Call(R(2, 4)), oracle=glu),
        Entry("standardize", Call(R(2, 3)), oracle=standardize),
        Entry("softmax", Call(R(2, 3)), oracle=last(sp.softmax), skip=NUMBERS),
        Entry("log_softmax", Call(R(2, 3)), oracle=last(sp.log_softmax), skip=NUMBERS),
        Entry("logsumexp", Call(R(2, 3)), oracle=sp.logsumexp, skip={"empty": "SciPy fails"}),
        Entry("logmeanexp", Call(R(2, 3)), oracle=lambda x: np.log(np.mean(np.exp(x)))),
        Entry(
            "dot_product_attention",
            Call(R(3, 2, 2), R(2, 1, 2), R(2, 1, 2)),
            oracle=attention,
            skip=dict.fromkeys(("0-d", "empty"), "shapes"),
        ),
        Entry(
            "scaled_matmul",
            Call(R(1, 2, 4), R(1, 2, 4), R(1, 2, 2), R(1, 2, 2), preferred_element_type=float),
            oracle=lambda a, b, s, t, preferred_element_type: np.einsum(
                "abcd,aecd,abc,aec->abe", a.reshape(1, 2, 2, 2), b.reshape(1, 2, 2, 2), s, t
            ).astype(float),
            skip=dict.fromkeys(("0-d", "empty"), "shapes"),
        ),
        Entry(
            "scaled_dot_general",
            Call(R(2, 2), R(2), (((1,), (0,)), ((), ())), preferred_element_type=float),
            oracle=lambda x, y, dims, preferred_element_type: (x @ y).astype(float),
            order=1,
            skip=dict.fromkeys(("0-d", "empty"), "shapes"),
        ),
        Entry(
            "one_hot",
            Call(I(4), 3),
            oracle=lambda x, n: (x[..., None] == np.arange(n)).astype(float),
            differentiable=False,
        ),
    ],
    "functrans.ops": [
        *[
            Entry(n, Call(R(4, 2), IDS, 5), oracle=counted(*how), skip={"0-d": "shapes"})
            for n, how in SEGMENTS.items()
        ],
        *[Entry(n, Call(R(4, 2), IDS, 3), oracle=counted(*how)) for n, how in EXTREMES.items()],
    ],
}
