"""Inspect a program while it runs: print or log values, or pass them to a function, under any transformation.

Examples
--------
>>> import functrans as ft
>>> @ft.jit
... def f(x):
...     y = x * 2.0
...     ft.debug.print("y = {y}", y=y)
...     return y + 1.0
>>> f(3.0)
y = 6.0
Array(7.)
"""

from ..runtime.module_getattr import module_attributes as _module_attributes
from .host import debug_breakpoint as breakpoint
from .host import debug_callback as callback
from .host import debug_log as log
from .host import debug_print as print

__all__ = ["breakpoint", "callback", "log", "print"]
__getattr__, __dir__ = _module_attributes("functrans.debug", globals())
