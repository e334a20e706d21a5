# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which target a module is compiled for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.match import NoMatch

VARIANT = "hal.executable.variant"

# The HAL dialect has no Python accessors for these attributes, so their text is read.
_EXECUTABLE_TARGET = re.compile(r'#hal\.executable\.target<"(?P<backend>[^"]+)"')
_ARCHITECTURE = re.compile(r'#iree_gpu\.target<arch = "([^"]+)"')
_VECTOR_BYTES = re.compile(r"native_vector_size = (\d+)")

_CONFIGS = ("compilation_info", "lowering_config")


@dataclass(frozen=True)
class Target:
    """A HAL target.

    Attributes:
      backend: The HAL target backend: "llvm-cpu", "rocm", "vulkan-spirv", …
      architecture: The GPU architecture, "gfx942", or "" where the backend has none.
      vector_bytes: The CPU's native vector size, or 0 where the target does not say.
    """

    backend: str
    architecture: str = ""
    vector_bytes: int = 0

    @property
    def name(self) -> str:
        """The name messages use: the architecture, or else the backend."""
        return self.architecture or self.backend


def find_target(module: ir.Operation) -> Target | None:
    """The one target of a module, from its device globals and attributes.

    Devices are there once IREE has assigned them, which is before preprocessing
    passes run. None when no device is named, or when several that differ are:
    a pass must not tune for one and run on another.
    """
    targets = {target for attribute in _device_attributes(module) for target in _executable_targets(attribute)}
    return targets.pop() if len(targets) == 1 else None


def enclosing_variant(op: ir.Operation) -> ir.Operation | None:
    """The `hal.executable.variant` that an op is in, or None when it is in none."""
    parent = op.parent
    while parent is not None and parent.operation.name != VARIANT:
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def executable_target(op: ir.Operation) -> Target | None:
    """The target of the `hal.executable.variant` that an op is in, or None when it is in none."""
    variant = enclosing_variant(op)
    return None if variant is None else next(_executable_targets(str(variant.attributes["target"])), None)


def target_to_configure(op: ir.Operation, known: Target | None) -> Target:
    """The target that an op is to get a lowering config for: its executable's, or else the `known` one.

    Raises NoMatch when there is none, or when the op has a config.
    """
    if any(name in op.attributes for name in _CONFIGS):
        raise NoMatch("the op has a lowering config already", op)
    target = executable_target(op) or known
    if target is None:
        raise NoMatch("no target is known for the op", op)
    return target


def _device_attributes(module: ir.Operation) -> Iterator[str]:
    for named in ("hal.device.targets", "hal.executable.target"):
        if named in module.attributes:
            yield str(module.attributes[named])
    for op in module.regions[0].blocks[0].operations:
        attributes = op.attributes
        # The type comes first: printing a weight's initial value would print the weight.
        is_device = op.operation.name == "util.global" and str(attributes["type"]) == "!hal.device"
        if is_device and "initial_value" in attributes:
            yield str(attributes["initial_value"])


def _executable_targets(text: str) -> Iterator[Target]:
    starts = list(_EXECUTABLE_TARGET.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    for match, end in zip(starts, ends, strict=True):
        architecture = _ARCHITECTURE.search(text, match.end(), end)
        vector_bytes = _VECTOR_BYTES.search(text, match.end(), end)
        yield Target(
            match["backend"],
            architecture[1] if architecture else "",
            int(vector_bytes[1]) if vector_bytes else 0,
        )
