# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Export the models of the attention coverage page: FOLDER/<name>.mlir, .npz, and expected.json.

    pip install torch==2.13.0 iree-turbine==3.9.0 transformers==5.24.0 diffusers==0.42.1
    python docs/coverage/export.py FOLDER

Small models with random weights: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import sys
from pathlib import Path

from cases import Case, export_case

MODULES = ("torch_models", "diffusers_models", "transformers_models", "inductor_patterns")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="export those whose name matches, such as 'hf/*'")
    arguments = parser.parse_args()
    cases: list[Case] = [case for module in MODULES for case in importlib.import_module(module).CASES]
    chosen = [case for case in cases if fnmatch.fnmatch(case.name, arguments.only)]
    failed = 0
    for case in chosen:
        try:
            export_case(case, arguments.folder)
        except Exception as error:  # One model that torch cannot export does not keep the others.
            failed += 1
            print(f"{case.name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}", file=sys.stderr)
    expected = {case.name: case.expected for case in cases if (arguments.folder / f"{case.name}.mlir").exists()}
    (arguments.folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(f"{len(expected)} models in {arguments.folder}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
