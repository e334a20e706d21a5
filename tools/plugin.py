# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler plugin runs in place of the compiler that loaded it: `<program> <its arguments…>`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import islice

from prepass.plugin import LIBRARY_NAME

ACTIVE_VARIABLE = "PREPASS_PLUGIN_ACTIVE"


def without_plugin(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` without those that load the plugin; other libraries stay.

    LLVM takes `--load=<library>` and `--load <library>`, with one dash or two.
    """
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*kept, argument, *rest]
        flag, has_value, library = argument.partition("=")
        if flag not in ("-load", "--load"):
            kept.append(argument)
            continue
        group = [argument] if has_value else [argument, *islice(rest, 1)]
        if os.path.basename(library or group[-1]) != LIBRARY_NAME:
            kept.extend(group)
    return kept


def main(arguments: Sequence[str] | None = None) -> None:
    """Run prepass's counterpart of the program that `arguments` begin with, and exit with its code."""
    program, *rest = sys.argv[1:] if arguments is None else arguments
    # It stops the plugin from starting itself. Compilers that prepass starts may load the plugin again.
    os.environ.pop(ACTIVE_VARIABLE, None)
    rest = without_plugin(rest)
    # Imported here: each program is slow to import, and one is needed.
    if program == "iree-compile":
        from prepass.tools.compile import main_as_iree_compile as run
    elif program == "iree-opt":
        from prepass.tools.opt import main_as_iree_opt as run
    else:
        sys.exit(f"prepass plugin: expected iree-compile or iree-opt, got {program!r}")
    # So that usage and errors carry the name the user typed.
    sys.argv = [program, *rest]
    sys.exit(run(rest))


if __name__ == "__main__":
    main()
