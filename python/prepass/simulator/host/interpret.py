# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the host's code: buffers, fills and copies are done here, dispatches are handed on.

Whatever stands in the code and is not known here is an error. All is done in the order of the code: time points
and fences have no meaning then. Source: the `stream` dialect, https://iree.dev/reference/mlir-dialects/Stream/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from prepass.errors import PrepassError
from prepass.simulator.host.buffers import BufferView, Resource, parse_tensor_type, to_device, to_host
from prepass.simulator.host.read import Export, HostBlock, HostOperation, HostProgram
from prepass.simulator.host.scalars import BINARY, CONVERSIONS, affine, compare, signed, unsigned, width
from prepass.simulator.memory import Memory

# Called with the executable, the kernel, the grid, the addresses of the bindings and the constants.
Dispatcher = Callable[[str, Export, Sequence[int], Sequence[int], Sequence[int]], None]
_Values = dict[int, Any]
# Their results are not used by anything that matters here.
_WITHOUT_MEANING = frozenset(
    [
        "hal.devices.get",
        "hal.fence.create",
        "hal.fence.await",
        "hal.fence.signal",
        "stream.timepoint.immediate",
        "stream.timepoint.import",
        "stream.timepoint.join",
        "stream.timepoint.barrier",
        "stream.timepoint.chain_external",
        "stream.cmd.flush",
        "stream.cmd.invalidate",
        "stream.cmd.discard",
        "stream.resource.dealloca",
        "util.null",
    ]
)
_ENDS = ("util.return", "hal.return", "stream.yield", "scf.yield")


