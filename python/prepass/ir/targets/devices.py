# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which compiler flags make a program that a runtime device can run."""

from __future__ import annotations

from prepass.errors import PrepassError

# The flags that choose devices, the second by its former name.
DEVICE_FLAGS = ("iree-hal-target-device", "iree-hal-target-backends")

_LLVM_CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
# The GPU's architecture is not among the flags: nothing here can know it.
_FLAGS = {"local-task": _LLVM_CPU, "local-sync": _LLVM_CPU, "hip": ("--iree-hal-target-device=hip",)}


def flag_name(flag: str) -> str:
    """The name of a flag such as `--iree-opt-level=O3`; LLVM takes one dash or two."""
    return flag.lstrip("-").partition("=")[0]


def compile_flags(device: str) -> tuple[str, ...]:
    """The target flags of iree-compile for a device URI such as `local-task` or `hip://0`.

    Raises PrepassError for a device whose target prepass does not know.
    """
    driver = device.partition("://")[0]
    if driver not in _FLAGS:
        raise PrepassError(f"no target known for device '{device}'; known are {', '.join(_FLAGS)}")
    return _FLAGS[driver]
