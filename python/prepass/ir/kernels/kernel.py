# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel is: an MLIR function for the tile of a workgroup, and a description of when it applies.

A kernel is a *tensor ukernel* of IREE: `util.func private @name` whose arguments are the operands of the op, cut to the
tile that a workgroup computes, and whose results are those of the op. The op keeps its place in the program; it is
annotated with the name and with the tile, and the compiler puts the function in its place once it has tiled the op.

    @dataclass(frozen=True)
    class MyKernel(Kernel):
        \"\"\"…\"\"\"

        kind = CONTRACTION

        @property
        def description(self) -> KernelDescription: ...

        def match(self, op: ir.Operation, target: Target) -> KernelUse: ...

A family is a dataclass whose fields are its parameters; each member is one instance with a name of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from iree.compiler import ir

from prepass.ir.targets import Target


@dataclass(frozen=True)
class OpKind:
    """A kind of op that kernels compute.

    Attributes:
      name: In the singular, for messages: "attention".
      recognizes: Whether an op is one of them. It is called with every op of the executables.
    """

    name: str
    recognizes: Callable[[ir.Operation], bool] = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class ExpectedFigures:
    """Static figures of the code that IREE makes of a kernel, of one wave; counts of the cost model, not measurements.

    Attributes:
      per: What the cycles are for: "1,024 scores", "an iteration".
      mfma, valu, lds: Cycles of each unit.
      vgprs: Vector registers, accumulation registers included.
      spills: Registers spilled.
    """

    per: str
    mfma: int
    valu: int
    lds: int
    vgprs: int
    spills: int = 0


@dataclass(frozen=True, kw_only=True)
class KernelDescription:
    """The facts about a kernel, for `prepass kernels` and for the documentation.

    Attributes:
      summary: One line.
      targets: The architectures it is for: ("gfx942",).
      element_types: Of the operands: ("f16", "bf16").
      conditions: What must hold of the op, one clause each: "N is a multiple of 64".
      masks: The masks it takes, one clause each; empty where the kind of op has none, or the kernel takes none.
      tile: What a workgroup computes: {"M": 64, "N": 64}. 0 stands for all.
      step: What an iteration of the innermost loop goes through: {"K": 16}.
      workgroup_size: Work items of a workgroup.
      lds_bytes: LDS that the kernel allocates.
      figures: None where nothing was written down.
      reason: Why it is, or is not, among the kernels that are selected by default.
    """

    summary: str
    targets: tuple[str, ...]
    element_types: tuple[str, ...]
    conditions: tuple[str, ...]
    masks: tuple[str, ...] = ()
    tile: Mapping[str, int]
    step: Mapping[str, int]
    workgroup_size: int
    lds_bytes: int
    figures: ExpectedFigures | None = None
    reason: str


@dataclass(frozen=True)
class KernelUse:
    """A kernel for one op.

    Attributes:
      function: The symbol that `build` defines. Uses with equal functions share one, so what the function depends on
        (types, sizes) is part of its name.
      compilation_info: The lowering config of the op: the tile of a workgroup, and a pipeline that reads the
        annotation; see `prepass.ir.kernels.config`.
      build: Makes the function at the current insertion point, with the location that is current.
      attributes: Further attributes for the op.
      objects: Files of code that the function calls, each `prepass.ir.kernels.config.bitcode`.
    """

    function: str
    compilation_info: ir.Attribute
    build: Callable[[], object]
    attributes: Mapping[str, ir.Attribute] = field(default_factory=dict)
    objects: tuple[ir.Attribute, ...] = ()


@dataclass(frozen=True)
class DispatchUse:
    """A kernel for all of a dispatch: the op, what feeds it and what is done with its result.

    For an op that IREE cannot tile as the kernel needs it.

    Attributes:
      rewrite: Replaces the body of the dispatch, its workgroup count and its translation info.
    """

    rewrite: Callable[[], object]


@dataclass(frozen=True)
class Example:
    """An op that a kernel serves, to show the kernel on and to compare it with IREE's own code.

    Attributes:
      name: The shape, "128x64x64 f16".
      source: MLIR text of a module with one public function.
      pipeline: What the module needs before it is compiled, as pipeline text.
    """

    name: str
    source: str
    pipeline: str = ""


@dataclass(frozen=True)
class Kernel(ABC):
    """Base of all kernels.

    Class attributes:
      kind: What it computes.
      tunable: For a family, values worth trying by field; `dataclasses.replace` makes the members.

    Attributes:
      name: Kebab-case: "matmul-64x64-f16".
      by_default: Whether it is selected when the user does not name kernels: it is better than IREE's own code
        by the cost model wherever it matches.
    """

    kind: ClassVar[OpKind]
    tunable: ClassVar[Mapping[str, tuple[object, ...]]] = {}

    name: str
    by_default: bool = field(default=False, kw_only=True)

    @property
    @abstractmethod
    def description(self) -> KernelDescription:
        """The facts about the kernel."""

    @abstractmethod
    def match(self, op: ir.Operation, target: Target) -> KernelUse | DispatchUse:
        """How the kernel computes an op of its kind, which no other config is attached to.

        The op is in a `hal.executable.variant` for one of the kernel's targets. Raises NoMatch with the condition that
        does not hold.
        """

    def examples(self) -> tuple[Example, ...]:
        """Ops that the kernel serves; the first one is what `prepass kernels show` compiles."""
        return ()
