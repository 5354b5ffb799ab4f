"""A program for JAX, which `test_as_jax` runs on functrans."""

import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import jax.scipy.stats.norm as norm
import jaxlib
from jax import lax

import functrans

assert jax.__functrans__ is functrans
assert jax.grad is functrans.grad
assert jnp.sin is functrans.numpy.sin
assert jax.__version__ == jaxlib.__version__ == importlib.metadata.version("jax")
assert isinstance(jnp.ones(3), jax.Array)
assert not hasattr(jax, "no_such_name")
assert float(jax.grad(lambda x: norm.logpdf(x) + lax.exp(x))(0.0)) == 1.0
assert "vmap" in dir(jax)
assert importlib.metadata.version("numpy")
assert sys.argv[1:] == ["a", "b"]
assert __name__ == "__main__"
for module, name in [("jax", "no_such_name"), ("jax.lax", "sinn")]:
    try:
        exec(f"from {module} import {name}")
    except ImportError as error:
        print(error)
try:
    jax.lax.sinn
except AttributeError as error:
    print(error)
try:
    import jax.experimental.pallas
except ModuleNotFoundError as error:
    print(error)
