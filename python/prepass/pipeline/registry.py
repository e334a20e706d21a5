# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which passes, named pipelines and kernels exist: ours, installed third parties', and loaded files'."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from prepass.errors import PrepassError, describe_exception, did_you_mean
from prepass.ir.kernels.kernel import Kernel
from prepass.kernels import KERNELS
from prepass.passes import PASSES
from prepass.pipeline.base import Pass
from prepass.pipeline.named import NamedPipeline
from prepass.pipelines import PIPELINES

ENTRY_POINT_GROUP = "prepass.passes"
KERNEL_ENTRY_POINT_GROUP = "prepass.kernels"
PREFIX = "prepass-"


class Registry:
    """Names and the factories that load what they name, when it is first used.

    Attributes:
      files: The Python files that were added.
    """

    def __init__(self) -> None:
        self._passes: dict[str, Callable[[], object]] = {}
        self._pipelines: dict[str, Callable[[], object]] = {}
        self._kernels: dict[str, Callable[[], object]] = {}
        self._providers: dict[str, str] = {}
        self.files: list[Path] = []

    def add_table(
        self, passes: Mapping[str, str], pipelines: Mapping[str, str], kernels: Mapping[str, str] | None = None
    ) -> None:
        """Add `name → "module:attribute"` tables of this package."""
        for name, path in passes.items():
            self._add(self._passes, name, functools.partial(_load_object, path), "prepass")
        for name, path in pipelines.items():
            self._add(self._pipelines, name, functools.partial(_load_object, path), "prepass")
        for name, path in (kernels or {}).items():
            self._add(self._kernels, name, functools.partial(_load_object, path), "prepass")

    def add_entry_point(self, entry_point: EntryPoint) -> None:
        """Add a pass, or a kernel, that an installed distribution provides under its entry point's name."""
        provider = entry_point.dist.name if entry_point.dist else entry_point.module
        table = self._kernels if entry_point.group == KERNEL_ENTRY_POINT_GROUP else self._passes
        self._add(table, entry_point.name, entry_point.load, provider)

    def add_file(self, path: str | Path) -> None:
        """Run a Python file and add every pass, named pipeline and kernel that it defines."""
        module = _import_file(Path(path))
        self.files.append(Path(path))
        for value in list(vars(module).values()):
            if isinstance(value, type) and issubclass(value, Pass) and value.__module__ == module.__name__:
                if not isinstance(getattr(value, "name", None), str):
                    raise PrepassError(f'{path}: {value.__name__} has no name; give it `name = "…"`')
                self._add(self._passes, value.name, functools.partial(_identity, value), str(path))
            elif isinstance(value, NamedPipeline):
                self._add(self._pipelines, value.name, functools.partial(_identity, value), str(path))
            elif isinstance(value, Kernel) and not self._is_known(value):
                self._add(self._kernels, value.name, functools.partial(_identity, value), str(path))

    def pass_names(self) -> list[str]:
        """The names of all passes, sorted."""
        return sorted(self._passes)

    def pipeline_names(self) -> list[str]:
        """The names of all named pipelines, sorted."""
        return sorted(self._pipelines)

    def kernel_names(self) -> list[str]:
        """The names of all kernels, in the order in which they are tried: ours last, so that others can be better."""
        return sorted(self._kernels, key=lambda name: self._providers[name] == "prepass")

    def provider(self, name: str) -> str:
        """Which distribution or file a name comes from."""
        return self._providers[name]

    def find_pass(self, name: str) -> type[Pass] | None:
        """The pass class called `name`, or None when no pass is called so."""
        if name not in self._passes:
            return None
        found = self._load(self._passes[name], name)
        if not (isinstance(found, type) and issubclass(found, Pass)):
            raise PrepassError(f"'{name}' of {self.provider(name)} is not a Pass: {found!r}")
        return found

    def find_pipeline(self, name: str) -> NamedPipeline | None:
        """The named pipeline called `name`, or None when none is called so."""
        if name not in self._pipelines:
            return None
        found = self._load(self._pipelines[name], name)
        if not isinstance(found, NamedPipeline):
            raise PrepassError(f"'{name}' of {self.provider(name)} is not a NamedPipeline: {found!r}")
        return found

    def pipeline(self, name: str) -> NamedPipeline:
        """The named pipeline called `name`, with or without the prefix. Raises PrepassError with the nearest name."""
        found = self.find_pipeline(name) or self.find_pipeline(PREFIX + name)
        if found is None:
            near = did_you_mean(name, self.pipeline_names()) or f"; there are {', '.join(self.pipeline_names())}"
            raise PrepassError(f"unknown pipeline '{name}'{near}")
        return found

    def kernel(self, name: str) -> Kernel:
        """The kernel called `name`. Raises PrepassError with the nearest name."""
        if name not in self._kernels:
            near = did_you_mean(name, self.kernel_names()) or "; `prepass kernels` lists them"
            raise PrepassError(f"unknown kernel '{name}'{near}")
        found = self._load(self._kernels[name], name)
        if not isinstance(found, Kernel):
            raise PrepassError(f"'{name}' of {self.provider(name)} is not a Kernel: {found!r}")
        return found

    def _load(self, factory: Callable[[], object], name: str) -> object:
        try:
            return factory()
        except (ImportError, AttributeError) as error:
            raise PrepassError(f"'{name}' of {self.provider(name)} cannot be loaded: {error}") from error

    def _is_known(self, kernel: Kernel) -> bool:
        """Whether a kernel is registered: an instance does not know which module made it and which imported it."""
        return kernel.name in self._kernels and self.kernel(kernel.name) is kernel

    def _add(self, table: dict[str, Callable[[], object]], name: str, factory: Callable[[], object], by: str) -> None:
        if name in self._providers:
            raise PrepassError(f"'{name}' is provided twice: by {self._providers[name]} and by {by}")
        self._providers[name] = by
        table[name] = factory


@functools.cache
def default_registry() -> Registry:
    """The registry that programs use; `--prepass-load` adds to it."""
    registry = Registry()
    registry.add_table(PASSES, PIPELINES, KERNELS)
    for group in (ENTRY_POINT_GROUP, KERNEL_ENTRY_POINT_GROUP):
        for entry_point in entry_points(group=group):
            registry.add_entry_point(entry_point)
    return registry


def _load_object(path: str) -> object:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _identity(value: object) -> object:
    return value


def _import_file(path: Path) -> object:
    name = f"prepass_loaded_{path.stem}_{abs(hash(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PrepassError(f"{path}: not a Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PrepassError(f"{path}: {describe_exception(error, str(path))}") from error
    return module
