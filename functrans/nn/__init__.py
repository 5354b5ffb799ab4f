"""``functrans.nn``: activations, softmax and its like, attention, initial values of parameters."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

with _on_demand(globals()) as _later:
    from . import initializers
    from .attention import dot_product_attention
    from .normalizing import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize
    from .rectifiers import (
        celu,
        elu,
        hard_sigmoid,
        hard_silu,
        hard_swish,
        hard_tanh,
        leaky_relu,
        relu,
        relu6,
        selu,
        sparse_plus,
        sparse_sigmoid,
    )
    from .scaled import scaled_dot_general, scaled_matmul
    from .sigmoids import (
        gelu,
        glu,
        identity,
        log1mexp,
        log_sigmoid,
        mish,
        sigmoid,
        silu,
        soft_sign,
        softplus,
        squareplus,
        swish,
        tanh,
    )

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp",
    "mish", "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu",
    "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes(
    "functrans.nn",
    globals(),
    {
        "get_scaled_dot_general_config": "Quantized products need Nvidia's devices: round the operands yourself, and "
        "multiply them with nn.scaled_matmul"
    },
    later=_later,
)
