# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention kernels in the simulator, against numpy and against the code that IREE makes of the same op."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.assembly import read_kernels
from prepass.amdgpu.control_flow import ControlFlow
from prepass.amdgpu.metadata import read_metadata
from prepass.simulator import compile_program, run_program, simulate

from .attention_kernel_ops import PLAIN, TRANSPOSED, Attention
from .conftest import GFX942

ELEMENTS = ("f16", "bf16")
HEAD_DIMS = (40, 64, 72, 80, 96, 128)
GROUPED = {"q": "h g m d", "k": "h s d", "v": "h s n", "out": "h g m n"}
# Of the largest result.
TOLERANCES = {"f16": 1e-3, "bf16": 1e-2}


def op(heads, queries, keys, channels, dims=PLAIN, **options):
    return Attention({"b": heads, "m": queries, "n": channels, "d": channels, "s": keys}, dims, **options)


def name_of(attention):
    return f"attention-{attention.element}-{attention.sizes['n']}"


def run(attention, arrays):
    """The result of the kernel."""
    found = []
    program = compile_program(
        attention.source(), kernels=name_of(attention), on_remark=lambda remark, _: found.append(remark.message)
    )
    assert found == [f"computed by {name_of(attention)}"]
    (result,) = run_program(program, arrays)
    return result.astype(np.float64)


def check(attention):
    """Compare the kernel with numpy."""
    arrays = attention.arrays()
    expected = attention.reference(*arrays)
    largest = abs(expected).max() * TOLERANCES[attention.element]
    assert abs(run(attention, arrays) - expected).max() <= largest


@pytest.mark.parametrize("element", ELEMENTS)
# Few heads of 128 channels have workgroups of four waves, a dynamic number of heads has six or eight.
@pytest.mark.parametrize(("channels", "dynamic"), [*((channels, "") for channels in HEAD_DIMS), (128, "b")])
def test_every_head_dim(channels, dynamic, element):
    """Several workgroups, the last one not full, several tiles of keys, the last one not full."""
    check(op(2, 300, 141, channels, element=element, dynamic=dynamic))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("channels", [64, 128, *(pytest.param(d, marks=pytest.mark.slow) for d in (40, 72, 80, 96))])
def test_values_transposed(channels, element):
    check(op(1, 100, 200, channels, TRANSPOSED, element=element))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("queries", "keys", "mask"), [(32, 96, ""), (33, 13, ""), (16, 32, "m s")])
def test_beside_the_op_without_a_kernel(queries, keys, mask, element):
    attention = op(1, queries, keys, 64, {**PLAIN, "mask": mask} if mask else PLAIN, element=element)
    arrays = attention.arrays()
    (stock,) = simulate(attention.source(), arrays)
    difference = abs(run(attention, arrays) - stock.astype(np.float64)).max()
    assert difference <= 2 * TOLERANCES[element] * abs(attention.reference(*arrays)).max()


# With 64 channels tiles are of 96 keys, blocks of 32, chunks of 8.
@pytest.mark.parametrize("keys", [2, 7, 8, 9, 31, 32, 33, 77, 95, 96, 97, 192, 200])
def test_numbers_of_keys(keys):
    check(op(2, 64, keys, 64))


@pytest.mark.parametrize("keys", [8, 88, 96, 104, 192])
def test_numbers_of_keys_side_by_side(keys):
    check(op(1, 64, keys, 64, {**TRANSPOSED, "k": "b d s"}))


# Waves are of 32 queries, workgroups of 192.
@pytest.mark.parametrize("queries", [2, 31, 32, 33, 191, 192, 193, 384])
def test_numbers_of_queries(queries):
    check(op(2, queries, 40, 64))


