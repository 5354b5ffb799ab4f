"""What donation costs and saves."""

from __future__ import annotations

import argparse

from . import donation


def main(options: argparse.Namespace) -> int:
    """Print the tables; 1 where results differ or a limit is missed."""
    return 1 if donation.report(options.repeats or 11) else 0
