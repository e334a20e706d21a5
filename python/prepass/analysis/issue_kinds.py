# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The issues that passes find: which remarks of which passes tell of each.

What is wrong is recognized by the pass that fixes it, so that what is reported is what is fixed. A kind only names the
passes, and which of their remarks are about something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prepass.pipeline.base import Remark
from prepass.pipeline.registry import PREFIX, default_registry


@dataclass(frozen=True)
class IssueKind:
    """One kind of issue.

    Attributes:
      name: Kebab-case.
      title: A few words.
      why: What it costs, and what is done about it.
      passes: Their names; the remarks of any tell of the issue.
      messages: If not empty, remarks of rewrites count when they start with one of these.
      roots: If not empty, only remarks at ops of these kinds count; see `dispatches.KINDS`.
      no_issue: Parts of the reasons for which an op is left alone because it is no issue.
    """

    name: str
    title: str
    why: str
    passes: tuple[str, ...]
    messages: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    no_issue: tuple[str, ...] = ()

    def concerns(self, remark: Remark, *, applied: bool) -> bool:
        """Whether a remark tells of an issue of this kind, by its text."""
        if remark.pass_name not in self.passes:
            return False
        if applied:
            return not self.messages or remark.message.startswith(self.messages)
        return not any(part in remark.message for part in self.no_issue)


_ATTENTION = (
    IssueKind(
        "decomposed-attention",
        "Attention in pieces",
        "Scores and probabilities go through memory, and the softmax has a dispatch of its own. As one op, attention "
        "keeps them in registers.",
        ("prepass-raise-attention",),
        no_issue=("not a softmax", "no contraction over the softmax dim"),
    ),
    IssueKind(
        "unaligned-keys",
        "Attention over a number of keys that no matrix instruction divides",
        "Without a multiple of 16 keys, attention uses no matrix instructions at all. Padded keys are masked out.",
        ("prepass-pad-attention-keys",),
        no_issue=("does not ask for more keys", "no target is known"),
    ),
    IssueKind(
        "gather-like-rope",
        "Rotary embeddings that gather",
        "Slices, stacks and complex numbers take several dispatches that load the partner of a channel one element at "
        "a time. In one form they load whole rows, or become part of the attention that reads them.",
        ("prepass-canonicalize-rope", "prepass-fuse-query-rope"),
        no_issue=("is not a rotary embedding", "rotated in no time", "no target is known"),
    ),
)
_CONTRACTIONS = (
    IssueKind(
        "unit-dim-linears",
        "Linear layers with unit dims",
        "A batch of one makes a matrix product a batch product, which does not fuse with casts and biases.",
        ("prepass-fold-unit-dims",),
        roots=("contraction",),
    ),
    IssueKind(
        "horizontal-fusion",
        "Contractions of one tensor, computed one by one",
        "Q, K and V, and the projections of a prompt or time step, read the same operand. Computed at once they read "
        "it once and fill the device better.",
        ("prepass-fuse-horizontal-contractions",),
        roots=("contraction",),
    ),
    IssueKind(
        "gated-projections",
        "Gates that are sliced from a wide projection",
        "Both halves of a gated feed-forward go through memory to be sliced and multiplied by an elementwise dispatch.",
        ("prepass-split-gated-projections",),
        roots=("contraction",),
        no_issue=("the slices do not meet in an elementwise op", "read otherwise than in slices"),
    ),
    IssueKind(
        "contraction-layouts",
        "Contractions whose result or weight is copied to another layout",
        "Heads that are transposed, weights that are copied for each batch: the contraction can write and read them "
        "so.",
        ("prepass-fold-contraction-layouts", "prepass-transpose-attention-keys"),
        no_issue=("the layout does not matter", "does not ask for another layout", "no target is known"),
    ),
    IssueKind(
        "f16-sums",
        "Sums in half precision",
        "Norms and means that add up in f16 overflow, and contractions that do may not compile for gfx942. In f32 they "
        "cost no dispatch.",
        ("prepass-promote-accumulators",),
        messages=("accumulates in",),
        roots=("reduction", "contraction", "convolution"),
        no_issue=("which is not to be promoted", "which are not to be promoted", "is no sum"),
    ),
)
_CONVOLUTIONS = (
    IssueKind(
        "nchw-convolutions",
        "Convolutions in NCHW",
        "With channels outside, a vector load of an input reaches one channel. Channels-last loads whole vectors.",
        ("prepass-transpose-convolutions",),
        roots=("convolution",),
    ),
    IssueKind(
        "small-convolutions",
        "Convolutions without matrix instructions",
        "A stem of three channels, four output channels, the zeros of a transposed convolution: each has a form that "
        "matrix instructions compute.",
        (
            "prepass-unfold-patches",
            "prepass-pad-input-channels",
            "prepass-pad-output-channels",
            "prepass-decompose-transposed-convolutions",
        ),
        no_issue=(
            "does not ask for more than",
            "few products are summed",
            "padded within the kernel",
            "no target is known",
        ),
    ),
    IssueKind(
        "padding-insertion",
        "Padding that cannot fuse as it is written",
        "Written as a fill and an insertion, padding never fuses; as tensor.pad, right before what reads it, it can.",
        ("prepass-fold-padding",),
        no_issue=("which is no padding", "two tensors are put into it"),
    ),
)
_OTHERS = (
    IssueKind(
        "cast-arithmetic",
        "Casts that undo each other, or move more bytes than they must",
        "Wide tensors that are truncated and extended again, constants that are cast, operands that are extended "
        "before they are reshaped.",
        ("prepass-simplify-casts",),
        no_issue=("the divisor is no power of two",),
    ),
    IssueKind(
        "scalar-lookups",
        "Lookups that load an element at a time",
        "An embedding's row is contiguous, but is loaded with an address for each element.",
        ("prepass-vectorize-lookups",),
        no_issue=("no whole rows are read", "the result is written transposed", "does more than one lookup does"),
    ),
    IssueKind(
        "equal-constants",
        "Equal constants under several names",
        "Tables that are stored several times keep equal work apart.",
        ("prepass-merge-constants",),
        no_issue=("are not in the module",),
    ),
)
PASS_ISSUES: tuple[IssueKind, ...] = _ATTENTION + _CONTRACTIONS + _CONVOLUTIONS + _OTHERS

