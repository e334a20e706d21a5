# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choosing a kernel for an op by the kernels' descriptions."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.kernels.config import CONFIGS
from prepass.ir.kernels.kernel import DispatchUse, Kernel, KernelUse
from prepass.ir.match import NoMatch
from prepass.ir.targets import executable_target


def select_kernel(op: ir.Operation, kernels: Sequence[Kernel]) -> tuple[Kernel, KernelUse | DispatchUse] | None:
    """The first of `kernels` that computes `op`; None where none is for such ops.

    Raises NoMatch with the reasons of all that are.
    """
    kinds = {kind for kind in {kernel.kind for kernel in kernels} if kind.recognizes(op)}
    candidates = [kernel for kernel in kernels if kernel.kind in kinds]
    if not candidates:
        return None
    if any(name in op.attributes for name in CONFIGS):
        raise NoMatch("the op has a lowering config already", op)
    target = executable_target(op)
    if target is None:
        raise NoMatch("the op is in no executable: kernels are selected after the phase executable-sources", op)
    candidates = [kernel for kernel in candidates if target.architecture in kernel.description.targets]
    if not candidates:
        raise NoMatch(f"no kernel is for {target.name}", op)
    misses: dict[str, list[str]] = {}
    for kernel in candidates:
        try:
            return kernel, kernel.match(op, target)
        except NoMatch as miss:
            misses.setdefault(miss.reason, []).append(kernel.name)
    raise NoMatch("; ".join(f"{', '.join(names)}: {reason}" for reason, names in misses.items()), op)
