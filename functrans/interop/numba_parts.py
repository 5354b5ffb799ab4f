"""What the files of this room call Numba's objects, as types for annotations.

Numba loads at first use, and its classes have no types that a checker could read, so these names say roles only.
"""

from typing import Any, TypeAlias

#: A type of Numba's: an instance of `numba.types.Type`.
NumbaType: TypeAlias = Any
#: A statement, and an expression, of the IR in which Numba has the user's function (`numba.core.ir`).
Statement: TypeAlias = Any
Expression: TypeAlias = Any
#: The types of arguments and the result of a call that Numba has resolved.
Signature: TypeAlias = Any
#: What ``numba.njit`` returns: a function with its compiled variants.
Dispatcher: TypeAlias = Any
#: What Numba hands to who lowers a call: the target, and llvmlite's builder at the place of the call.
TargetContext: TypeAlias = Any
LLVMBuilder: TypeAlias = Any
