# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass kernels`: the kernels that there are, and one in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prepass.compiler.kernels import kernel_functions
from prepass.errors import PrepassError, did_you_mean
from prepass.ir.kernels import Example, ExpectedFigures, Kernel
from prepass.pipeline.registry import default_registry
from prepass.tools.common import working
from prepass.tools.tables import print_table


def list_kernels() -> None:
    """Print a line for each kernel."""
    registry = default_registry()
    rows = []
    for kernel in map(registry.kernel, registry.kernel_names()):
        facts = kernel.description
        default = "default" if kernel.by_default else ""
        rows.append((kernel.name, kernel.kind.name, ", ".join(facts.targets), default, facts.summary))
    print_table(("kernel", "for", "targets", "", "summary"), rows)


def show_kernel(name: str, example_name: str | None) -> None:
    """Print a kernel's description and the MLIR that it emits. Raises PrepassError."""
    kernel = default_registry().kernel(name)
    example = _example(kernel, example_name)
    print(f"{kernel.name}, of {default_registry().provider(name)}: {kernel.description.summary}\n")
    print_table(("", ""), _facts(kernel))
    if example is not None:
        with working(f"compiling {example.name}"):
            functions = kernel_functions(example.source, kernel.name, example.pipeline)
        print(f"\nIts MLIR for {example.name}:\n")
        print("\n".join(functions))


def _example(kernel: Kernel, name: str | None) -> Example | None:
    examples = {example.name: example for example in kernel.examples()}
    if name is not None and name not in examples:
        near = did_you_mean(name, examples) or f"; it has {', '.join(examples) or 'none'}"
        raise PrepassError(f"kernel '{kernel.name}' has no example '{name}'{near}")
    return examples[name] if name is not None else next(iter(examples.values()), None)


def _facts(kernel: Kernel) -> Sequence[tuple[str, str]]:
    facts = kernel.description
    return [
        ("computes", kernel.kind.name),
        ("targets", ", ".join(facts.targets)),
        ("element types", ", ".join(facts.element_types)),
        *(("when", condition) for condition in facts.conditions),
        *(("masks", mask) for mask in facts.masks),
        ("a workgroup computes", _sizes(facts.tile)),
        ("an iteration goes through", _sizes(facts.step)),
        ("work items", str(facts.workgroup_size)),
        ("LDS bytes", str(facts.lds_bytes)),
        *_figures(facts.figures),
        ("by default" if kernel.by_default else "not by default", facts.reason),
        *(("example", example.name) for example in kernel.examples()),
    ]


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {size or 'all'}" for name, size in sizes.items())


def _figures(figures: ExpectedFigures | None) -> list[tuple[str, str]]:
    if figures is None:
        return []
    cycles = f"MFMA {figures.mfma}, VALU {figures.valu}, LDS {figures.lds} for {figures.per}"
    return [
        ("static cycles of a wave", cycles),
        ("registers", f"{figures.vgprs} VGPRs, {figures.spills} spilled"),
    ]
