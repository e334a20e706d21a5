# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library for `iree-compile --load=<library>`, which gives the stock compiler prepass's passes."""

from __future__ import annotations

from pathlib import Path

from prepass.errors import PrepassError

LIBRARY_NAME = "libprepass_plugin.so"


def library_path() -> Path:
    """Return the absolute path of the plugin.

    Raises PrepassError if it was not built.
    """
    # An editable install has two folders: the sources, and site-packages with what CMake built.
    for folder in __path__:
        library = Path(folder, LIBRARY_NAME).absolute()
        if library.is_file():
            return library
    raise PrepassError(
        "the plugin was not built: there was no C compiler when prepass was installed; "
        "install one and prepass again, or use prepass-compile, which needs no plugin"
    )