class Host:
    """The host of one run of a program."""

    def __init__(
        self, program: HostProgram, memory: Memory, dispatch: Dispatcher, parameters: Mapping[str, np.ndarray]
    ) -> None:
        """Run the program's initializers.

        `parameters` holds the arrays of external parameters by `scope::key`, or by key alone without a scope.
        """
        self._program = program
        self._memory = memory
        self._dispatch = dispatch
        self._parameters = parameters
        self._globals: dict[str, Any] = dict(program.globals)
        for initializer in program.initializers:
            self._run(initializer, (), {})

    def call(self, function: str, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Call a function with arrays."""
        blocks = self._program.functions[function]
        if len(inputs) != len(blocks[0].arguments):
            raise PrepassError(f"simulator: '{function}' takes {len(blocks[0].arguments)} inputs, not {len(inputs)}")
        results = self._run(blocks, inputs, {})
        return tuple(to_host(result, self._memory) if isinstance(result, BufferView) else result for result in results)

    def _run(self, blocks: Sequence[HostBlock], arguments: Sequence[Any], outer: _Values) -> list[Any]:
        """Run a region to its end; the operands of its last operation."""
        values = dict(outer)
        block = blocks[0]
        while True:
            values.update(zip(block.arguments, arguments, strict=True))
            for operation in block.operations[:-1]:
                self._run_operation(operation, values)
            last = block.operations[-1]
            operands = [values[number] for number in last.operands]
            if last.name in _ENDS:
                return operands
            if last.name == "cf.br":
                block, arguments = blocks[last.successors[0]], operands
            elif last.name == "cf.cond_br":
                number = 0 if operands[0] else 1
                arguments = [values[operand] for operand in last.segment(1 + number)]
                block = blocks[last.successors[number]]
            else:
                raise PrepassError(f"simulator: unknown operation '{last.name}' at the end of a block of the host")

    def _run_operation(self, operation: HostOperation, values: _Values) -> None:
        operands = [values[number] for number in operation.operands]
        name = operation.name
        if name in _WITHOUT_MEANING:
            results: Sequence[Any] = [None] * len(operation.results)
        elif name in BINARY:
            bits = width(operation.result_types[0])
            results = [signed(BINARY[name](*operands, bits), bits)]
        elif name in CONVERSIONS:
            # The narrower of the two types decides how the value is extended or cut.
            bits = min(width(operation.operand_types[0]), width(operation.result_types[0]))
            results = [CONVERSIONS[name](operands[0], bits)]
        elif name in _OPERATIONS:
            results = _OPERATIONS[name](self, operation, operands, values)
        else:
            raise PrepassError(f"simulator: unknown operation '{name}' on the host")
        values.update(zip(operation.results, results, strict=True))

    # What each operation does: from its operands to its results.

    def _constant(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [operation.attributes["value"]]

    def _compare(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [compare(int(operation.attributes["predicate"]), *operands, width(operation.operand_types[0]))]

    def _select(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [operands[1] if operands[0] else operands[2]]

    def _affine(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        results = [affine(expression, operands) for expression in operation.attributes["map"]]
        return [max(results) if operation.name == "affine.max" else min(results)]

    def _pass_on(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return operands[: len(operation.results)]

    def _load_global(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [self._globals[str(operation.attributes["global"])]]

    def _store_global(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        self._globals[str(operation.attributes["global"])] = operands[0]
        return []

    def _call(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return self._run(self._program.functions[str(operation.attributes["callee"])], operands, {})

    def _buffer(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        value = operation.attributes["value"]
        return [value if isinstance(value, bytes) else str(value).encode()]

    def _element_type(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [operation.attributes.get("type", "dense_row_major")]

    def _assert_view(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        array, _, _, *shape = operands
        if tuple(array.shape) != tuple(shape):
            what = operation.attributes["message"]
            raise PrepassError(f"simulator: {what} has the shape {tuple(array.shape)}, not {tuple(shape)}")
        return []

    def _view_size(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [operands[0].shape[int(operation.attributes["index"])]]

    def _import(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, *sizes, size = operands
        shape, kind = parse_tensor_type(str(operation.attributes["result_encoding"]), sizes)
        resource = source.resource if isinstance(source, BufferView) else to_device(source, kind, self._memory)
        if tuple(source.shape) != shape or resource.size < size:
            raise PrepassError(f"simulator: an input has the shape {tuple(source.shape)}, not {shape}")
        return [resource]

    def _export(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        resource, *sizes, _ = operands
        shape, kind = parse_tensor_type(str(operation.attributes["source_encoding"]), sizes)
        return [BufferView(resource, shape, kind)]

    def _allocate(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        # One resource and its size for each; a time point may be among the operands and the results.
        sizes = [operand for operand in operands if isinstance(operand, int)]
        resources: list[Any] = [Resource(self._memory.allocate(size), size) for size in sizes]
        return resources + [None] * (len(operation.results) - len(resources))

    def _subview(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, _, offset, size = operands
        return [source.part(offset, size)]

    def _size(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        return [operands[0].size]

    def _map(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, offset, size = operands
        return [1, self._place(source[offset : offset + size])]

    def _file(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, _, offset, length = operands
        return [source[offset : offset + length]]

    def _read_file(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, source_offset, target, _, offset, length, *_ = operands
        part = target.part(offset, length)
        contents = np.frombuffer(source[source_offset : source_offset + length], np.uint8)
        self._memory.bytes_at(part.address, length)[:] = contents
        return [None]

    def _load_parameters(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        scopes, keys, offsets, sizes = (
            [values[number] for number in operation.segment(segment)] for segment in range(4)
        )
        resources: list[Any] = []
        for key, offset, size in zip(keys, offsets, sizes, strict=True):
            name = "::".join(part.decode() for part in (*scopes, key))
            array = self._parameters.get(name, self._parameters.get(key.decode()))
            if array is None:
                raise PrepassError(f"simulator: no parameter '{name}'")
            contents = np.ascontiguousarray(array).tobytes()[offset : offset + size]
            if len(contents) != size:
                raise PrepassError(f"simulator: parameter '{name}' has {len(contents)} bytes, not {size}")
            resources.append(self._place(contents))
        return [*resources, None]

    def _place(self, contents: bytes) -> Resource:
        return Resource(self._memory.allocate_bytes(np.frombuffer(contents, np.uint8)), len(contents))

    def _execute(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        self._run(operation.regions[0], [values[number] for number in operation.segment(0)], values)
        return [None]

    def _group(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        self._run(operation.regions[0], (), values)
        return []

    def _fill(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        target, _, offset, length, value = operands
        part = target.part(offset, length)
        pattern_bytes = width(operation.operand_types[4]) // 8
        pattern = unsigned(value, 8 * pattern_bytes).to_bytes(pattern_bytes, "little")
        contents = np.frombuffer(pattern * (length // pattern_bytes), np.uint8)
        self._memory.bytes_at(part.address, length)[:] = contents
        return []

    def _copy(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        source, _, source_offset, target, _, target_offset, length = operands
        read, written = source.part(source_offset, length), target.part(target_offset, length)
        contents = self._memory.bytes_at(read.address, length).copy()
        self._memory.bytes_at(written.address, length)[:] = contents
        return []

    def _run_dispatch(self, operation: HostOperation, operands: list[Any], values: _Values) -> list[Any]:
        workload, constants, resources, _, offsets, lengths = (
            [values[number] for number in operation.segment(segment)] for segment in range(6)
        )
        (entry,) = operation.attributes["entry_points"]
        export = self._program.exports.get((entry[0], entry[-1]))
        if export is None:
            raise PrepassError(f"simulator: no kernel '{entry[-1]}' in '{entry[0]}'")
        if not export.count:
            raise PrepassError(f"simulator: kernel '{export.name}' does not say how many workgroups it has")
        grid = self._run(export.count, [None, *workload], {})
        parts = [
            resource.part(offset, length) for resource, offset, length in zip(resources, offsets, lengths, strict=True)
        ]
        self._dispatch(entry[0], export, grid, [part.address for part in parts], [int(value) for value in constants])
        return []


_OPERATIONS: dict[str, Callable[[Host, HostOperation, list[Any], _Values], Sequence[Any]]] = {
    "arith.constant": Host._constant,
    "arith.cmpi": Host._compare,
    "arith.select": Host._select,
    "affine.apply": Host._affine,
    "affine.min": Host._affine,
    "affine.max": Host._affine,
    "util.optimization_barrier": Host._pass_on,
    "util.assume.int": Host._pass_on,
    "util.global.load": Host._load_global,
    "util.global.store": Host._store_global,
    "util.call": Host._call,
    "util.buffer.constant": Host._buffer,
    "hal.element_type": Host._element_type,
    "hal.encoding_type": Host._element_type,
    "hal.buffer_view.assert": Host._assert_view,
    "hal.buffer_view.dim": Host._view_size,
    "stream.tensor.import": Host._import,
    "stream.tensor.export": Host._export,
    "stream.resource.alloc": Host._allocate,
    "stream.resource.alloca": Host._allocate,
    "stream.resource.subview": Host._subview,
    "stream.resource.size": Host._size,
    "stream.resource.try_map": Host._map,
    "stream.timepoint.await": Host._pass_on,
    "stream.file.constant": Host._file,
    "stream.file.read": Host._read_file,
    "stream.cmd.parameter.load": Host._load_parameters,
    "stream.cmd.execute": Host._execute,
    "stream.cmd.concurrent": Host._group,
    "stream.cmd.serial": Host._group,
    "stream.cmd.fill": Host._fill,
    "stream.cmd.copy": Host._copy,
    "stream.cmd.dispatch": Host._run_dispatch,
}
