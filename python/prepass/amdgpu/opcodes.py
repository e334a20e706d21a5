# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kind of work each instruction is, for gfx9 (CDNA) code.

Source: "AMD Instinct MI300 Instruction Set Architecture" (CDNA3), chapters 4 to 11 and the
instruction lists: SOP*, VOP*, VOP3P-MAI, DS, MUBUF, FLAT, SMEM.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from enum import Enum

from prepass.amdgpu.assembly import Instruction


class Kind(Enum):
    """The unit that an instruction keeps busy."""

    MFMA = "mfma"
    VALU = "valu"
    SALU = "salu"
    MEMORY = "memory"
    LDS = "lds"
    BARRIER = "barrier"
    WAIT = "wait"
    BRANCH = "branch"
    OTHER = "other"


@dataclass(frozen=True, order=True)
class Access:
    """A memory instruction.

    Attributes:
      space: `global`, `buffer`, `flat`, `scratch`, `scalar` or `lds`.
      direction: `load`, `store` or `atomic`.
      width: Bytes per lane; of the whole wave for `scalar`.
    """

    space: str
    direction: str
    width: int


@dataclass(frozen=True)
class Opcode:
    """What an instruction does.

    Attributes:
      transcendental: An exponential, logarithm, reciprocal, root, sine or cosine.
      packed: Two operations a lane, `v_pk_*`.
      flops: Floating-point operations per lane, of VALU instructions.
      lane_swap: Moves values between lanes through the LDS unit, touching no memory.
    """

    kind: Kind
    access: Access | None = None
    transcendental: bool = False
    packed: bool = False
    flops: int = 0
    lane_swap: bool = False


# Longest suffixes first.
_WIDTHS = (
    *((f"dwordx{count}", 4 * count) for count in (16, 8, 4, 3, 2)),
    ("dword", 4),
    *((f"format_{'xyzw'[:count]}", 4 * count) for count in (4, 3, 2, 1)),
    *((f"b{bits}", bits // 8) for bits in (128, 96, 64, 32, 16, 8)),
    *((f"{sign}{bits}", bits // 8) for sign in "ui" for bits in (16, 8)),
    *((name, 2) for name in ("ushort", "sshort", "short")),
    *((name, 1) for name in ("ubyte", "sbyte", "byte")),
)
_MEMORY = re.compile(
    r"(?P<space>s_buffer|s_scratch|buffer|global|flat|scratch|s|ds)_"
    r"(?P<verb>load_lds|load|store|atomic|read2st64|read2|read|write2st64|write2|write)_(?P<what>\w+)$"
)
_LDS_ATOMIC = re.compile(r"ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|wrxchg|cmpst|mskor|pk_add|condxchg)\w*_")
_LANE_SWAPS = ("ds_bpermute", "ds_permute", "ds_swizzle")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_FLOAT = re.compile(r"v_(pk_)?(?P<operation>\w+?)_(legacy_)?f(16|32|64)$")
_FLOPS = {
    **dict.fromkeys(("add", "sub", "subrev", "mul", "min", "max", "min3", "max3", "med3", "ldexp"), 1),
    **dict.fromkeys(("fma", "fmac", "fmamk", "fmaak", "mad", "mac", "madmk", "madak"), 2),
}
_DOTS = re.compile(r"v_dot(?P<terms>2|4|8)c?_")
_WAITS = ("s_waitcnt", "s_nop", "s_sleep")
_BRANCHES = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_endpgm")


def opcode(instruction: Instruction) -> Opcode:
    """What an instruction does."""
    return _opcode(instruction.name)


@functools.cache
def _opcode(name: str) -> Opcode:
    if name.startswith(("v_mfma", "v_smfmac")):
        return Opcode(Kind.MFMA)
    if name.startswith(_LANE_SWAPS):
        return Opcode(Kind.LDS, lane_swap=True)
    if access := _access(name):
        return Opcode(Kind.LDS if access.space == "lds" else Kind.MEMORY, access)
    if name.startswith("v_"):
        packed = name.startswith("v_pk_")
        return Opcode(Kind.VALU, None, bool(_TRANSCENDENTAL.match(name)), packed, _flops(name) * (1 + packed))
    if name == "s_barrier":
        return Opcode(Kind.BARRIER)
    if name.startswith(_WAITS):
        return Opcode(Kind.WAIT)
    if name.startswith(_BRANCHES):
        return Opcode(Kind.BRANCH)
    return Opcode(Kind.SALU if name.startswith("s_") else Kind.OTHER)


def _access(name: str) -> Access | None:
    if match := _MEMORY.match(name):
        space = {"ds": "lds", "s": "scalar", "s_buffer": "scalar", "s_scratch": "scalar"}.get(
            match["space"], match["space"]
        )
        if match["verb"] == "atomic":
            return Access(space, "atomic", _atomic_width(match["what"]))
        direction = "load" if match["verb"].startswith(("load", "read")) else "store"
        width = next((size for suffix, size in _WIDTHS if match["what"].startswith(suffix)), 0)
        # `read2` and `write2` move two values a lane.
        return Access(space, direction, width * (1 + ("2" in match["verb"]))) if width else None
    if _LDS_ATOMIC.match(name):
        return Access("lds", "atomic", _atomic_width(name))
    return None


def _atomic_width(name: str) -> int:
    return 8 if re.search(r"_x2|[uibf]64", name) else 4


def _flops(name: str) -> int:
    if dot := _DOTS.match(name):
        return 2 * int(dot["terms"])
    match = _FLOAT.match(name)
    return _FLOPS.get(match["operation"], 0) if match else 0
