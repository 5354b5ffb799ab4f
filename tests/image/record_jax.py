"""Record what JAX computes: ``python tests/image/record_jax.py`` writes ``jax_vectors.npz`` beside this file."""

from pathlib import Path

import numpy as np
from jax_calls import CALLS, arrays


def main():
    import jax
    import jax.image

    jax.config.update("jax_enable_x64", True)
    names = {"image": jax.image, **arrays()}
    values = {str(i): np.asarray(eval(call, names)) for i, call in enumerate(CALLS)}
    calls = np.array(CALLS)
    np.savez_compressed(
        Path(__file__).with_name("jax_vectors.npz"), calls=calls, jax=jax.__version__, **values
    )


if __name__ == "__main__":
    main()
