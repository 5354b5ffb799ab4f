"""What to write for methods and attributes that arrays have elsewhere: for code that comes from PyTorch."""

from __future__ import annotations

from ..core.trace import operators

_NUMPY = (
    "abs", "acos", "asin", "atan", "atan2", "broadcast_to", "ceil", "cos", "cosh", "diff", "exp",
    "expm1", "flip", "floor", "fmod", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2",
    "logaddexp", "maximum", "median", "minimum", "moveaxis", "outer", "reciprocal", "remainder", "roll",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "tile", "tril", "triu", "trunc", "unique",
    "where",
)  # fmt: skip
_AS_IT_IS = ": an array never changes, so use it as it is"
_GRADIENT = ": a derivative is a function. Write functrans.grad(f)(x)"
_TYPE = ": write x.astype(dtype)"

operators.absent.update({name: f": write functrans.numpy.{name}(x)" for name in _NUMPY})
operators.absent.update(
    {
        **dict.fromkeys(("clone", "contiguous", "cpu", "cuda", "pin_memory"), _AS_IT_IS),
        **dict.fromkeys(("grad", "backward", "requires_grad", "requires_grad_", "retain_grad"), _GRADIENT),
        **dict.fromkeys(("double", "float", "half", "int", "long", "bool", "to", "type", "type_as"), _TYPE),
        **dict.fromkeys(("mm", "bmm", "mv", "matmul"), ": write x @ y"),
        **dict.fromkeys(("expand", "expand_as"), ": write functrans.numpy.broadcast_to(x, shape)"),
        "addmm": ": write x + a @ b",
        "cat": ": write functrans.numpy.concatenate",
        "clamp": ": write x.clip(low, high)",
        "data_ptr": ": it has no memory of its own",
        "detach": ": write functrans.lax.stop_gradient(x). In forward and backward of a Function, nothing is needed",
        "dim": ": write x.ndim",
        "gather": ": write functrans.numpy.take_along_axis(x, indices, axis)",
        "index_select": ": write functrans.numpy.take(x, indices, axis)",
        "masked_fill": ": write functrans.numpy.where(mask, value, x)",
        "neg": ": write -x",
        "new_ones": ": write functrans.numpy.ones(shape, x.dtype)",
        "new_zeros": ": write functrans.numpy.zeros(shape, x.dtype)",
        "norm": ": write functrans.numpy.linalg.norm(x)",
        "numel": ": write x.size",
        "numpy": ": write np.asarray(x), where its numbers are known. A Function that calls NumPy has host = True",
        "permute": ": write x.transpose(axes)",
        "pow": ": write x**n",
        "rsqrt": ": write 1.0 / functrans.numpy.sqrt(x)",
        "scatter_add": ": write x.at[indices].add(values)",
        "sigmoid": ": write functrans.scipy.special.expit(x)",
        "softmax": ": write functrans.scipy.special.softmax(x, axis)",
        "t": ": write x.T",
        "topk": ": write functrans.numpy.argsort(x)[..., -k:]",
        "unsqueeze": ": write functrans.numpy.expand_dims(x, axis)",
        "view_as": ": write x.reshape(y.shape)",
    }
)
for _name in ("add", "sub", "mul", "div", "zero", "fill", "copy", "clamp", "masked_fill"):
    operators.absent[f"{_name}_"] = ": an array never changes. Compute a new one, or write x.at[i].set(v)"
