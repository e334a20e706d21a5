# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass.turbine`: torch programs of every kind, and what torch-mlir does not take as it is."""

import sys

import ml_dtypes
import numpy as np
import pytest

import prepass
from prepass import turbine
from prepass.ir.match import walk_ops

from .conftest import LLVM_CPU


@pytest.fixture
def torch():
    pytest.importorskip("iree.turbine")
    return pytest.importorskip("torch")


@pytest.fixture
def layer(torch):
    """A linear layer with a constant, and its input."""

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)
            self.register_buffer("scale", torch.arange(4.0), persistent=False)

        def forward(self, x):
            return self.linear(x) * self.scale + torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=x.dtype)

    torch.manual_seed(0)
    return Layer().eval(), torch.randn(2, 8)


@pytest.mark.parametrize("kind", ["module", "program", "output"])
def test_all_kinds_of_programs_compile(torch, layer, kind):
    from iree.turbine import aot

    module, x = layer
    program = torch.export.export(module, (x,))
    models = {"module": (module, (x,)), "program": (program,), "output": (aot.export(turbine.export(module, (x,))),)}
    seen = []
    vmfb = turbine.compile(
        *models[kind], preset="prepass-default", flags=LLVM_CPU, hooks={"flow": lambda _: seen.append("flow")}
    )
    assert seen == ["flow"]
    (result,) = prepass.run(vmfb, x.numpy())
    np.testing.assert_allclose(result, module(x).detach().numpy(), atol=1e-5)


def test_constants_in_bf16_compile(torch, layer):
    module, x = layer
    module, x = module.bfloat16(), x.bfloat16()
    vmfb = turbine.compile(module, (x,), flags=LLVM_CPU)
    (result,) = prepass.run(vmfb, x.float().numpy().astype(ml_dtypes.bfloat16))
    np.testing.assert_allclose(result.astype(np.float32), module(x).detach().float().numpy(), atol=5e-2)


def test_operators_that_torch_mlir_does_not_know_are_spelt_in_others(torch):
    class Unknown(torch.nn.Module):
        def forward(self, x):
            y = torch.concat([x.clip(-1, 1), torch.diff(x, prepend=x[:, :1])], dim=1)
            y.add_(1.0)
            return y * ((y > 0) & (y < 1.5))

    x = torch.randn(2, 8)
    module = turbine.import_module(Unknown(), (x,))
    assert not walk_ops(module.operation, "torch.operator")
    (result,) = prepass.run(turbine.compile(Unknown(), (x,), flags=LLVM_CPU), x.numpy())
    np.testing.assert_allclose(result, Unknown()(x).numpy(), atol=1e-6)


def test_external_parameters_stay_outside(torch, layer):
    from iree.turbine import aot

    module, x = layer
    aot.externalize_module_parameters(module, external_scope="model")
    text = str(turbine.import_module(torch.export.export(module, (x,))))
    assert '#flow.parameter.named<"model"::"linear.weight"> : tensor<4x8xf32>' in text


def test_arguments_that_are_written_to_are_updated_in_place(torch):
    """As the keys and values of a language model, a token at a time."""
    from iree import runtime

    class Append(torch.nn.Module):
        def forward(self, position, row, rows):
            rows.index_copy_(0, position, row)
            return rows.sum(dim=0)

    arguments = (torch.tensor([2]), torch.randn(1, 8), torch.randn(4, 8))
    vmfb = turbine.compile(Append(), arguments, preset="prepass-default", flags=LLVM_CPU)
    device = runtime.get_device("local-task")
    rows = runtime.asdevicearray(device, arguments[2].numpy())
    (result,) = prepass.run(vmfb, *(argument.numpy() for argument in arguments[:2]), rows)
    np.testing.assert_allclose(result, Append()(*arguments).numpy(), atol=1e-5)
    # torch has now updated its own.
    np.testing.assert_allclose(rows.to_host(), arguments[2].numpy())


def test_dynamic_shapes_stay_dynamic(torch, layer):
    module, x = layer
    dynamic = ({0: torch.export.Dim("rows", min=2, max=64)},)
    vmfb = turbine.compile(module, (x,), dynamic_shapes=dynamic, preset="prepass-default", flags=LLVM_CPU)
    more = torch.randn(5, 8)
    (result,) = prepass.run(vmfb, more.numpy())
    np.testing.assert_allclose(result, module(more).detach().numpy(), atol=1e-5)


def test_mistakes_are_one_line(torch, layer):
    class Branches(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    module, x = layer
    with pytest.raises(prepass.PrepassError, match="torch cannot export Branches: ") as raised:
        turbine.compile(Branches(), (x,))
    assert "\n" not in str(raised.value)
    with pytest.raises(prepass.PrepassError, match="exported already cannot be given again"):
        turbine.compile(torch.export.export(module, (x,)), (x,))
    with pytest.raises(prepass.PrepassError, match="iree-turbine cannot import int"):
        turbine.compile(3)


@pytest.mark.parametrize("missing", ["torch", "iree.turbine"])
def test_without_torch_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(prepass.PrepassError, match=r"pip install 'prepass\[torch\]'"):
        turbine.compile(object())
