# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile matmul.c to bitcode that IREE links and inlines: `python build.py CLANG OUTPUT`."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("matmul.c")
TARGET = ["--target=amdgcn-amd-amdhsa", "-nogpulib"]


def build(clang: str, output: str) -> None:
    """Compile the source; raises CalledProcessError where clang fails, whose message is on standard error."""
    flags = ["-std=c23", "-march=gfx942", "-mcode-object-version=5", "-O3", "-fno-ident"]
    command = [clang, *TARGET, *flags, "-S", "-emit-llvm", str(SOURCE), "-o", "-"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    # LLVM does not inline a function into one with other features, and IREE names its own.
    text = re.sub(r' "target-(cpu|features)"="[^"]*"', "", text)
    subprocess.run(
        [clang, *TARGET, "-c", "-emit-llvm", "-x", "ir", "-", "-o", output], check=True, input=text, text=True
    )


if __name__ == "__main__":
    build(*sys.argv[1:])
