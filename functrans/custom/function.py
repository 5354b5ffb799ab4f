"""`Function`: an operation with derivative rules that you write, as in ``torch.autograd.Function``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from ..arrays.array import Array, unwrap
from ..core import ArgumentError, MissingRuleError, boundary
from ..core.values import PyTree
from ..frontend.arguments import result, value_of
from ..frontend.checked import checked
from ..frontend.partition import SINGLE, Arguments, taken_apart
from ..transforms.jvp import JVPTracer
from .custom_call import bind_rule
from .dirty import hand_over
from .function_call import FunctionCall
from .function_class import BackwardFunction, FunctionMeta, definition_of

F = TypeVar("F", bound=Callable[..., Any])


class Function(metaclass=FunctionMeta):
    """An operation with derivative rules that you write as for ``torch.autograd.Function``.

    Subclass it, and write static methods. Then use ``MyOp.apply`` as a function.

    ::

        class MyOp(ft.Function):
            @staticmethod
            def forward(ctx, x, n):           # the value; saves what backward needs
                ctx.save_for_backward(x)
                ctx.n = n
                return x**n

            @staticmethod
            def backward(ctx, g):             # a gradient for each argument of forward
                (x,) = ctx.saved_tensors
                return g * ctx.n * x ** (ctx.n - 1), None

    Attributes
    ----------
    generate_vmap_rule : bool or None
        None (the default) and True: `vmap` is derived by batching all rules. False: it is not. To write it, define
        `vmap`.
    generate_jvp_rule : bool or None
        None (the default) and True: where there is no `jvp`, forward mode transposes ``backward``, if that is linear in
        its gradients. False: it does not.
    host : bool
        Whether ``forward`` runs on the host: NumPy and SciPy code that cannot be traced. It is called with read-only
        NumPy arrays. Such a class needs `setup_context`; under `jit` it needs `shape`, under `vmap` a `vmap_method` or
        `vmap`.
    vmap_method : str or None
        How `vmap` calls a host forward: ``'sequential'``, once for each example; ``'broadcast'``, once for all, with
        the mapped axis in front of each array (and of each result). All methods of `pure_callback` will do.
    clear_saved_tensors_on_access : bool
        Whether ``ctx.saved_tensors`` is freed when it is read, and can be read once only.

    See Also
    --------
    custom_vjp, custom_jvp : the same in JAX's form.
    once_differentiable : a ``backward`` that has no derivative.
    saved_values_hooks : how saved values are kept.

    Notes
    -----
    *What is like PyTorch.* The names and their meaning: ``forward(ctx, ...)``, or ``forward(...)`` with
    ``setup_context(ctx, inputs, output)``; ``backward`` or ``vjp``; ``jvp``; ``vmap``; the methods of `ctx`
    (`Context`); the checks of what ``backward`` returns, and their messages. Gradients of complex numbers are
    PyTorch's: for ``z * z`` write ``g * (2 * z).conj()``.

    *Arguments.* Arrays are differentiated: also those in lists, dictionaries and registered dataclasses; the gradient
    of such an argument is a tree like it. Everything else (numbers, strings, None, any object) is passed as it is, and
    its gradient is None. A gradient that is returned for a number is dropped. For outputs the same holds.

    *The rule holds at every level.* Second derivatives differentiate ``backward``; saved inputs, saved outputs and any
    other saved array have derivatives there. (In PyTorch saved intermediates are constants, silently.) What records a
    ``ctx`` (``setup_context``, or ``forward`` with ``ctx``) runs for each level, with the ``ctx.needs_input_grad`` of
    that level; all levels but the lowest see traced values. So a ``forward`` with ``ctx`` must not draw random numbers:
    second derivatives would mix two draws. Pass them as an argument.

    *Eagerly* all methods run again at each call, on concrete values: ``print``, ``float`` and ``if`` work. Under `jit`
    they are traced, and cost nothing afterwards.

    *What is different from PyTorch.* ``ctx`` is read-only in ``backward``. Its setters are called once. An array that
    is assigned to an attribute of ``ctx`` is differentiated like a saved one. An output that is returned twice has two
    gradients. After ``mark_dirty`` the argument cannot be used; a derivative that needs its old value gets that. Both
    styles of ``forward`` work under all transformations, and `vmap` and ``jvp`` are derived unasked.

    References
    ----------
    PyTorch: Extending torch.autograd, https://docs.pytorch.org/docs/stable/notes/extending.html

    Examples
    --------
    Rounding whose gradient is that of the identity:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> class Round(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return fnp.round(x)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g
    >>> ft.grad(lambda x: fnp.sum(Round.apply(x) ** 2))(fnp.asarray([0.4, 1.6]))
    Array([0., 4.])

    Both rules, apart from the forward pass:

    >>> class Exp(ft.Function):
    ...     @staticmethod
    ...     def forward(x):
    ...         return fnp.exp(x)
    ...     @staticmethod
    ...     def setup_context(ctx, inputs, output):
    ...         ctx.save_for_backward(output)
    ...         ctx.save_for_forward(output)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    ...     @staticmethod
    ...     def jvp(ctx, t):
    ...         (y,) = ctx.saved_tensors
    ...         return t * y
    >>> ft.hessian(ft.jit(Exp.apply))(0.0)
    Array(1.)

    NumPy code that cannot be traced, with the rule of its derivative:

    >>> import numpy as np
    >>> class Sort(ft.Function):
    ...     host = True
    ...     @staticmethod
    ...     def forward(x):
    ...         i = np.argsort(x)
    ...         return x[i], i
    ...     @staticmethod
    ...     def shape(x):
    ...         return x, ft.ShapeDtypeStruct(x.shape, int)
    ...     @staticmethod
    ...     def setup_context(ctx, inputs, output):
    ...         ctx.save_for_backward(output[1])
    ...     @staticmethod
    ...     def backward(ctx, g, _):
    ...         (i,) = ctx.saved_tensors
    ...         return fnp.zeros_like(g).at[i].set(g)
    >>> ft.jit(ft.grad(lambda x: Sort.apply(x)[0][0]))(fnp.asarray([3.0, 1.0, 2.0]))
    Array([0., 1., 0.])
    """

    generate_vmap_rule: bool | None = None
    generate_jvp_rule: bool | None = None
    host: bool = False
    vmap_method: str | None = None
    clear_saved_tensors_on_access: bool = False
    _backward_cls: type[BackwardFunction]

    @classmethod
    @boundary
    def apply(cls, *args: PyTree, **kwargs: PyTree) -> Any:
        """Apply the operation.

        Parameters
        ----------
        *args, **kwargs
            The arguments of ``forward`` without its context: arrays, trees of arrays, anything else.

        Returns
        -------
        What ``forward`` returned, arrays as `Array`.

        Raises
        ------
        FunctionDefinitionError
            If the arguments do not fit ``forward``. A `TypeError`.
        MissingRuleError
            If there is no ``forward``. A `NotImplementedError`.

        Examples
        --------
        >>> import functrans as ft
        >>> class Scale(ft.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor=2.0):
        ...         ctx.factor = factor
        ...         return x * factor
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * ctx.factor, None
        >>> ft.grad(lambda x: Scale.apply(x, factor=3.0))(1.0)
        Array(3.)
        """
        definition = definition_of(cls)
        bound, keywords = definition.binder.bound(args, kwargs)
        layout, arrays, static = taken_apart(bound)
        by_position = layout.plain and not keywords
        arguments = layout.arguments if by_position else Arguments(layout, static, keywords)
        call = FunctionCall(definition, arguments)
        values = [
            x
            if type(x) is JVPTracer
            else unwrap(x)
            if type(x) is Array
            else value_of(x, partial(_argument, call, i))
            for i, x in enumerate(arrays)
        ]
        # The short way: `call.bind` looks for traced values in what is not an array.
        outs = bind_rule(call, values, definition.capturing) if by_position else call.bind(values)
        if call.outputs is SINGLE and type(outs[0]) is JVPTracer and not call.dirty:
            return outs[0]  # the short way
        inputs = set(map(id, values))
        if call.dirty:
            values.clear()  # views of what is consumed
            hand_over(call.name, call.dirty, arrays, outs, call.place_of_array)
        if call.outputs is SINGLE:
            return result(outs[0], inputs)
        return call.outputs.filled([result(x, inputs) for x in outs])

    @staticmethod
    def forward(*args: PyTree, **kwargs: PyTree) -> Any:
        """The value of the operation: ``forward(ctx, ...)``, or ``forward(...)`` if `setup_context` is defined.

        Parameters
        ----------
        ctx : Context
        *args
            The arguments of `apply`.

        Returns
        -------
        Anything: an array, a tuple of outputs, trees of arrays; what is not an array is passed on.
        """
        raise MissingRuleError("You must implement the forward function for custom Function")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Record what the rules need, apart from `forward`.

        Parameters
        ----------
        ctx : Context
        inputs : tuple
            All arguments of `forward`, defaults included.
        output
            What `forward` returned.
        """
        raise MissingRuleError("setup_context is not implemented")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The reverse rule.

        Parameters
        ----------
        ctx : Context
        *grad_outputs
            For each output its gradient: an array, or a tree like the output; None for an output that is not an array.

        Returns
        -------
        A tuple with the gradient of each argument of `forward`, None where there is none; for one argument the
        gradient itself will do. A gradient may have a shape to which its argument broadcasts: it is summed.
        """
        raise MissingRuleError("You must implement either the backward or vjp method for custom Function")

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise MissingRuleError("You must implement either the backward or vjp method for custom Function")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The forward rule.

        Parameters
        ----------
        ctx : Context
            Its ``saved_tensors`` are what ``save_for_forward`` received.
        *grad_inputs
            For each argument its tangent; None for integers and for what is not an array.

        Returns
        -------
        The tangent of each output, a tuple if `forward` returns one; None where it is zero.
        """
        raise MissingRuleError("You must implement the jvp function for custom Function")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: PyTree) -> tuple[Any, Any]:
        """The batching rule; without it, all other rules are batched.

        Parameters
        ----------
        info
            With ``batch_size``, ``randomness`` and ``axis_name``.
        in_dims : tuple
            For each argument its mapped axis, None where it has none.
        *args
            The arguments, with their mapped axes.

        Returns
        -------
        output, out_dims
            What `forward` returns for all examples, and for each output its mapped axis or None.
        """
        raise MissingRuleError("You must implement the vmap function for custom Function")

    @staticmethod
    def transpose(inputs: tuple[Any, ...], *gs: Any) -> Any:
        """The transpose of a linear operation; it serves both modes if there is no ``backward``.

        Parameters
        ----------
        inputs : tuple
            The arguments, with None for each array in which it is transposed: the result must not depend on these.
            The operation must be linear in all of them together.
        *gs
            For each output of `forward` its gradient.

        Returns
        -------
        tuple
            A gradient for each argument, as from `backward`; None for those that are not transposed. Complex ones are
            PyTorch's, too: those of the adjoint.

        Examples
        --------
        >>> import functrans as ft, functrans.numpy as fnp
        >>> class Shifted(ft.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, n):
        ...         return fnp.roll(x, n)
        ...     @staticmethod
        ...     def transpose(inputs, g):
        ...         _, n = inputs
        ...         return fnp.roll(g, -n), None
        >>> ft.grad(lambda x: Shifted.apply(x, 1)[0])(fnp.zeros(3))
        Array([0., 0., 1.])
        """
        raise MissingRuleError("You must implement the transpose function for custom Function")

    @staticmethod
    def shape(*args: PyTree) -> Any:
        """The types of the outputs of a host `forward`, which under `jit` must be known beforehand.

        Parameters
        ----------
        *args
            The arguments, with a `ShapeDtypeStruct` for each array.

        Returns
        -------
        What `forward` returns, with a `ShapeDtypeStruct` (or anything with ``shape`` and ``dtype``) for each array.
        """
        raise MissingRuleError("shape is not implemented")