@pytest.mark.parametrize(
    ("attention", "waves"),
    [
        (op(38, 1024, 64, 128), 4),  # 304 workgroups, one for each CU
        (op(39, 1024, 64, 128), 8),
        (op(38, 1024, 64, 128, dynamic="b"), 8),
        (op(2, 1024, 64, 128, dynamic="m"), 8),
        (op(400, 150, 64, 128), 5),  # of 32 queries, the last of fewer
        (op(2, 70, 64, 128), 3),
        (Attention({"h": 5, "g": 8, "m": 1024, "n": 128, "d": 128, "s": 64}, GROUPED), 8),
        (op(38, 1024, 64, 64), 6),
    ],
)
def test_workgroups_have_four_waves_where_cus_would_be_idle(attention, waves):
    (assembly,) = compile_program(attention.source(), kernels=name_of(attention)).assembly
    (metadata,) = read_metadata(assembly).values()
    assert metadata.work_items == 64 * waves


@pytest.mark.parametrize("dynamic", ["s", "m", "bms"])
@pytest.mark.parametrize("keys", [64, 100])
def test_dynamic_sizes(dynamic, keys):
    check(op(2, 200, keys, 64, dynamic=dynamic))


@pytest.mark.parametrize("mask", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("dims", ["b m s", "m s", "b s", "s"])
def test_masks(mask, dims):
    check(op(2, 40, 128, 64, {**PLAIN, "mask": dims}, mask=mask))


@pytest.mark.parametrize("keys", [7, 77, 88, 100])
@pytest.mark.parametrize("dynamic", ["", "s"])
def test_masks_of_tiles_that_are_not_full(keys, dynamic):
    check(op(1, 40, keys, 64, {**PLAIN, "mask": "m s"}, dynamic=dynamic))


def test_a_row_that_is_masked_by_the_lowest_number_is_uniform():
    attention = op(1, 32, 64, 64, {**PLAIN, "mask": "m s"}, mask="f32")
    q, k, v, mask = attention.arrays()
    mask[3] = np.finfo(np.float32).min
    result = run(attention, [q, k, v, mask])
    assert abs(result[0, 3] - v[0].astype(np.float64).mean(0)).max() <= 1e-3
    assert np.isfinite(result).all()


@pytest.mark.parametrize("mask", ["f16", "f32"])
def test_keys_that_are_masked_by_infinity(mask):
    attention = op(1, 32, 192, 64, {**PLAIN, "mask": "m s"}, mask=mask)
    q, k, v, bias = attention.arrays()
    # All of the first tile, and all of one row, which has no result then.
    bias[:, :100] = -np.inf
    bias[5] = -np.inf
    result = run(attention, [q, k, v, bias])
    with np.errstate(invalid="ignore"):
        expected = attention.reference(q, k, v, bias)
    assert np.isnan(result[0, 5]).all()
    others = np.arange(32) != 5
    assert abs(result[0, others] - expected[0, others]).max() <= 1e-3 * abs(expected[0, others]).max()


def test_groups_of_heads_share_keys():
    sizes = {"b": 2, "h": 2, "g": 3, "m": 40, "n": 64, "d": 64, "s": 50}
    dims = {"q": "b h g m d", "k": "b h s d", "v": "b h s n", "out": "b h g m n", "mask": "b m s"}
    check(Attention(sizes, dims))


def test_all_heads_share_keys():
    sizes = {"b": 2, "g": 3, "m": 40, "n": 64, "d": 64, "s": 50}
    check(Attention(sizes, {"q": "b g m d", "k": "b s d", "v": "b s n", "out": "b g m n"}))


def test_heads_next_to_channels():
    sizes = {"b": 2, "h": 3, "m": 70, "n": 64, "d": 64, "s": 50}
    check(Attention(sizes, {"q": "b m h d", "k": "b s h d", "v": "b s h n", "out": "b m h n"}))


def test_channels_of_two_loops():
    sizes = {"b": 2, "m": 40, "n": 128, "d": 2, "e": 64, "s": 50}
    check(Attention(sizes, {"q": "b m d e", "k": "b s d e", "v": "s b n", "out": "m b n"}, element="bf16"))


@pytest.mark.parametrize("scale", [-0.2, 1e-3, 3.0])
def test_scales(scale):
    check(op(1, 32, 64, 64, scale=scale))


@pytest.mark.parametrize("element", ELEMENTS)
def test_weights_are_summed_as_they_are_rounded(element):
    """Equal values come out as they are, whatever the weights."""
    attention = op(1, 32, 200, 64, element=element)
    q, k, v = attention.arrays()
    v[:] = 0.75
    result = run(attention, [q, k, v])
    assert abs(result - 0.75).max() <= (5e-4 if element == "f16" else 5e-3)


def test_many_small_weights_count():
    """Weights far below what f16 holds beside the largest one."""
    attention = op(1, 32, 512, 64, scale=1.0)
    q, k, v = attention.arrays()
    q[:], k[:] = 0, 0
    q[:, :, 0], k[:, 0, 0], k[:, 1:, 0] = 1, 10, -1
    v[:] = 0
    v[:, 1:] = 1
    expected = attention.reference(q, k, v)
    result = run(attention, [q, k, v])
    assert abs(result / expected - 1).max() < 2e-3


@pytest.mark.parametrize(("heads", "element", "channels"), [(2, "f16", 64), (2, "bf16", 128), (400, "bf16", 128)])
def test_the_next_tile_is_loaded_before_this_one_is_computed(heads, element, channels):
    attention = op(heads, 256, 512, channels, TRANSPOSED, element=element)
    (assembly,) = compile_program(attention.source(), kernels=name_of(attention)).assembly
    (kernel,) = read_kernels(assembly)
    flow = ControlFlow(kernel)
    names = [instruction.name for instruction in flow.instructions(flow.hottest)]
    loads = [at for at, name in enumerate(names) if name.startswith("buffer_load")]
    products = [at for at, name in enumerate(names) if name.startswith("v_mfma")]
    writes = [at for at, name in enumerate(names) if name.startswith("ds_write")]
    assert len(loads) == len(writes) > 0
    assert max(loads) < min(products) < products[len(products) // 2] < min(writes)


HALVED = "%half = arith.constant 0.5 : f32 %r = arith.mulf %score, %half : f32 iree_linalg_ext.yield %r : f32"
REFUSED = {
    "the head dim is 48, not 64": op(2, 64, 64, 48),
    "there is no loop over the queries": op(2, 1, 64, 64),
    "the keys of V are innermost, and there is 77, no multiple of 8, of them": op(2, 64, 77, 64, TRANSPOSED),
    "the keys of V are innermost, and there is a dynamic number of them": op(2, 64, 64, 64, TRANSPOSED, dynamic="s"),
    "Q, K and V are of type bf16, not f16": op(2, 64, 64, 64, element="bf16"),
    "a mask of type i1 is not added to the scores": op(2, 64, 64, 64, {**PLAIN, "mask": "m s"}, mask="i1"),
    "queries and keys are dynamic, which with a mask takes too many registers": op(
        2, 64, 64, 64, {**PLAIN, "mask": "m s"}, dynamic="ms"
    ),
    "the keys are not innermost in the mask": op(2, 64, 64, 64, {**PLAIN, "mask": "s m"}),
    "the channels of Q are not innermost": op(2, 64, 64, 64, {**PLAIN, "q": "b d m"}),
    "neither the channels nor the keys of K are innermost": op(2, 64, 64, 64, {**PLAIN, "k": "s d b"}),
    "neither the channels nor the keys of V are innermost": op(2, 64, 64, 64, {**PLAIN, "v": "s n b"}),
    "the channels of the result are not innermost": op(2, 64, 64, 64, {**PLAIN, "out": "b n m"}),
    "Q, K and V do not all have the same batch loops": op(2, 64, 64, 64, {**PLAIN, "k": "s d"}),
    "the region changes the scores": op(2, 64, 64, 64, body=HALVED),
    "a head dim of 60 is no multiple of 8": op(2, 64, 64, 60),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason):
    """No kernel, and the remark says why."""
    found = []
    with pytest.raises(_Stop):
        prepass.compile(
            REFUSED[reason].source(),
            flags=GFX942,
            kernels="attention-f16-64",
            hooks={"executable-sources": _stop},
            on_remark=lambda remark, _: found.append(remark.message),
        )
    assert found == [f"attention-f16-64: {reason}"]


class _Stop(Exception):
    """Ends a compilation."""


def _stop(_: object) -> None:
    raise _Stop
