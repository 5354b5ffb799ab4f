"""The Numba type of a jitted function, and the jitted functions of Numba's that call it.

Numba asks an object for its type by the attribute ``_numba_type_``. That of a jitted function is a `JittedType`: a
dispatcher, Numba's type of jitted functions, so that keywords, closures, tuples and first-class functions work
as for these. Its dispatchers, one for each number of positional arguments and names of keywords, have a body of one
intrinsic, which `CallEmitter` writes.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from ...core import ArgumentError
from ...core.values import Params, PyTree
from ...frontend.arguments import name_of
from ...runtime.context import cached_property
from ...runtime.libraries import numba
from ...runtime.private.numba_names import (
    AttributeTemplate,
    CPUDispatcher,
    cpu_target,
    infer_getattr,
    lower_getattr,
    normalize_signature,
)
from ..numba_parts import LLVMBuilder, Signature, TargetContext
from .arguments import CallTypes, TypesError, result_type, types
from .into import IntoEmitter, check_memory
from .lookup import GlobalName, WrittenTable, global_name, known, lost_type, token_of
from .lowering import InlinedCall, ResultEmitter
from .retries import note_failure
from .tables import table_of


class Forms:
    """The dispatchers by which Numba calls a jitted function.

    Parameters
    ----------
    jitted : Jitted
    into : bool
        Whether the first argument is the memory of the results, as for `Jitted.into`.
    """

    def __init__(self, jitted: Any, into: bool):
        self.jitted = jitted
        self.into = into
        self._by_form: dict[tuple[int, tuple[str, ...]], Any] = {}
        self._by_signature: dict[inspect.Signature, Any] = {}

    @cached_property
    def type(self) -> JittedType:
        """The function's Numba type."""
        return JittedType(self)

    @cached_property
    def base(self) -> Any:
        """The dispatcher for a call with all arguments that have no defaults, by position."""
        return self.of(_positional(self.jitted.__wrapped__) + self.into, ())

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
        places = ", ".join([f"_functrans_{i}" for i in range(count + len(names))])
        parameters = ", ".join([*[f"_functrans_{i}" for i in range(count)], *names])
        typed = _function(
            f"lambda context, {places}: typed(names, [{places}])", typed=self._typed, names=names
        )
        invoke = numba.extending.intrinsic(prefer_literal=True)(typed)
        call = _function(f"lambda {parameters}: _functrans_invoke({parameters})", _functrans_invoke=invoke)
        return _Dispatcher(self, names, self._named(call))

    def _named(self, call: Any) -> Any:
        """A function with the name of the jitted one, and a qualified name that no process has twice.

        Numba makes symbols from qualified names, and code from its cache on disk brings those of other processes.
        """
        call.__name__ = name_of(self.jitted.__wrapped__)
        call.__qualname__ = f"{call.__name__}.{uuid4().hex}"
        return call

    def parts(self, given: Sequence[Any], names: tuple[str, ...]) -> tuple[list[Any], CallTypes]:
        """The types of a call: those of the memory of the results, if any, and those of the arguments."""
        if self.into and len(given) == len(names):
            raise TypesError(
                f"into of {name_of(self.jitted.__wrapped__)} needs the memory of the results as its first argument"
            )
        return list(given[: self.into]), CallTypes(self.jitted, given[self.into :], names)

    def known(self, arguments: CallTypes) -> Any:
        """The type of the result for arguments of these types.

        Raises
        ------
        TypesError
            If nothing is known about arrays of these types.
        """
        args, kwargs = arguments.structs(iter([(0,) * leaf.ndim for leaf in arguments.leaves]))
        if arguments.have_sizes:
            forms = [(args, kwargs), *_other_forms(self.jitted.__wrapped__, args, kwargs)]
            found = (self.jitted.known(*args, **kwargs) for args, kwargs in forms)
            traced = next((t for t in found if t is not None), None)
        else:
            traced, _ = self.jitted.traced(*args, **kwargs)
        if traced is None:
            name = name_of(self.jitted.__wrapped__)
            _check_count(self.jitted.__wrapped__, args, kwargs)
            note_failure()
            raise TypesError(
                f"jit of {name} is called in code compiled by Numba with arguments {arguments.in_words()}, but it "
                "has not been traced for them, so the type of its result is unknown. Call it from Python with such "
                f"arguments first, or run {_lowering(name, arguments)}: any sizes will do"
            )
        return result_type(self.jitted, traced.out_tree, traced.jaxpr.out_avals[: traced.out_tree.num_leaves])

    def result(self, memory: Sequence[Any], arguments: CallTypes) -> Any:
        """The type of the result; raises `TypesError` if it is not known, or the memory for it has another type."""
        result = self.known(arguments)
        for out in memory:
            check_memory(self.jitted, out, result)
        return result

    def cfunc(self, signature: Signature, options: Params) -> Any:
        """See `Jitted.cfunc`."""
        args, returned = normalize_signature(signature)
        where = f"cfunc of {name_of(self.jitted.__wrapped__)}"
        for i, typ in enumerate(args):
            if not isinstance(typ, types.Number | types.Boolean):
                raise ArgumentError(
                    f"{where}: argument {i} of the signature is a {typ}; a C function takes numbers"
                )
        if returned is not None and not isinstance(returned, types.Number | types.Boolean):
            raise ArgumentError(f"{where}: the signature returns a {returned}; a C function returns a number")
        places = ", ".join(f"_{i}" for i in range(len(args)))
        call = _function(f"lambda {places}: jitted({places})", jitted=self.jitted)
        return numba.cfunc(signature, **{"forceinline": True, **options})(self._named(call))

    def _typed(self, names: tuple[str, ...], given: Sequence[Any]) -> Any:
        memory, arguments = self.parts(given, names)
        result = self.result(memory, arguments)
        emitter = IntoEmitter if self.into else ResultEmitter

        def generate(context: TargetContext, builder: LLVMBuilder, signature: Signature, args: Any) -> Any:
            table = table_of(self.jitted, arguments, result)
            written = WrittenTable(context, builder, table)

            def call() -> Any:
                return emitter(context, builder, arguments, result, written.address).emit(args, *memory)

            program = None if self.into else table.inlined()
            if program is None:
                return call()
            return InlinedCall(context, builder, arguments, result, program).emit(
                args, written.digest(), call
            )

        returned = types.none if self.into else result
        return returned(*memory, *arguments.types), generate


