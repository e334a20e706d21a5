# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Let kernels of prepass compute the ops that they are for.

A kernel is an MLIR function for the tile of a workgroup, a *tensor ukernel* of IREE. The op is annotated with the
function's name and with the tile; the function is put into the executable, and the executable's target is told to
look for kernels there. The compiler tiles the op and puts the function in its place. What is fused with the op
stays fused. A kernel may also replace the body of a whole dispatch, where tiling does not give it what it needs.

The pass runs on executables, once dispatches are formed, when a program is compiled: configs name loops, and only
there the loops are final. It runs before the passes that configure ops without a kernel.

Before:

    hal.executable.variant public @rocm_hsaco_fb target(<"rocm", "rocm-hsaco-fb", {...}>) {
      builtin.module {
        func.func @dispatch() {
          %sums = linalg.matmul indexing_maps = [...] ins(%a, %b : ...) outs(%zeros : ...)

After:

    hal.executable.variant public @rocm_hsaco_fb target(<"rocm", "rocm-hsaco-fb", {
        iree_codegen.ukernel_provider = #iree_codegen.symbolic_ukernel_provider, ...}>) {
      util.func private @prepass_direct_matmul_f16(%lhs: tensor<64x?xf16>, ...) -> tensor<64x64xf32> { ... }
      builtin.module {
        func.func @dispatch() {
          %sums = linalg.matmul indexing_maps = [...] ins(%a, %b : ...) outs(%zeros : ...) {
              iree_codegen.ukernel = #iree_codegen.ukernel_descriptor<"prepass_direct_matmul_f16", tensor>,
              compilation_info = #iree_codegen.compilation_info<lowering_config =
                  #iree_gpu.lowering_config<{workgroup = [64, 64, 0]}>, ...>}

The kernels, and what each asks for, are listed by `prepass kernels`.

Left alone when, each with a remark that says so:

- the op has a lowering config already;
- the op is in no executable, as in a program that is not compiled so far;
- no kernel is for the target;
- no kernel fits; the remark has the reason of each.

An op that a tuning table knows is computed by the kernel that the table names, and is left alone without a remark where
it names none.

Source: https://iree.dev/reference/mlir-dialects/IREECodegen/#ukerneldescriptorattr
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from iree.compiler import ir

from prepass.errors import PrepassError
from prepass.ir.kernels.inject import annotate, inject
from prepass.ir.kernels.kernel import DispatchUse, Kernel, KernelUse, OpKind
from prepass.ir.kernels.select import select_kernel
from prepass.ir.match import find_ops
from prepass.ir.targets import enclosing_variant, executable_target
from prepass.ir.targets.tuning_table import Choice, TuningTable, read_tuning_table
from prepass.ir.tuned_ops import read_tuned_shape, tuned_kind
from prepass.pipeline.base import PassContext
from prepass.pipeline.kernels import check_kernels, chosen_kernels, tuned_kernel
from prepass.pipeline.options import option
from prepass.pipeline.tuned import TunedPass


@dataclass(frozen=True)
class SelectKernelsPass(TunedPass):
    """Compute ops by kernels of prepass where one fits."""

    name = "prepass-select-kernels"
    dependent_dialects = (
        *("affine", "amdgpu", "arith", "gpu", "iree_codegen", "iree_gpu", "linalg", "math", "memref"),
        *("rocdl", "scf", "tensor", "util", "vector"),
    )
    phase = "executable-sources"
    precedes = ("prepass-configure-attention", "prepass-configure-contractions")
    kernels: tuple[str, ...] = option(
        ("default",),
        help="The kernels to choose from: `none`, `default` for those that are better wherever they fit, `all`, "
        "`tuned` for those that the table names and no others, or names; the first that fits is taken.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kernels(self.kernels)
        table = read_tuning_table(self.table) if self.table else None
        for entry in table.entries if table else ():
            if entry.choice.kernel:
                _check_choice(self.table, entry.choice)

    @classmethod
    def for_table(cls, table: str) -> SelectKernelsPass:
        """See `TunedPass.for_table`."""
        return cls(table=table, kernels=("tuned",))

    def run(self, op: ir.Operation, context: PassContext) -> None:
        if self.kernels == ("none",):
            return
        kernels, table = chosen_kernels(self.kernels), self.tuning_table(context.target)
        kinds = {kernel.kind for kernel in kernels}
        ops = find_ops(op, lambda candidate: _is_candidate(candidate, kinds, table))
        for candidate, found in context.matches(ops, lambda candidate: _match_kernel(candidate, kernels, table)):
            why, kernel, use = found
            context.applied(candidate, f"computed by {kernel.name}{why}")
            context.count(kernel.name)
            _apply(candidate, use)


def _check_choice(table: str, choice: Choice) -> None:
    try:
        tuned_kernel(choice)
    except PrepassError as error:
        raise PrepassError(f"tuning table '{table}': {error}") from None


def _is_candidate(op: ir.Operation, kinds: Set[OpKind], table: TuningTable | None) -> bool:
    return any(kind.recognizes(op) for kind in kinds) or (table is not None and tuned_kind(op) is not None)


def _match_kernel(
    op: ir.Operation, kernels: Sequence[Kernel], table: TuningTable | None
) -> tuple[str, Kernel, KernelUse | DispatchUse] | None:
    tuned = _tuned_choice(op, table)
    if tuned is not None and not tuned.kernel:
        return None
    why = " as the tuning table says" if tuned else ""
    found = select_kernel(op, [tuned_kernel(tuned)] if tuned else kernels)
    return (why, *found) if found else None


def _tuned_choice(op: ir.Operation, table: TuningTable | None) -> Choice | None:
    kind, target = tuned_kind(op), executable_target(op)
    if table is None or kind is None or target is None:
        return None
    return table.find(target, kind, read_tuned_shape(kind, op))


def _apply(op: ir.Operation, use: KernelUse | DispatchUse) -> None:
    if isinstance(use, DispatchUse):
        use.rewrite()
        return
    variant = enclosing_variant(op)
    if variant is not None:
        annotate(op, use)
        inject(variant, [use])