#: The name by which cloudpickle writes the function of ``MyOp.apply``.
Function.apply.__func__.__qualname__ = "Function.apply.__func__"  # type: ignore[attr-defined]


def _argument(call: FunctionCall, number: int) -> str:
    return f"{call.name}.apply: {call.place_of_array(number)}"


@checked
def once_differentiable(backward: F) -> F:
    """Declare that a ``backward`` has no derivative.

    Parameters
    ----------
    backward : callable
        The function, below ``@staticmethod``.

    Returns
    -------
    callable
        The same function. What it computes has no derivative: it runs on values that are not differentiated, and a
        second derivative through its result raises `OnceDifferentiableError`, in every nesting of `grad` and `jvp`.

    Raises
    ------
    ArgumentError
        If it is not a function: the decorator stands below ``@staticmethod``.

    Notes
    -----
    First derivatives are not affected, nor are second derivatives that do not go through it.

    Examples
    --------
    >>> import functrans as ft
    >>> class Square(ft.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @ft.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2.0 * x * g
    >>> ft.grad(Square.apply)(3.0)
    Array(6.)
    >>> try:
    ...     ft.grad(ft.grad(Square.apply))(3.0)
    ... except ft.FunctionError as error:
    ...     print(type(error).__name__)
    OnceDifferentiableError
    """
    if isinstance(backward, staticmethod) or not callable(backward):
        raise ArgumentError(
            f"once_differentiable: expected a function, got {type(backward).__name__}: write @staticmethod above "
            "@once_differentiable"
        )

    @wraps(backward)
    def marked(*args: PyTree, **kwargs: PyTree) -> PyTree:
        return backward(*args, **kwargs)

    marked.once_differentiable = True  # type: ignore[attr-defined]
    return marked  # type: ignore[return-value]
