"""Functions of the library, each alone, on arrays of about a million elements (some of fewer)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)
_MATRIX = _RNG.standard_normal((1000, 1000))
_POSITIVE = np.abs(_MATRIX) + 0.1
_UNIT = np.clip(_POSITIVE, 0.01, 0.99)
_ROWS = _RNG.standard_normal((100_000, 8))
_TEN = _RNG.standard_normal((100_000, 10))
_VECTOR = _RNG.standard_normal(1_000_000)
_PLACES = _RNG.integers(0, 1000, 100_000)
_SQUARE = _RNG.standard_normal((300, 300))
_DEFINITE = _SQUARE @ _SQUARE.T + 300 * np.eye(300)
_BATCH = _RNG.standard_normal((200, 12, 12))
_BATCH_DEFINITE = _BATCH @ _BATCH.transpose(0, 2, 1) + 12 * np.eye(12)
_IMAGE, _FILTER = _RNG.standard_normal((256, 256)), _RNG.standard_normal((7, 7))
_IMAGES, _FILTERS = _RNG.standard_normal((8, 16, 32, 32)), _RNG.standard_normal((16, 16, 3, 3))


@dataclass(frozen=True)
class Case:
    """A function ``f(m, *arguments)`` of the namespaces `m`; without `grad` it has no gradient to speak of."""

    name: str
    f: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    grad: bool = True


def namespaces(package: str) -> SimpleNamespace:
    """The modules of functrans, or those of JAX with the same names."""
    parts = {
        "np": "numpy", "special": "scipy.special", "nn": "nn", "lax": "lax", "ops": "ops", "signal": "scipy.signal",
        "stats": "scipy.stats", "linalg": "scipy.linalg",
    }  # fmt: skip
    modules = {name: importlib.import_module(f"{package}.{part}") for name, part in parts.items()}
    return SimpleNamespace(vmap=importlib.import_module(package).vmap, **modules)


def _named(space: str, names: str, *arguments: np.ndarray, grad: bool = True) -> list[Case]:
    def of(name: str) -> Callable[..., Any]:
        return lambda m, *x: getattr(getattr(m, space), name)(*x)

    return [Case(name, of(name), arguments, grad) for name in names.split()]


def _along_axes(space: str, names: str, *, grad: bool = True) -> list[Case]:
    """Along the rows and the columns of a square matrix, and of one with short rows."""

    def of(name: str, axis: int) -> Callable[..., Any]:
        return lambda m, x: getattr(getattr(m, space), name)(x, axis=axis)

    layouts = (
        ("rows", _MATRIX, 1), ("columns", _MATRIX, 0), ("rows of 10", _TEN, 1), ("columns of 10 side by side", _TEN, 0)
    )  # fmt: skip
    return [
        Case(f"{name}, {layout}", of(name, axis), (x,), grad)
        for name in names.split()
        for layout, x, axis in layouts
    ]


def _of_matrices(**functions: Callable[..., Any]) -> list[Case]:
    return [
        Case(f"{name}, {label}", f, (x,))
        for name, f in functions.items()
        for label, x in (("300 x 300", _DEFINITE), ("200 of 12 x 12", _BATCH_DEFINITE))
    ]


CASES = [
    *_along_axes("np", "sum prod max mean var cumsum cumprod sort median ptp nansum nanmax"),
    *_along_axes("np", "argmax any argsort", grad=False),
    *_along_axes("special", "logsumexp"),
    *_along_axes("nn", "softmax log_softmax"),
    *_named("np", "sin cos tan arcsin arctan sinh tanh exp log sqrt abs cbrt expm1 log1p square", _UNIT),
    *_named("nn", "relu gelu silu softplus elu sigmoid", _MATRIX),
    *_named("special", "erf erfinv gammaln digamma i0e ndtri", _UNIT[:200]),
    *_named("special", "gammainc", _POSITIVE[:100] + 1, _POSITIVE[:100], grad=False),
    *_named("np", "maximum add power arctan2 hypot logaddexp", _POSITIVE, _POSITIVE[::-1].copy()),
    Case("where", lambda m, x: m.np.where(x > 0, x, m.np.exp(x)), (_MATRIX,)),
    Case("masked maximum", lambda m, x: m.np.max(m.np.where(x > 1, -np.inf, x), axis=1), (_MATRIX,)),
    Case("transpose", lambda m, x: x.T * 2, (_MATRIX,)),
    Case("transpose, 1024 x 1024", lambda m, x: x.T * 2, (np.ones((1024, 1024)),)),
    Case("x + x.T", lambda m, x: x + x.T, (_MATRIX,)),
    Case("flip", lambda m, x: m.np.flip(x, 1), (_MATRIX,)),
    Case("roll, rows", lambda m, x: m.np.roll(x, 3, 1), (_MATRIX,)),
    Case("roll, columns", lambda m, x: m.np.roll(x, 3, 0), (_MATRIX,)),
    Case("concatenate", lambda m, x: m.np.concatenate([x, x * 2], 1), (_MATRIX,)),
    Case("stack", lambda m, x: m.np.stack([x, x * 2], -1), (_MATRIX,)),
    Case("pad", lambda m, x: m.np.pad(x, 3), (_MATRIX,)),
    Case("pad, reflect", lambda m, x: m.np.pad(x, 3, mode="reflect"), (_MATRIX,)),
    Case("tile", lambda m, x: m.np.tile(x, (2, 2)), (_MATRIX[:500, :500],)),
    Case("repeat", lambda m, x: m.np.repeat(x, 3, axis=1), (_MATRIX[:500, :500],)),
    Case("diff", lambda m, x: m.np.diff(x, axis=1), (_MATRIX,)),
    Case("tril", lambda m, x: m.np.tril(x), (_MATRIX,)),
    Case("x[i]", lambda m, x, i: x[i], (_ROWS[:1000], _PLACES)),
    Case("x[:, i]", lambda m, x, i: x[:, i], (_MATRIX[:100], _PLACES[:1000])),
    Case("x[i], numbers", lambda m, x, i: x[i], (_VECTOR, _PLACES)),
    Case("x.at[i].add", lambda m, x, i: m.np.zeros((1000, 8), x.dtype).at[i].add(x), (_ROWS, _PLACES)),
    Case("segment_sum", lambda m, x, i: m.ops.segment_sum(x, i, 1000), (_ROWS, _PLACES)),
    Case("segment_max", lambda m, x, i: m.ops.segment_max(x, i, 1000), (_ROWS, _PLACES)),
    Case("interp", lambda m, *x: m.np.interp(*x), (_VECTOR[:100_000], np.linspace(-3, 3, 999), _VECTOR[:999])),
    Case("top_k", lambda m, x: m.lax.top_k(x, 10)[0], (_MATRIX,)),
    *_of_matrices(
        cholesky=lambda m, x: m.np.linalg.cholesky(x),
        inv=lambda m, x: m.np.linalg.inv(x),
        slogdet=lambda m, x: m.np.linalg.slogdet(x)[1],
        qr=lambda m, x: m.np.linalg.qr(x)[1],
        singular_values=lambda m, x: m.np.linalg.svd(x, compute_uv=False),
        eigenvalues=lambda m, x: m.np.linalg.eigvalsh(x),
        solve=lambda m, x: m.np.linalg.solve(x, m.np.sin(x)[..., :1]),
    ),
    Case("expm", lambda m, x: m.linalg.expm(x), (_SQUARE[:60, :60] / 10,)),
    Case("x @ x", lambda m, x: x @ x, (_SQUARE,)),
    Case("x.T @ x, tall", lambda m, x: x.T @ x, (_ROWS,)),
    Case("x @ v", lambda m, x: x @ x[0], (_MATRIX,)),
    Case("x @ x, batch", lambda m, x: x @ x, (_BATCH,)),
    Case("einsum, three", lambda m, x: m.np.einsum("ij,jk,kl->il", x, x, x), (_SQUARE,)),
    Case("cross", lambda m, x: m.np.cross(x[:, :3], x[:, 3:6]), (_ROWS,)),
    Case("cov", lambda m, x: m.np.cov(x, rowvar=False), (_ROWS,)),
    Case("norm", lambda m, x: m.np.linalg.norm(x, axis=1), (_MATRIX,)),
    Case("rfft", lambda m, x: m.np.abs(m.np.fft.rfft(x, axis=1)), (_MATRIX,)),
    Case("fft2", lambda m, x: m.np.abs(m.np.fft.fft2(x)), (_IMAGE,)),
    Case("convolve2d", lambda m, x, y: m.signal.convolve2d(x, y, mode="same"), (_IMAGE, _FILTER)),
    Case("convolution", lambda m, x, w: m.lax.conv(x, w, (1, 1), "SAME"), (_IMAGES, _FILTERS)),
    Case("layer norm", lambda m, x: (x - x.mean(1)[:, None]) / m.np.sqrt(x.var(1)[:, None] + 1e-5), (_MATRIX,)),
    Case("distances", lambda m, x: m.np.sqrt(((x[:, None] - x) ** 2).sum(-1) + 1e-3), (_ROWS[:600],)),
    Case("map", lambda m, x: m.lax.map(lambda row: m.np.sin(row).sum(), x), (_MATRIX,)),
    Case("associative_scan", lambda m, x: m.lax.associative_scan(m.np.add, x), (_VECTOR[:100_000],)),
    Case("normal log density", lambda m, x: m.stats.norm.logpdf(x), (_MATRIX,)),
    Case("gamma log density", lambda m, x: m.stats.gamma.logpdf(x, 2.5), (_POSITIVE[:200],)),
    Case("polyval", lambda m, x: m.np.polyval(np.arange(1.0, 9.0, dtype=x.dtype), x), (_MATRIX,)),
]  # fmt: skip
