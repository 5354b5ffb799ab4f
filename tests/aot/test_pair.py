"""Forward and backward programs as a pair: what they compute, what is between them, pictures, bad choices."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.special import expit

import functrans as ft
import functrans.numpy as fnp
from functrans import aot
from functrans.errors import ArgumentError, ArgumentValueError, PartitionError
from functrans.runtime.config import config

X, W = np.linspace(-1.0, 1.0, 6), np.linspace(-0.5, 0.5, 36).reshape(6, 6)
PARTITIONERS = {
    "default": None,
    "min_cut": aot.min_cut,
    "save_all": aot.save_all,
    "recompute_all": aot.recompute_all,
    "dots": aot.by_policy(ft.checkpoint_policies.dots_saveable),
    "own": lambda joint: joint.needed[-1:],
}


def f(params, x, n):
    """Arrays in a tree, a number, an integer; an output without a derivative, and one that is an input."""
    h = fnp.tanh(params["w"] @ x) * params["scale"]
    return {"loss": fnp.sum(fnp.logaddexp(h, 0.0)), "where": fnp.argmax(h), "x": x}, n + 1


ARGS = ({"w": W, "scale": 1.5}, X, 3)


def run(pair, *values):
    return aot.compile_jaxpr(pair.forward)(*values)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_the_pair_computes_value_and_gradient(name):
    pair = aot.trace_pair(f, *ARGS, partition_fn=PARTITIONERS[name])
    leaves = [1.5, W, X, 3]  # of a dict, in the order of its keys
    outs = run(pair, *leaves)
    h = np.tanh(W @ X)
    np.testing.assert_allclose(outs[0], np.sum(np.logaddexp(1.5 * h, 0)), rtol=1e-13)
    assert (int(outs[1]), int(outs[3])) == (np.argmax(h), 4)
    assert pair.num_outputs == 4
    assert len(pair.forward.outvars) == 4 + sum(s.kind == "value" for s in pair.saved)
    saved = [leaves[s.index] if s.kind == "input" else outs[s.index] for s in pair.saved]
    d_scale, d_w, d_x = aot.compile_jaxpr(pair.backward)(*saved, 2.0, np.ones(6))
    slope = 2 * expit(1.5 * h)
    inner = slope * 1.5 * (1 - h * h)
    np.testing.assert_allclose(d_scale, slope @ h, rtol=1e-12)
    np.testing.assert_allclose(d_w, np.outer(inner, X), rtol=1e-12)
    np.testing.assert_allclose(d_x, W.T @ inner + 1, rtol=1e-12)
    assert pair.residual_bytes == sum(s.bytes for s in pair.saved)
    assert all(e in pair.forward.eqns for e in pair.recomputed)


def test_what_is_saved_has_a_name():
    pair = aot.trace_pair(lambda x, w: fnp.sin(w @ x), X, W)
    kinds = {s.kind: s for s in pair.saved}
    assert kinds["input"].source in ("argument 0 ('x')", "argument 1 ('w')")
    assert kinds["input"].bytes == 0
    assert kinds["value"].bytes == 48
    assert "test_pair.py" in kinds["value"].source


def test_sines_are_computed_again():
    def sines(x):
        return fnp.sin(fnp.sin(fnp.sin(x)))

    assert [s.kind for s in aot.trace_pair(sines, X).saved] == ["input"]
    assert aot.trace_pair(sines, X, partition_fn=aot.save_all).residual_bytes == 3 * X.nbytes
    g = np.cos(X) * np.cos(np.sin(X)) * np.cos(np.sin(np.sin(X)))
    for partitioner, expected in [("min_cut", 0), ("save_all", 3 * X.nbytes)]:
        with config.patch(partitioner=partitioner):
            _, pull = ft.vjp(ft.jit(sines), X)
            assert pull.residual_bytes == expected
            np.testing.assert_allclose(pull(np.ones(6))[0], g, rtol=1e-13)
            pull.release()
            assert pull.residual_bytes == 0


def test_residual_bytes_count_each_array_once_and_no_argument():
    def products(x, w):
        return fnp.exp(w @ x) * fnp.sum(x), w.T @ x

    y = np.exp(W @ X)
    _, pull = ft.vjp(ft.jit(products), X, W)
    assert pull.residual_bytes in (y.nbytes, y.nbytes + 8)  # with the sum, or without
    _, eager = ft.vjp(lambda x: fnp.sum(x.T * x), fnp.asarray(W))
    assert eager.residual_bytes == 0
    writable = W.copy()
    _, pull = ft.vjp(lambda x: fnp.sum(x * x), writable)
    assert pull.residual_bytes == 0


def test_equal_pairs_give_equal_pictures(tmp_path):
    for suffix in (".svg", ".dot"):
        texts = []
        for name in ("one", "two"):
            path = tmp_path / f"{name}{suffix}"
            aot.trace_pair(lambda x, w: fnp.sin(w @ x), X, W).draw(path)
            texts.append(path.read_text())
        assert texts[0] == texts[1]
        assert "48 bytes" in texts[0]
        assert "dot_general" in texts[0]
    ET.fromstring((tmp_path / "one.svg").read_text())
    with pytest.raises(ArgumentValueError, match=r"\.svg.*\.dot"):
        aot.trace_pair(fnp.sin, X).draw(tmp_path / "pair.png")


def test_bad_choices():
    def counted(x):
        return x * ft.pure_callback(np.abs, ft.ShapeDtypeStruct(X.shape, X.dtype), ft.lax.stop_gradient(x))

    with pytest.raises(PartitionError, match="returned 3"):
        aot.trace_pair(f, *ARGS, partition_fn=lambda joint: 3)
    stranger = aot.trace_pair(fnp.sin, X).forward.outvars[0]
    with pytest.raises(PartitionError, match="does not define"):
        aot.trace_pair(f, *ARGS, partition_fn=lambda joint: {stranger})
    with pytest.raises(PartitionError, match=r"pure_callback(.|\n)*test_pair.py(.|\n)*Save"):
        aot.trace_pair(counted, X, partition_fn=lambda joint: set())
    assert [s.kind for s in aot.trace_pair(counted, X, partition_fn=aot.recompute_all).saved] == ["value"]
    with pytest.raises(ArgumentError, match="trace_pair"):
        aot.trace_pair(3, X)