# What these passes do is no issue of the graph; what strip-assertions removes is counted op by op in `graph_issues`.
_NO_ISSUES = (
    "prepass-decompose-attention",
    "prepass-guard-padding",
    "prepass-select-kernels",
    "prepass-strip-assertions",
)

# In the order in which presets run them, for those that a preset lacks.
ALL_PASSES: tuple[str, ...] = (
    "prepass-merge-constants",
    "prepass-raise-attention",
    "prepass-transpose-attention-keys",
    "prepass-pad-attention-keys",
    "prepass-fuse-query-rope",
    "prepass-canonicalize-rope",
    "prepass-split-gated-projections",
    "prepass-promote-accumulators",
    "prepass-simplify-casts",
    "prepass-fold-unit-dims",
    "prepass-fuse-horizontal-contractions",
    "prepass-fold-contraction-layouts",
    "prepass-decompose-transposed-convolutions",
    "prepass-unfold-patches",
    "prepass-pad-output-channels",
    "prepass-fold-padding",
    "prepass-transpose-convolutions",
    "prepass-pad-input-channels",
    "prepass-vectorize-lookups",
)


def kinds_of(passes: Iterable[str]) -> Iterator[IssueKind]:
    """The kinds of issues that passes tell of; a pass that none is made for has one of its own name."""
    yield from PASS_ISSUES
    known = {name for kind in PASS_ISSUES for name in kind.passes}
    for name in sorted(set(passes) - known - set(_NO_ISSUES)):
        pass_class = default_registry().find_pass(name)
        summary = (inspect.getdoc(pass_class) or name).partition("\n")[0]
        yield IssueKind(name.removeprefix(PREFIX), summary.rstrip("."), f"What {name} does.", (name,))
