# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give each rotary embedding a lowering config under which all its loads are 16 bytes wide.

IREE lets a lane of an elementwise op compute 4 elements, which are 8 bytes in f16 and bf16. Here it computes 8 pairs:
both channels of each, so that they are loaded once. The pass runs on the executable sources, as a config is by loop and
only there the loops are final; `prepass-canonicalize-rope` brings it along.

Before:

    %y = linalg.generic {iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x0, %x1, %cos, %sin : tensor<4608x24x64xf16>, ...) outs(%empty : tensor<4608x24x2x64xf16>) { ... }

After:

    %y = linalg.generic {..., compilation_info = #iree_codegen.compilation_info<
            lowering_config = #iree_gpu.lowering_config<{thread = [1, 1, 2, 8], workgroup = [1, 8, 2, 64]}>, ...>}
        ins(%x0, %x1, %cos, %sin : tensor<4608x24x64xf16>, ...) outs(%empty : tensor<4608x24x2x64xf16>) { ... }

Left alone when, each with a remark that says so:

- it has a config already;
- no target is known for it, or the target is not gfx942;
- its loads are 16 bytes wide without one;
- its rows do not split into vectors of 16 bytes, or are too few or too dynamic to fill half of a wave;
- it is not alone in its dispatch.

Source: https://iree.dev/developers/general/developer-tips/#compilation-info
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.rope.kernel import match_rotation_kernel
from prepass.ir.targets import Target, target_to_configure
from prepass.ir.targets.gfx942_rotations import rotation_attributes
from prepass.pipeline.base import Pass, PassContext


def _match_config(op: ir.Operation, known: Target | None) -> tuple[Target, dict[str, ir.Attribute]] | None:
    kernel = match_rotation_kernel(op)
    if kernel is None:
        return None
    target = target_to_configure(op, known)
    if target.architecture != "gfx942":
        raise NoMatch(f"IREE's default for {target.name} is kept", op)
    attributes = rotation_attributes(kernel)
    if attributes is None:
        raise NoMatch("its rows do not fill waves that load 16 bytes a lane; IREE's default is kept", op)
    if not attributes:
        raise NoMatch("its loads are 16 bytes wide without a config", op)
    return target, attributes


@dataclass(frozen=True)
class ConfigureRopePass(Pass):
    """Attach a lowering config to every rotary embedding that prepass has built."""

    name = "prepass-configure-rope"
    dependent_dialects = ("iree_codegen", "iree_gpu", "linalg")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for rotation, (target, attributes) in context.matches(
            walk_ops(op, "linalg.generic"), lambda rotation: _match_config(rotation, context.target)
        ):
            context.configured(rotation, f"configured for {target.name}", attributes)
