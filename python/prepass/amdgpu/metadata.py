# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata that follows kernels in assembly: the subset of YAML that LLVM writes there.

Source: "AMDGPU Usage", section "Code Object Metadata", https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_PAIR = re.compile(r"(?P<key>[^\s:'\"]+|'[^']*'|\"[^\"]*\"):(?:\s+(?P<value>.*))?$")


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: `size` bytes at `offset` of the kernarg segment.

    Attributes:
      kind: `global_buffer`, `by_value`, `hidden_block_count_x`, …
      access: `read_only`, `write_only`, `read_write`, or empty when unknown.
    """

    offset: int
    size: int
    kind: str
    access: str


@dataclass(frozen=True)
class Metadata:
    """What the metadata says of one kernel.

    Attributes:
      workgroup_size: Required size in x, y, z; empty when any size will do.
      max_workgroup_size: Most work items in a workgroup.
      kernarg_size: Bytes of the kernarg segment.
      lds_bytes: Local memory of a workgroup (group segment).
      private_bytes: Scratch memory of a work item (private segment).
      vgprs: Vector registers of a wave, accumulation registers included.
    """

    name: str
    arguments: tuple[Argument, ...]
    workgroup_size: tuple[int, ...]
    max_workgroup_size: int
    wavefront_size: int
    kernarg_size: int
    lds_bytes: int
    private_bytes: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int

    @property
    def work_items(self) -> int:
        """Work items of a workgroup, the most where any size will do."""
        return math.prod(self.workgroup_size) if self.workgroup_size else self.max_workgroup_size


def read_metadata(text: str) -> dict[str, Metadata]:
    """The metadata of each kernel, by name, from the text of a `.rocmasm` file; empty when it has none."""
    found: dict[str, Metadata] = {}
    for block in re.findall(r"^\s*\.amdgpu_metadata\n(.*?)^\s*\.end_amdgpu_metadata", text, re.MULTILINE | re.DOTALL):
        lines = [line for line in block.splitlines() if line.strip() and line.strip() not in ("---", "...")]
        document, _ = _read_node(lines, 0, 0)
        for entry in document.get("amdhsa.kernels", []):
            metadata = metadata_from_entry(entry)
            found[metadata.name] = metadata
    return found


def metadata_from_entry(entry: Mapping[str, object]) -> Metadata:
    """The metadata of a kernel from an entry of `amdhsa.kernels`."""

    def number(key: str) -> int:
        return int(str(entry.get(key, "0")), 0)

    def sequence(key: str) -> Sequence[object]:
        value = entry.get(key, [])
        return value if isinstance(value, list) else []

    arguments = tuple(
        Argument(int(a[".offset"]), int(a[".size"]), a[".value_kind"], a.get(".actual_access", a.get(".access", "")))
        for a in sequence(".args")
        if isinstance(a, dict)
    )
    return Metadata(
        name=str(entry[".name"]),
        arguments=arguments,
        workgroup_size=tuple(int(str(size)) for size in sequence(".reqd_workgroup_size")),
        max_workgroup_size=number(".max_flat_workgroup_size"),
        wavefront_size=number(".wavefront_size"),
        kernarg_size=number(".kernarg_segment_size"),
        lds_bytes=number(".group_segment_fixed_size"),
        private_bytes=number(".private_segment_fixed_size"),
        vgprs=number(".vgpr_count"),
        agprs=number(".agpr_count"),
        sgprs=number(".sgpr_count"),
        vgpr_spills=number(".vgpr_spill_count"),
        sgpr_spills=number(".sgpr_spill_count"),
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _read_node(lines: list[str], at: int, indent: int) -> tuple[object, int]:
    """The mapping, sequence or scalar that starts at line `at`, and the line after it."""
    if lines[at].lstrip().startswith("- "):
        items: list[object] = []
        while at < len(lines) and _indent(lines[at]) == indent and lines[at].lstrip().startswith("- "):
            # A mapping may start behind the dash; its keys align with the first.
            lines[at] = lines[at].replace("- ", "  ", 1)
            item, at = _read_node(lines, at, _indent(lines[at]))
            items.append(item)
        return items, at
    if not _PAIR.match(lines[at].strip()):
        return _scalar(lines[at].strip()), at + 1
    mapping: dict[str, object] = {}
    while at < len(lines) and _indent(lines[at]) == indent and (pair := _PAIR.match(lines[at].strip())):
        key, value = _scalar(pair["key"]), pair["value"]
        at += 1
        if value is not None and value.strip():
            mapping[key] = _scalar(value.strip())
        elif at < len(lines) and (_indent(lines[at]) > indent or lines[at].lstrip().startswith("- ")):
            mapping[key], at = _read_node(lines, at, _indent(lines[at]))
        else:
            mapping[key] = ""
    return mapping, at


def _scalar(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text
