# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Configuration of the lit tests. Run them with `tools/test`, or `.venv/bin/lit -v lit_tests`."""

import importlib.util
import os
import sys
from pathlib import Path

import lit.formats

try:
    import llvm_testing_tools

    from prepass.errors import PrepassError
    from prepass.plugin import LIBRARY_NAME, library_path
except ImportError as error:
    lit_config.fatal(f"{sys.executable} lacks what the tests need ({error}); run tools/test, which installs it")

root = Path(__file__).resolve().parent

config.name = "prepass"
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = str(root)
# Apart from the tests: beside them is nothing else to read.
config.test_exec_root = str(root.parent / "build" / "lit_tests")

# The tests name the programs as a user does, so the programs are found on PATH: prepass's and IREE's in the virtual
# environment; FileCheck and split-file as the binaries themselves, since their wrappers start a Python each. lit has
# its own `not`.
programs = [Path(llvm_testing_tools.__path__[0], "binaries"), Path(sys.prefix, "bin")]
config.environment["PATH"] = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"
for name in ("PREPASS_PYTHON", "PREPASS_PLUGIN_ACTIVE"):
    config.environment.pop(name, None)

config.substitutions.append(("%python", sys.executable))

try:
    config.substitutions.append(("%prepass_plugin", str(library_path())))
    config.available_features.add("plugin")
except PrepassError:
    config.substitutions.append(("%prepass_plugin", LIBRARY_NAME))
if importlib.util.find_spec("torch"):
    config.available_features.add("torch")