def forms_of(jitted: Any, into: bool = False) -> Forms:
    """The dispatchers of a jitted function, or of its method `into`."""
    known = vars(jitted).get("_forms")
    if known is None or known[0].jitted is not jitted:  # a bound method has the attributes of the function
        known = vars(jitted)["_forms"] = Forms(jitted, False), Forms(jitted, True)
    return known[into]


def _function(source: str, **scope: Any) -> Any:
    return eval(source, scope)


def _other_forms(
    fun: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The call with more or fewer keywords, and with None passed or left to the default: the result is the same."""
    try:
        signature = inspect.signature(fun)
        given = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return
    parameters = signature.parameters
    if any(
        parameters[n].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for n in given
    ):
        return
    positional = [n for n, p in parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    for spelled in (True, False):
        left = {n for n, p in parameters.items() if p.default is None and given.get(n) is None}
        named = {
            n: given.get(n) for n in parameters if (n in left and spelled) or (n in given and n not in left)
        }
        first = list(takewhile(named.__contains__, positional))
        for i in range(len(first), -1, -1):
            rest = {n: x for n, x in named.items() if n not in first[:i]}
            yield tuple([named[n] for n in first[:i]]), rest


def _positional(fun: Callable[..., PyTree]) -> int:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _check_count(fun: Callable[..., PyTree], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise `TypesError` if a function does not take so many arguments, or arguments of these names."""
    with contextlib.suppress(ValueError):  # it has no signature
        try:
            inspect.signature(fun).bind(*args, **kwargs)
        except TypeError as error:
            where = f"jit of {name_of(fun)}, called in code compiled by Numba"
            raise TypesError(f"{where}: {error}. Its signature is {inspect.signature(fun)}") from None


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


class _Dispatcher(CPUDispatcher):
    """A function of Numba's that calls a jitted one."""

    def __init__(self, forms: Forms, names: tuple[str, ...], call: Callable[..., PyTree]):
        super().__init__(call, targetoptions={"nopython": True, "forceinline": True})
        self._forms = forms
        self._names = names

    def compile(self, sig: Signature) -> Any:
        """Compile for argument types; if nothing is known about them yet, the error is ours alone."""
        args, _ = normalize_signature(sig)
        self._forms.result(*self._forms.parts(args, self._names))
        return super().compile(sig)


class JittedType(types.Dispatcher):
    """The Numba type of a jitted function."""

    def __init__(self, forms: Forms):
        super().__init__(forms.base)
        self.forms = forms
        self.name = f"type({forms.jitted!r}{'.into' * forms.into})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _type_of, (global_name(self.forms.jitted), token_of(self.forms.jitted), self.forms.into)

    def get_call_type(self, context: TargetContext, args: Any, kws: Any) -> Any:
        """See `types.Dispatcher`."""
        names = tuple(sorted(kws))
        memory, arguments = self.forms.parts([*args, *[kws[n] for n in names]], names)
        given, count = [*memory, *arguments.types], len(args)
        template, pysig, args, kws = self.forms.of(count, names).get_call_template(
            given[:count], dict(zip(names, given[count:], strict=True))
        )
        sig = template(context).apply(args, kws)
        return sig.replace(pysig=pysig) if sig else None

    def get_overload(self, sig: Signature) -> Any:
        """See `types.Dispatcher`."""
        return self.forms.with_signature(sig.pysig).get_overload(sig.args)


def _type_of(name: GlobalName | None, token: tuple[str, int], into: bool) -> Any:
    """The type of a function of this process, or of the global of that name."""
    jitted = known(token)
    if jitted is None and name is not None:
        with contextlib.suppress(ArgumentError, ImportError):
            jitted = name.find()
    return lost_type() if jitted is None else forms_of(jitted, into).type


numba.extending.register_model(JittedType)(numba.extending.models.OpaqueModel)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = JittedType

    def resolve_into(self, typ: JittedType) -> JittedType | None:
        """The type of ``g.into``."""
        return None if typ.forms.into else forms_of(typ.forms.jitted, into=True).type


@lower_getattr(JittedType, "into")
def _lower_into(context: TargetContext, builder: LLVMBuilder, typ: JittedType, value: Any) -> Any:
    """The value of a function's type is the object; only its address is ever used."""
    return value


# Numba reads what is registered when it begins to compile, and it may be compiling now.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
