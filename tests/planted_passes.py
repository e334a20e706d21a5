# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass of prepass once more, as `planted-…`, with an error behind each of its rewrites; for --prepass-load.

Behind the pass, what was computed at the place of a rewrite has the wrong sign. In a kernel, where nothing may be
added between ops, it is what the body of the op yields.
"""

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.locations import describe_location
from prepass.ir.match import find_ops
from prepass.passes import PASSES
from prepass.pipeline.base import PREPROCESSING, RemarkKind
from prepass.pipeline.registry import default_registry

_PLAIN = ("tensor.empty", "linalg.fill", "linalg.index", "util.assume.int")


def _wrong(value):
    """Another value of the same type."""
    element = value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type
    return arith.negf(value) if isinstance(element, ir.FloatType) else arith.subi(value, value)


def _computes(op):
    if (
        len(op.results) == 0
        or op.name in _PLAIN
        or not op.name.startswith(("linalg.", "iree_linalg_ext", "tensor.", "arith.", "math."))
    ):
        return False
    type_ = op.results[0].type
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    return isinstance(element, (ir.FloatType, ir.IntegerType)) and next(iter(op.results[0].uses), None) is not None


def _spoil_result(op):
    uses = list(op.results[0].uses)
    with ir.InsertionPoint.after(op), op.location:
        value = _wrong(op.results[0])
    for use in uses:
        use.owner.operands[use.operand_number] = value


def _spoil_body(op):
    last = list(op.regions[0].blocks[0].operations)[-1]
    with ir.InsertionPoint(last), op.location:
        last.operands[0] = _wrong(last.operands[0])


def _spoil(root, locations, in_kernels):
    ops = find_ops(root, _computes)
    for location in dict.fromkeys(locations):
        here = [op for op in ops if describe_location(op.location) == location]
        # What was removed leaves nothing there.
        op = [*ops, *here][-1 if here else 0]
        (_spoil_body if in_kernels else _spoil_result)(op)


def _plant(name):
    pass_class = default_registry().find_pass(name)

    def run(self, op, context):
        known = len(context.remarks)
        try:
            pass_class.run(self, op, context)
        finally:
            made = [remark for remark in context.remarks[known:] if remark.kind is RemarkKind.APPLIED]
            _spoil(op, [remark.location for remark in made], self.phase != PREPROCESSING)

    members = {"name": name.replace("prepass-", "planted-"), "run": run, "__module__": __name__, "__doc__": "Wrong."}
    return type(f"Planted{pass_class.__name__}", (pass_class,), members)


globals().update({f"planted_{number}": _plant(name) for number, name in enumerate(PASSES)})
