"""Custom rules: how they are defined, what their context allows, what they return."""

from __future__ import annotations

from .arrays import DtypeError, ShapeError
from .base import FunctransError
from .tracing import GradientError, NoRuleError


class FunctionError(FunctransError, RuntimeError):
    """Something is wrong with an operation that has a custom rule (`Function`, `custom_vjp`, `custom_jvp`, ...).

    Base class of the errors that follow. Their messages name the operation (``MyOpBackward``, as in PyTorch, if its
    backward is at fault), count arguments from 0, and show the line of the rule.

    >>> import functrans as ft
    >>> class Scale(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * ctx.factor
    >>> try:
    ...     ft.grad(lambda x: Scale.apply(x, 3))(1.0)
    ... except ft.FunctionError as error:
    ...     print(type(error).__name__)
    GradientCountError

    Return one gradient per argument: ``return g * ctx.factor, None``.
    """


class FunctionDefinitionError(FunctionError, TypeError):
    """An operation is defined or called incorrectly.

    >>> import functrans as ft
    >>> class Square(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> Square()(3.0)
    Traceback (most recent call last):
    ...
    functrans.errors.FunctionDefinitionError: Function is never instantiated; use Square.apply...

    Write ``Square.apply(3.0)``. Other examples: both `backward` and `vjp`, or both `vmap` and `generate_vmap_rule`
    (define one); a `backward` that returns a list (return a tuple); ``ctx.save_for_backward(3)`` (save arrays, assign
    other values to `ctx`); a keyword that `forward` does not have.
    """


class FunctionContractError(FunctionError):
    """A method of `ctx` was called twice, or in the wrong place.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Product(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, y):
    ...         ctx.save_for_backward(x)
    ...         ctx.save_for_backward(y)
    ...         return x * y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, y = ctx.saved_tensors
    ...         return g * y, g * x
    >>> Product.apply(fnp.ones(2), fnp.ones(2))
    Traceback (most recent call last):
    ...
    functrans.errors.FunctionContractError: Product: save_for_backward called twice in one forward...

    Save everything in one call: ``ctx.save_for_backward(x, y)``. Call the setters of `ctx` in `forward` or
    `setup_context`, and read ``ctx.saved_tensors`` in `backward`; in `jvp` it holds what ``ctx.save_for_forward``
    saved. Mark only outputs of the call as non-differentiable, and only inputs that an output replaces as dirty. With
    ``config.strict_ctx``, save arrays instead of assigning them.
    """


class ContextAttributeError(FunctionError, AttributeError):
    """An attribute of `ctx` cannot be set: `ctx` is read-only in `backward`, and some names are reserved.

    >>> import functrans as ft
    >>> class Counted(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.calls = 0
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         ctx.calls += 1
    ...         return 2 * g
    >>> ft.grad(Counted.apply)(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.ContextAttributeError: Counted: ctx.calls cannot be set: ctx is read-only in backward...

    `backward` may run any number of times, and later than `forward`, so it must not store anything. To count calls or
    inspect values, use ``functrans.debug.callback``.
    """


class MissingRuleError(FunctionError, NoRuleError):
    """A transformation needs a rule that the operation lacks and that cannot be derived from its other rules.

    >>> import functrans as ft
    >>> class Double(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    >>> ft.grad(Double.apply)(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.MissingRuleError: reverse mode through Double: You must implement either the backward or...

    Reverse mode needs `backward` (or `jvp`, which is transposed); forward mode needs `jvp` (or a `backward` that is
    linear in the gradient). This is also a `NotImplementedError`.
    """


class OnceDifferentiableError(FunctionError):
    """A rule marked `once_differentiable` was differentiated again.

    >>> import functrans as ft
    >>> class Cube(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     @ft.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> ft.grad(Cube.apply)(2.0)
    Array(12.)
    >>> ft.grad(ft.grad(Cube.apply))(2.0)
    Traceback (most recent call last):
    ...
    functrans.errors.OnceDifferentiableError: trying to differentiate twice a function that was marked with...

    If `backward` consists of operations that have derivatives, remove the decorator. Otherwise (it calls a library
    through a host callback), write it as another operation with a rule.
    """


