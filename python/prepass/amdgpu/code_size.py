# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes of instructions, from how they are encoded on gfx9 (CDNA).

Source: "AMD Instinct MI300 Instruction Set Architecture" (CDNA3), chapter 13 "Microcode
Formats": one or two words, and a literal constant of one word in the short formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from prepass.amdgpu.assembly import Instruction

_TWO_WORDS = (
    "s_load",
    "s_store",
    "s_buffer",
    "s_scratch",
    "s_atomic",
    "s_dcache",
    "s_memtime",
    "s_memrealtime",
    "buffer_",
    "global_",
    "flat_",
    "scratch_",
    "ds_",
)
_VALU_ONE_WORD = ("v_nop", "v_readfirstlane_b32", "v_swap_b32", "v_clrexcp", "v_accvgpr_mov_b32")
# A literal stands in the instruction whether or not it could be an inline constant.
_WITH_LITERAL = ("v_fmamk_", "v_fmaak_", "v_madmk_", "v_madak_", "s_setreg_imm32")
# The 16 bits of an immediate are in the word itself.
_SOPK = re.compile(r"s_(movk|cmovk|cmpk_\w+|addk|mulk|setreg|getreg|call)_")
_SOPP = re.compile(
    r"s_(nop|endpgm|branch|cbranch_\w+|waitcnt|barrier|sleep|setprio|sendmsg|sendmsghalt|trap|icache_inv|set_gpr_idx_\w+"
    r"|ttracedata|incperflevel|decperflevel|sethalt|setkill|wakeup|endpgm_saved|endpgm_ordered_ps_done)$"
)
_REGISTER = re.compile(r"-?\|?-?(v|s|a|ttmp)(\d+|\[.*\])\|?$|(vcc|exec|flat_scratch|xnack_mask|tba|tma)(_lo|_hi)?$")
_NAMED = re.compile(r"(m0|scc|vccz|execz|src_\w+|off|null|lds_direct|hwreg\(.*\)|sendmsg\(.*\))$")
_INLINE_FLOATS = (0.0, 0.5, 1.0, 2.0, 4.0)


def code_bytes(instructions: Iterable[Instruction]) -> int:
    """The size of instructions, without padding."""
    return sum(map(instruction_bytes, instructions))


def instruction_bytes(instruction: Instruction) -> int:
    """The size of an instruction."""
    name, encoding = instruction.name, instruction.encoding
    if name.startswith(_TWO_WORDS) or name.startswith(_WITH_LITERAL):
        return 8
    if name.startswith("v_"):
        if encoding in ("", "e64", "dpp", "sdwa", "e64_dpp") and name not in _VALU_ONE_WORD:
            return 8
        return 8 if any(map(_is_literal, instruction.operands)) else 4
    if _SOPP.match(name) or _SOPK.match(name):
        return 4
    return 8 if any(map(_is_literal, instruction.operands)) else 4


def _is_literal(operand: str) -> bool:
    if _REGISTER.match(operand) or _NAMED.match(operand):
        return False
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", operand):
        return not -16 <= int(operand, 0) <= 64
    if re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", operand):
        # 1 / 2π is written with all its digits.
        return abs(float(operand)) not in _INLINE_FLOATS and not 0.15915 < float(operand) < 0.15916
    return True  # A symbol.
