"""How machine code finds the table of the function that it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .jitted_lowering import CallEmitter
from .jitted_tables import CallTable


def written_table(table: CallTable) -> Callable[[CallEmitter], Any]:
    """Instructions for the address of a table."""

    def write(emitter: CallEmitter) -> Any:
        context, builder = emitter.context, emitter.builder
        pointer = context.add_dynamic_addr(builder, table.address, "the table of a jitted function")
        return builder.ptrtoint(pointer, emitter.data.type.pointee)

    return write