class SavedValuesFreedError(FunctionError):
    """The values saved for the backward pass were freed, but are needed again.

    >>> import functrans as ft
    >>> y, pullback = ft.vjp(lambda x: x * x, 3.0, retain=False)
    >>> pullback(1.0)
    (Array(6.),)
    >>> pullback(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.SavedValuesFreedError: vjp of <lambda>: Trying to backward through the graph a second time...

    Leave `retain` at True (the default), and free the memory with ``pullback.release()`` after the last call. A
    `Function` with ``clear_saved_tensors_on_access = True`` can read ``ctx.saved_tensors`` once: store the tuple in a
    variable.
    """


class CapturedTracerError(FunctionError):
    """A rule captures a value that is being differentiated, instead of receiving it as an argument.

    >>> import functrans as ft
    >>> def loss(w):
    ...     @ft.custom_vjp
    ...     def scaled(x):
    ...         return w * x
    ...     scaled.defvjp(lambda x: (w * x, None), lambda res, g: (g,))
    ...     return scaled(2.0)
    >>> ft.grad(loss)(3.0)
    Traceback (most recent call last):
    ...
    functrans.errors.CapturedTracerError: scaled: 'w' is being differentiated (by grad) but is captured ...

    The rule gives derivatives in the arguments only, so the derivative in a captured value would be lost. Make it an
    argument: ``def scaled(w, x)``. A rule may capture traced values that are not differentiated (those of ``vmap`` and
    ``jit``) in its closure or in an argument. functrans does not see them elsewhere (in a global variable, in an
    attribute of a class), and raises this error too.
    """


class GradientCountError(FunctionError, TypeError):
    """A backward returned more or fewer gradients than the operation has arguments.

    >>> import functrans as ft
    >>> class Scale(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.factor = factor
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * ctx.factor
    >>> ft.grad(lambda x: Scale.apply(x, 3))(1.0)
    Traceback (most recent call last):
    ...
    functrans.errors.GradientCountError: function ScaleBackward returned an incorrect number of gradients...

    Return one for each argument of `forward` except `ctx`, with None where there is no gradient:
    ``return g * ctx.factor, None``. Only None may follow the last one.
    """


class BackwardError(FunctionError, GradientError):
    """A backward returned a gradient where none can exist, or a value that is not a gradient.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Apply(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, name):
    ...         ctx.save_for_backward(x)
    ...         return getattr(fnp, name)(x)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return fnp.cos(x) * g, g
    >>> ft.grad(lambda x: Apply.apply(x, "sin"))(2.0)
    Traceback (most recent call last):
    ...
    functrans.errors.BackwardError: function ApplyBackward returned a gradient different than None at position 1...

    Return None for arguments that are not arrays, and for integer arrays; a gradient for a Python number is dropped.
    Return arrays; a Python number is valid only if the argument is a scalar.
    """


class GradientShapeError(FunctionError, ShapeError):
    """A gradient does not have the shape of its argument, and cannot be summed to it.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Head(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x[:2]
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g
    >>> ft.grad(lambda x: fnp.sum(Head.apply(x)))(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.GradientShapeError: function HeadBackward returned an invalid gradient at index 0 - got [2]...

    A gradient must have the shape of its argument (``fnp.pad(g, (0, 1))``), or a shape to which the argument
    broadcasts, which is then summed. `custom_vjp` requires exactly the shape of the argument.
    """


class GradientDtypeError(FunctionError, DtypeError):
    """A backward returned a complex gradient for a real argument.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Turn(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 1j * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return -1j * g
    >>> ft.grad(lambda x: fnp.abs(Turn.apply(x)))(2.0)
    Traceback (most recent call last):
    ...
    functrans.errors.GradientDtypeError: function TurnBackward returned a complex gradient for argument 0 ('x')...

    Return the real part: ``(-1j * g).real``. Gradients of other float dtypes, and real ones of complex arguments, are
    converted.
    """


class GradientStructureError(FunctionError, TypeError):
    """The gradient of a pytree argument (tuple, list, dict) has another structure than the argument.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Affine(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, p, x):
    ...         ctx.save_for_backward(x)
    ...         return p["w"] * x + p["b"]
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return {"w": g * x}, None
    >>> ft.grad(lambda p: Affine.apply(p, fnp.asarray(2.0)))({"w": 1.0, "b": 0.0})
    Traceback (most recent call last):
    ...
    functrans.errors.GradientStructureError: function AffineBackward returned a gradient of another structure...

    Return the structure of the argument, ``{"w": g * x, "b": g}``, with None for a leaf without a gradient; or
    None for the whole argument.
    """


