"""The Numba type of a jitted function, and the jitted functions of Numba's that call it.

Numba asks an object for its type by the attribute ``_numba_type_``. That of a jitted function is a `JittedType`: a
dispatcher, Numba's type of its own jitted functions, so that keywords, closures, tuples and first-class functions work
as for these. Its dispatchers, one for each number of positional arguments and names of keywords, have a body of one
intrinsic, which `CallEmitter` writes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ..core.libraries import numba
from ..frontend.arguments import name_of
from .jitted_arguments import CallTypes, TypesError, result_type, types
from .jitted_lookup import written_table
from .jitted_lowering import ResultEmitter
from .jitted_tables import CallTable


class Forms:
    """The dispatchers by which Numba calls a jitted function.

    Parameters
    ----------
    jitted : Jitted
    """

    def __init__(self, jitted: Any):
        self.jitted = jitted
        self._by_form: dict[tuple[int, tuple[str, ...]], Any] = {}
        self._by_signature: dict[inspect.Signature, Any] = {}
        self._tables: dict[Any, CallTable] = {}

    @cached_property
    def type(self) -> JittedType:
        """The function's Numba type."""
        return JittedType(self)

    def table(self, arguments: CallTypes, result: Any) -> CallTable:
        """The table for a call."""
        key = arguments.names, arguments.types, result
        if key not in self._tables:
            self._tables[key] = CallTable(self.jitted, arguments, result)
        return self._tables[key]

    @property
    def base(self) -> Any:
        """The dispatcher for a call with all arguments that have no defaults, by position."""
        return self.of(_positional(self.jitted.__wrapped__), ())

    def of(self, count: int, names: tuple[str, ...]) -> Any:
        """The dispatcher for calls with `count` positional arguments, and keywords of these sorted names."""
        known = self._by_form.get((count, names))
        if known is None:
            known = self._by_form[count, names] = self._new(count, names)
            self._by_signature[inspect.signature(known.py_func)] = known
        return known

    def with_signature(self, signature: inspect.Signature | None) -> Any:
        """The dispatcher whose Python function has a signature."""
        return self.base if signature is None else self._by_signature[signature]

    def _new(self, count: int, names: tuple[str, ...]) -> Any:
        parameters = ", ".join([*[f"_{i}" for i in range(count)], *names])
        name = name_of(self.jitted.__wrapped__)
        name = name if name.isidentifier() else "jitted"
        scope = {"typed": self._typed, "names": names}
        scope["invoke"] = numba.extending.intrinsic(prefer_literal=True)(
            _function(f"def invoke(typing_context, {parameters}): return typed(names, [{parameters}])", scope)
        )
        call = _function(f"def {name}({parameters}): return invoke({parameters})", scope)
        return _Dispatcher(self, names, call)

    def known(self, arguments: CallTypes) -> Any:
        """The type of the result for arguments of these types.

        Raises
        ------
        TypesError
            If nothing is known about arrays of these types.
        """
        args, kwargs = arguments.structs(iter([(0,) * leaf.ndim for leaf in arguments.leaves]))
        if arguments.have_sizes:
            traced = self.jitted.known(*args, **kwargs)
        else:
            traced, _ = self.jitted.trace(*args, **kwargs)
        if traced is None:
            name = name_of(self.jitted.__wrapped__)
            self.jitted.after_next_trace(_forget(_remembering()))
            raise TypesError(
                f"jit of {name} is called in code compiled by Numba with arguments {arguments.in_words()}, for which "
                "it is not traced yet, and what it returns is not known. Call it from Python with such arguments "
                f"first, or run {_lowering(name, arguments)}: any sizes will do"
            )
        return result_type(self.jitted, traced.out_tree, traced.jaxpr.out_avals[: traced.out_tree.num_leaves])

    def _typed(self, names: tuple[str, ...], given: Sequence[Any]) -> Any:
        arguments = CallTypes(self.jitted, given, names)
        result = self.known(arguments)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            table = self.table(arguments, result)
            return ResultEmitter(context, builder, arguments, result, written_table(table)).emit(args)

        return result(*arguments.types), generate


def forms_of(jitted: Any) -> Forms:
    """The dispatchers of a jitted function."""
    forms = vars(jitted).get("_forms")
    if forms is None or forms.jitted is not jitted:  # a bound method has the attributes of the function
        forms = vars(jitted)["_forms"] = Forms(jitted)
    return forms


def _function(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    local: dict[str, Any] = {}
    exec(source, scope, local)
    (function,) = local.values()
    return function


def _positional(fun: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


_Failures = list[tuple[dict[Any, Any], Any]]


def _remembering() -> _Failures:
    """Where the dispatchers that are compiling now will note that types fail: tables and keys.

    Numba raises a noted `TypingError` again without asking whether it still holds.
    """
    noting = numba.core.dispatcher._FunctionCompiler._compile_cached.__code__
    failures: _Failures = []
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is noting and "key" in frame.f_locals:
            failures.append((frame.f_locals["self"]._failed_cache, frame.f_locals["key"]))
        frame = frame.f_back  # type: ignore[assignment]
    return failures


def _forget(failures: _Failures) -> Callable[[], None]:
    def forget() -> None:
        for noted, key in failures:
            noted.pop(key, None)

    return forget


def _lowering(name: str, arguments: CallTypes) -> str:
    """How to lower a function for arguments of these types."""
    parts = []
    for leaf in arguments.leaves:
        sizes = ", ".join("nmklpq"[: leaf.ndim]) + "," * (leaf.ndim == 1)
        parts.append(
            f"ft.ShapeDtypeStruct(({sizes}), '{leaf.dtype}')" if leaf.number is None else repr(leaf.number(0))
        )
    name = name if name.isidentifier() else "g"
    return f"{name}.lower({', '.join(parts)}).compile()"


class _Dispatcher(numba.core.registry.CPUDispatcher):
    """A function of Numba's that calls a jitted one."""

    def __init__(self, forms: Forms, names: tuple[str, ...], call: Callable[..., Any]):
        super().__init__(call, targetoptions={"nopython": True, "forceinline": True})
        self._forms = forms
        self._names = names

    def compile(self, sig: Any) -> Any:
        """Compile for argument types; if nothing is known about them yet, Numba must not remember that it failed."""
        args, _ = numba.core.sigutils.normalize_signature(sig)
        self._forms.known(CallTypes(self._forms.jitted, args, self._names))
        return super().compile(sig)


class JittedType(types.Dispatcher):
    """The Numba type of a jitted function."""

    def __init__(self, forms: Forms):
        super().__init__(forms.base)
        self.forms = forms
        self.name = f"type({forms.jitted!r})"

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """See `types.Dispatcher`."""
        names = tuple(sorted(kws))
        given = CallTypes(self.forms.jitted, [*args, *[kws[n] for n in names]], names)
        dispatcher, count = self.forms.of(len(args), names), len(args)
        template, pysig, args, kws = dispatcher.get_call_template(
            given.types[:count], dict(zip(names, given.types[count:], strict=True))
        )
        sig = template(context).apply(args, kws)
        return sig.replace(pysig=pysig) if sig else None

    def get_overload(self, sig: Any) -> Any:
        """See `types.Dispatcher`."""
        return self.forms.with_signature(sig.pysig).get_overload(sig.args)


numba.extending.register_model(JittedType)(numba.extending.models.OpaqueModel)
