"""Integers and sequences of integers that make no sense: as in JAX each raises an error, which names the argument."""

import numpy as np
import pytest

from functrans import lax
from functrans.errors import FunctransError

X, M, V = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(3, 4), np.arange(5.0)
IMAGE, FILTER = np.ones((2, 3, 8, 8)), np.ones((4, 3, 3, 3))

#: A function, and valid values of its parameters. Words that name a parameter in a message follow the comma.
CASES = {
    "transpose": (lambda p: lax.transpose(X, p), {"p": ((2, 0, 1), "permutation|ax")}),
    "reshape": (lambda p: lax.reshape(X, p), {"p": ((4, 6), "size|shape")}),
    "reshape of axes": (lambda p: lax.reshape(X, (24,), p), {"p": ((2, 0, 1), "dimensions|ax")}),
    "rev": (lambda p: lax.rev(X, p), {"p": ((0, 2), "dimensions|ax")}),
    "expand_dims": (lambda p: lax.expand_dims(X, p), {"p": ((0, 2), "dimensions|ax")}),
    "squeeze": (lambda p: lax.squeeze(X[:1, :, :1], p), {"p": ((0, 2), "dimensions|ax")}),
    "broadcast": (lambda p: lax.broadcast(X, p), {"p": ((5, 6), "size|shape")}),
    "broadcast_in_dim": (
        lambda s, p: lax.broadcast_in_dim(M, s, p),
        {"s": ((3, 4, 2), "shape"), "p": ((0, 1), "broadcast_dimensions|shape")},
    ),
    "slice": (
        lambda a, b, c: lax.slice(X, a, b, c),
        {"a": ((0, 1, 0), "start|indices"), "b": ((2, 3, 4), "limit"), "c": ((1, 1, 2), "stride")},
    ),
    "slice_in_dim": (
        lambda a, b, c, d: lax.slice_in_dim(X, a, b, c, d),
        {"a": (0, "start"), "b": (3, "limit"), "c": (2, "stride"), "d": (2, "axis")},
    ),
    "dynamic_slice": (
        lambda a, b: lax.dynamic_slice(X, a, b),
        {"a": ((0, 1, 0), "start"), "b": ((1, 2, 2), "size")},
    ),
    "dynamic_update_slice": (lambda a: lax.dynamic_update_slice(X, X[:1], a), {"a": ((0, 1, 0), "start")}),
    "dynamic_slice_in_dim": (
        lambda b, c: lax.dynamic_slice_in_dim(X, 1, b, c),
        {"b": (2, "size"), "c": (2, "axis")},
    ),
    "index_in_dim": (lambda a, c: lax.index_in_dim(X, a, c), {"a": (1, "index"), "c": (2, "axis")}),
    "concatenate": (lambda d: lax.concatenate([X, X], d), {"d": (1, "dimension|axis")}),
    "reduce_sum": (lambda p: lax.reduce_sum(X, p), {"p": ((0, 2), "axes|axis")}),
    "reduce_and": (lambda p: lax.reduce_and(X > 1, p), {"p": ((0, 2), "axes|axis")}),
    "reduce": (lambda p: lax.reduce(X, 0.0, lax.add, p), {"p": ((0, 2), "dimensions|axes|axis")}),
    "argmax": (lambda d: lax.argmax(X, d, np.int32), {"d": (1, "axis")}),
    "cumsum": (lambda d: lax.cumsum(X, d), {"d": (1, "axis")}),
    "sort": (lambda d: lax.sort(X, d), {"d": (1, "dimension|axis")}),
    "sort by keys": (lambda k: lax.sort((V, V), 0, num_keys=k), {"k": (1, "num_keys")}),
    "top_k": (lambda k: lax.top_k(X, k), {"k": (2, "k")}),
    "approx_max_k": (lambda k, d: lax.approx_max_k(X, k, d), {"k": (2, "k"), "d": (1, "axis|dimension")}),
    "iota": (lambda n: lax.iota(np.int32, n), {"n": (5, "size|shape")}),
    "broadcasted_iota": (
        lambda s, d: lax.broadcasted_iota(np.int32, s, d),
        {"s": ((2, 3), "shape"), "d": (1, "dimension|axis")},
    ),
    "full": (lambda s: lax.full(s, 1.0), {"s": ((2, 3), "shape")}),
    "collapse": (
        lambda a, b: lax.collapse(X, a, b),
        {"a": (0, "start|dimension"), "b": (2, "stop|dimension")},
    ),
    "split": (lambda s, d: lax.split(X, s, d), {"s": ((1, 3), "sizes"), "d": (2, "axis")}),
    "tile": (lambda r: lax.tile(X, r), {"r": ((1, 2, 1), "reps")}),
    "conv": (
        lambda s, p, q: lax.conv_general_dilated(IMAGE, FILTER, s, "VALID", p, q),
        {"s": ((1, 2), "stride"), "p": ((1, 1), "dilation"), "q": ((1, 2), "dilation")},
    ),
    "conv in groups": (
        lambda f, b: lax.conv_general_dilated(
            IMAGE, FILTER, (1, 1), "VALID", feature_group_count=f, batch_group_count=b
        ),
        {"f": (1, "feature_group_count|group"), "b": (1, "batch_group_count|group")},
    ),
    "reduce_window": (
        lambda w, s, b, d: lax.reduce_window(M, 0.0, lax.add, w, s, "VALID", b, d),
        {
            "w": ((2, 2), "window"),
            "s": ((1, 2), "stride"),
            "b": ((1, 1), "dilation"),
            "d": ((1, 1), "dilation"),
        },
    ),
    "patches": (
        lambda f, s: lax.conv_general_dilated_patches(IMAGE, f, s, "VALID"),
        {"f": ((3, 3), "filter_shape|window|shape"), "s": ((1, 2), "stride")},
    ),
    "fft": (lambda n: lax.fft(M + 0j, "FFT", n), {"n": ((3, 4), "fft_lengths")}),
}

