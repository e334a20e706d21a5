# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What loading a program reads and keeps."""

import pytest

from .dispatches import cost
from .graphs import with_parameters
from .unit_dim_cases import Linear

PIPELINE = "builtin.module(prepass-fold-unit-dims)"
WEIGHTS = 2 * (48 * 32 + 48)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_weight_is_kept_once_and_not_changed_at_load(level):
    found = cost(with_parameters(*Linear().graph()), PIPELINE, level)
    assert found.weight_bytes == WEIGHTS
    assert found.initializer_read_bytes == 0


def test_without_the_pass_a_weight_of_batch_1_is_transposed_at_load():
    found = cost(with_parameters(*Linear().graph()), None, "O0")
    assert found.weight_bytes == WEIGHTS
    assert found.initializer_read_bytes == 2 * 48 * 32


def test_a_program_without_weights_keeps_nothing():
    graph, result = Linear().graph()
    found = cost(graph.module(result), PIPELINE, "O0")
    assert (found.weight_bytes, found.initializer_read_bytes) == (0, 0)
