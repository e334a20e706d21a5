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

Source: https://iree.dev/reference/mlir-dialects/IREECodegen/#ukerneldescriptorattr
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.kernels.inject import annotate, inject
from prepass.ir.kernels.kernel import DispatchUse, KernelUse
from prepass.ir.kernels.select import select_kernel
from prepass.ir.match import find_ops
from prepass.ir.targets import enclosing_variant
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.kernels import check_kernels, chosen_kernels
from prepass.pipeline.options import option


@dataclass(frozen=True)
class SelectKernelsPass(Pass):
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
        "or names; the first that fits is taken.",
    )

    def __post_init__(self) -> None:
        check_kernels(self.kernels)

    def run(self, op: ir.Operation, context: PassContext) -> None:
        kernels = chosen_kernels(self.kernels)
        kinds = {kernel.kind for kernel in kernels}
        ops = find_ops(op, lambda candidate: any(kind.recognises(candidate) for kind in kinds))
        for candidate, (kernel, use) in context.matches(ops, lambda candidate: select_kernel(candidate, kernels)):
            context.applied(candidate, f"computed by {kernel.name}")
            context.count(kernel.name)
            _apply(candidate, use)


def _apply(op: ir.Operation, use: KernelUse | DispatchUse) -> None:
    if isinstance(use, DispatchUse):
        use.rewrite()
        return
    variant = enclosing_variant(op)
    if variant is not None:
        annotate(op, use)
        inject(variant, [use])
