"""Record what JAX draws: ``python tests/random/record_jax.py`` writes ``jax_vectors.npz`` beside this file."""

from pathlib import Path

import numpy as np
from jax_calls import CALLS, SEED


def main():
    import jax

    jax.config.update("jax_enable_x64", True)
    names = {"random": jax.random, "key": jax.random.key(SEED), "np": np}
    values = {str(i): np.asarray(eval(call, names)) for i, call in enumerate(CALLS)}
    calls = np.array(list(CALLS))
    np.savez_compressed(
        Path(__file__).with_name("jax_vectors.npz"), calls=calls, jax=jax.__version__, **values
    )


if __name__ == "__main__":
    main()