class TangentError(FunctionError, TypeError):
    """A jvp rule returned a tangent where none can exist, or a value that is not a tangent.

    >>> import functrans as ft
    >>> class Step(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = (x > 0) * 1.0
    ...         ctx.mark_non_differentiable(y)
    ...         return y
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         return t
    >>> ft.jvp(Step.apply, (1.0,), (1.0,))
    Traceback (most recent call last):
    ...
    functrans.errors.TangentError: the jvp of Step returned a tangent for the output, but it is marked...

    Return None for outputs that are marked non-differentiable, and for integers and booleans.
    """


class TangentCountError(TangentError):
    """A jvp rule returned more or fewer tangents than the operation has outputs.

    >>> import functrans as ft
    >>> class Twice(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         return 2 * t, None
    >>> ft.jvp(Twice.apply, (1.0,), (1.0,))
    Traceback (most recent call last):
    ...
    functrans.errors.TangentCountError: the jvp of Twice returned an invalid number of forward gradients...

    Return one for each output of `forward`, with None for zero; here ``return 2 * t``.
    """


class TangentShapeError(TangentError, ShapeError):
    """A tangent does not have the shape of its output.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Total(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return fnp.sum(x)
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         return t
    >>> ft.jvp(Total.apply, (fnp.ones(3),), (fnp.ones(3),))
    Traceback (most recent call last):
    ...
    functrans.errors.TangentShapeError: the jvp of Total returned a tangent of shape (3,) for the output, which...

    Apply the derivative of `forward` to the tangents: ``return fnp.sum(t)``.
    """


class TangentDtypeError(TangentError, DtypeError):
    """A jvp rule returned a complex tangent for a real output.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Length(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, z):
    ...         ctx.save_for_forward(z)
    ...         return fnp.abs(z)
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         (z,) = ctx.saved_tensors
    ...         return fnp.conj(z) * t / fnp.abs(z)
    >>> ft.jvp(Length.apply, (3 + 4j,), (1j,))
    Traceback (most recent call last):
    ...
    functrans.errors.TangentDtypeError: the jvp of Length returned a complex tangent for the output, which is...

    Return the real part: ``(fnp.conj(z) * t).real / fnp.abs(z)``. Tangents of other float dtypes are converted.
    """


class VmapRuleError(FunctionError):
    """A `vmap` rule did not return outputs and their batch axes, or is missing.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Plain(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def vmap(info, in_dims, x):
    ...         return Plain.apply(x)
    >>> ft.vmap(Plain.apply)(fnp.ones(3))
    Traceback (most recent call last):
    ...
    functrans.errors.VmapRuleError: Plain: Expected the vmap staticmethod to have two returns...

    Return a pair, the outputs and their batch axes: ``return Plain.apply(x), in_dims[0]``, with None for outputs that
    have none. Or omit `vmap`, and functrans derives it.
    """


class AutocastError(FunctionError):
    """A pullback is called under another autocast than a custom rule's reverse rule was traced for.

    Raised with ``config.check_backward_autocast = "error"``. The reverse rule of a compiled function is traced with the
    forward pass, under the autocast that ``config.backward_pass_autocast`` says: by default that of the forward pass.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Product(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x @ x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g @ x.T + x.T @ g
    >>> with ft.autocast("float32"):
    ...     out, pullback = ft.vjp(ft.jit(Product.apply), fnp.ones((2, 2)))
    >>> with ft.config.patch(check_backward_autocast="error"):
    ...     pullback(out)
    Traceback (most recent call last):
    ...
    functrans.errors.AutocastError: ProductBackward was traced for autocast('float32'), but the...

    Call the pullback under the same autocast. Or declare before the forward pass which autocast the pullback
    will be called under: ``config.backward_pass_autocast = "off"``, or arguments of `autocast`. Or decorate `backward`
    with `custom_bwd`, so that it always runs under the autocast of `forward`.
    """