#: What JAX takes, too: extents and starts may be any, and both clamp.
VALID = {
    ("broadcast", "p", "longer"), ("broadcast_in_dim", "s", "longer"), ("broadcasted_iota", "s", "longer"),
    ("full", "s", "longer"),
    ("dynamic_slice", "a", "-far"), ("dynamic_update_slice", "a", "-far"),
    ("collapse", "a", "-far"), ("collapse", "b", "far"), ("collapse", "b", "-far"),
}  # fmt: skip


def changed(value, words):
    """Bad values, by kind: axes must also be there, and differ."""
    names_axes = any(word in words for word in ("ax", "dimension", "index", "limit", "fft"))
    if isinstance(value, int):
        far = {"far": 100, "-far": -100} if names_axes else {"-far": -100}
        return {**far, "huge": 2**70, "half": 1.5, "float": 1.0, "text": "1", "sequence": (1, 1)}
    first = {"-far": -100, "half": 1.5, "float": 1.0, "text": "1", "bool": True, "none": None}
    kinds = {kind: (bad, *value[1:]) for kind, bad in first.items()}
    kinds = {**kinds, "longer": (*value, value[-1]), "text instead": "12"}
    if names_axes and "shape" not in words:
        kinds = {**kinds, "far": (100, *value[1:]), "repeated": (value[-1],) * len(value)}
    return kinds


PARAMETERS = [
    (name, parameter, kind)
    for name, (_, parameters) in CASES.items()
    for parameter, (value, words) in parameters.items()
    for kind in changed(value, words)
    if (name, parameter, kind) not in VALID
]


@pytest.mark.parametrize(("name", "parameter", "kind"), PARAMETERS)
def test_bad_integers_are_refused_by_name(name, parameter, kind):
    function, parameters = CASES[name]
    given = {p: value for p, (value, _) in parameters.items()}
    function(**given)
    value, words = parameters[parameter]
    bad = changed(value, words)[kind]
    with pytest.raises(FunctransError, match=words):
        function(**{**given, parameter: bad})


def test_indices_beyond_the_ends_are_refused():
    for start, limit in ((-7, None), (6, None), (0, 6), (3, 2), (None, -6)):
        with pytest.raises(FunctransError, match="start_index and limit_index"):
            lax.slice_in_dim(V, start, limit)
    np.testing.assert_array_equal(lax.slice_in_dim(V, -2, None), [3, 4])
    assert lax.slice_in_dim(V, 5, 5).shape == (0,)
    assert lax.full(2, 1.0).shape == (2,)
    with pytest.raises(FunctransError, match="dtype must be given"):
        lax.iota(None, 3)
    with pytest.raises(FunctransError, match="has dtype bool; a start is an integer"):
        lax.dynamic_slice_in_dim(V, True, 2)
