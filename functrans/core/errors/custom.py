"""Operations with rules of the user's own: how they are defined, and what their context allows."""

from __future__ import annotations

from .base import FunctransError
from .derivatives import NoRuleError


class FunctionError(FunctransError, RuntimeError):
    """An operation with a rule of its own (`Function`, `custom_vjp`, `custom_jvp`, ...) and something wrong with it.

    Base class of the errors that follow. Their messages name the operation (``MyOpBackward``, as PyTorch does, where
    its backward is at fault), count arguments from 0, and show the line of the rule.

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

    Return a gradient for each argument: ``return g * ctx.factor, None``.
    """


class FunctionDefinitionError(FunctionError, TypeError):
    """An operation that is not defined, or not called, as it must be.

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
    functrans.core.errors.FunctionDefinitionError: Function is never instantiated; use Square.apply...

    Write ``Square.apply(3.0)``. Other examples: both `backward` and `vjp`, or both `vmap` and `generate_vmap_rule`
    (define one); a `backward` that returns a list (return a tuple); ``ctx.save_for_backward(3)`` (save arrays, assign
    other values to `ctx`); a keyword that `forward` does not have.
    """


class FunctionContractError(FunctionError):
    """A method of `ctx` called where it may not be, or twice.

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
    functrans.core.errors.FunctionContractError: Product: save_for_backward called twice in one forward...

    Save everything by one call: ``ctx.save_for_backward(x, y)``. The setters of `ctx` belong into `forward` or
    `setup_context`, ``ctx.saved_tensors`` into `backward`; `jvp` sees what ``ctx.save_for_forward`` was given; only
    outputs of the call are marked non-differentiable; with ``config.strict_ctx`` arrays are saved, never assigned.
    """


class ContextAttributeError(FunctionError, AttributeError):
    """An attribute of `ctx` that cannot be set: in `backward` none can, and some names are its own.

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
    functrans.core.errors.ContextAttributeError: Counted: ctx.calls cannot be set: ctx is read-only in backward...

    `backward` may run any number of times, and later than `forward`: compute there, keep nothing. To count or to look
    at values use ``functrans.debug.callback``.
    """


class MissingRuleError(FunctionError, NoRuleError):
    """A transformation asked for a rule that the operation does not have, and that cannot be derived from the others.

    >>> import functrans as ft
    >>> class Double(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    >>> ft.grad(Double.apply)(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.MissingRuleError: reverse mode through Double: You must implement either the backward or...

    Reverse mode wants `backward` (or `jvp`, which is transposed); forward mode wants `jvp` (or a `backward` that is
    linear in the gradient). A `NotImplementedError` as well.
    """


class OnceDifferentiableError(FunctionError):
    """A second derivative through a rule that was declared good for the first one only.

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
    functrans.core.errors.OnceDifferentiableError: trying to differentiate twice a function that was marked with...

    If `backward` is made of operations that have derivatives, take the decorator away. If it is not (it calls a library
    by a host callback), write it as another operation with a rule of its own.
    """


class SavedValuesFreedError(FunctionError):
    """What was saved for the backward pass has been freed, and is asked for again.

    >>> import functrans as ft
    >>> y, pull = ft.vjp(lambda x: x * x, 3.0, retain=False)
    >>> pull(1.0)
    (Array(6.),)
    >>> pull(1.0)
    Traceback (most recent call last):
    ...
    functrans.core.errors.SavedValuesFreedError: vjp of <lambda>: Trying to backward through the graph a second time...

    Leave `retain` at True (the default), and free the memory by ``pull.release()`` after the last call. A `Function`
    with ``clear_saved_tensors_on_access = True`` reads ``ctx.saved_tensors`` once: keep the tuple in a variable.
    """


class CapturedTracerError(FunctionError):
    """A rule uses a value that is being differentiated, but that is not among its arguments.

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
    functrans.core.errors.CapturedTracerError: scaled: 'w' is being differentiated (by grad) but is captured ...

    The rule tells derivatives in the arguments only; that in a captured value would be lost. Make it an argument:
    ``def scaled(w, x)``. Captured values that are not differentiated (those of ``vmap`` and ``jit``) need
    nothing, where they stand in the closure of a rule, or in an argument. Elsewhere (in a global variable, in an
    attribute of a class) they are not found, which is this error, too.
    """
