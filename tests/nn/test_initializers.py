"""Initial values: JAX's numbers, moments, errors."""

import numpy as np
import pytest

import functrans as ft
from functrans import nn, random
from functrans.errors import ArgumentError, ArgumentValueError, DtypeError
from functrans.nn import initializers as init

KEY = random.key(3)
#: Recorded from JAX 0.10: float32, shape (1, 2, 3), key 3.
RECORDED = {
    "glorot_normal": [-0.94901913, 1.00166261, 0.26192677, 1.21133268, -0.40112194, 0.14362577],
    "he_uniform": [-1.47552514, 1.51777649, 0.51600224, 1.64759934, -0.76772189, 0.28730592],
    "lecun_normal batch_axis=0": [-1.06103563, 1.11989284, 0.292843, 1.35431111, -0.44846797, 0.16057849],
    "orthogonal scale=2.0": [-1.79964185, 0.47596955, -0.73126066, 0.56067276, 1.91517329, -0.13325748],
    "delta_orthogonal": [-0.89982092, 0.23798478, -0.36563033, 0.28033638, 0.95758665, -0.06662874],
    "normal stddev=0.3": [-0.43387711, 0.46181431, 0.11475188, 0.59121054, -0.17630023, 0.06282469],
    "uniform scale=0.3": [0.02221577, 0.2814433, 0.19468711, 0.29268631, 0.08351333, 0.17488143],
    "truncated_normal stddev=0.3": [-0.39597172, 0.41793683, 0.10928715, 0.50542027, -0.16736537, 0.05992686],
}


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_of_jax(name):
    function, *options = name.split()
    options = dict(option.split("=") for option in options)
    made = getattr(init, function)(**{k: float(v) if "." in v else int(v) for k, v in options.items()})
    assert isinstance(made, init.Initializer)
    out = made(KEY, (1, 2, 3), np.float32)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.ravel(), RECORDED[name], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_variances(distribution, dtype):
    """The number of inputs is 2 * 3 * 100 here, that of outputs 2 * 3 * 50."""
    fans = {"fan_in": 600, "fan_out": 300, "fan_avg": 450, "fan_geo_avg": np.sqrt(600 * 300)}
    for mode, fan in fans.items():
        out = init.variance_scaling(1.5, mode, distribution)(KEY, (2, 3, 100, 50), dtype)
        assert out.dtype == dtype
        assert abs(np.var(out) * fan / 1.5 - 1) < 0.03
        assert abs(np.mean(out)) * np.sqrt(fan) < 0.03


def test_orthogonal():
    q = init.orthogonal(column_axis=0, dtype=np.complex128)(KEY, (2, 3, 4))
    np.testing.assert_allclose(np.einsum("abc,dbc->ad", q, q.conj()), np.eye(2), atol=1e-14)
    window = init.delta_orthogonal(3.0)(KEY, (3, 4, 2, 5))
    np.testing.assert_allclose(window[1, 1] @ window[1, 1].T, 9 * np.eye(2), atol=1e-13)
    assert np.count_nonzero(window) == 10


def test_compiled_and_mapped():
    draw = init.he_normal()
    keys = random.split(KEY, 3)
    got = ft.jit(ft.vmap(lambda key: draw(key, (4, 2))))(keys)
    np.testing.assert_allclose(got, [draw(key, (4, 2)) for key in keys], rtol=1e-12)
    assert init.constant(2.0, np.float32)(KEY, (3,)).dtype == np.float32
    assert init.zeros(KEY, (2,), np.float32).sum() + init.ones(KEY, (2,)).sum() == 2.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: init.he_normal()(KEY, (3,)),
            ArgumentValueError,
            "he_normal: weights need an axis of inputs",
        ),
        (lambda: init.variance_scaling(1.0, "in", "normal"), ArgumentValueError, "'fan_in'"),
        (lambda: init.variance_scaling(1.0, "fan_in", "gauss"), ArgumentValueError, "'truncated_normal'"),
        (lambda: init.normal(dtype=int), DtypeError, "normal: dtype must be a float"),
        (lambda: init.normal()(3, (2,)), ArgumentError, "key"),
        (lambda: init.orthogonal()(KEY, (3,)), ArgumentValueError, "two axes"),
        (lambda: init.delta_orthogonal()(KEY, (3, 3, 2)), ArgumentValueError, r"more inputs \(3\)"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_quantized_products_name_the_way():
    with pytest.raises(AttributeError, match=r"nn\.scaled_matmul"):
        _ = nn.get_scaled_dot_general_config
