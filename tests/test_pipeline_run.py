# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running pipelines: remarks, counters, reports, failures, and the builder on top."""

import inspect
import io
from pathlib import Path

import pytest
from iree.compiler import ir
from rich.console import Console

from prepass import PassFailure, Pipeline, PrepassError
from prepass.ir.targets import Target
from prepass.pipeline import builder
from prepass.pipeline.base import RemarkKind
from prepass.pipeline.control import Control
from prepass.pipeline.manager import Instrumentation, run_pipeline
from prepass.pipeline.registry import Registry
from prepass.pipeline.resolve import resolve_pipeline

from .conftest import ADD

PASSES_FILE = Path(__file__).with_name("passes_for_tests.py")


@pytest.fixture
def registry(monkeypatch):
    registry = Registry()
    registry.add_file(PASSES_FILE)
    monkeypatch.setattr(builder, "default_registry", lambda: registry)
    return registry


@pytest.fixture
def run(registry, context):
    def run(text, **options):
        module = ir.Module.parse(ADD, context)
        resolved = resolve_pipeline(f"builtin.module({text})", registry, context)
        return module, run_pipeline(resolved, module.operation, **options)

    return run


def test_python_and_native_passes_run_in_order(run):
    _, result = run("test-report-adds,cse,test-report-adds")
    assert [run.counters["adds"] for run in result.passes] == [2, 1]
    assert result.seconds >= sum(run.seconds for run in result.passes) > 0


def test_a_nested_pass_runs_on_its_anchors_only(run):
    _, result = run("func.func(cse,test-options),util.func(test-options)")
    assert [dict(run.counters) for run in result.passes] == [{"ran on func.func": 1}, {}]


def test_remarks_say_what_where_and_why(run):
    seen = []
    _, result = run("test-report-adds", on_remark=lambda remark, location: seen.append((remark, str(location))))
    assert [remark for remark, _ in seen] == result.remarks
    first = result.remarks[0]
    assert (first.kind, first.message, first.op_name) == (RemarkKind.MISSED, "seen for no target", "arith.addf")
    assert str(first) == "-:2:8: remark: test-report-adds: missed: seen for no target [arith.addf]"


def test_reports_cover_both_kinds_of_pass(run, capfd):
    run(
        "cse,test-report-adds",
        instrumentation=Instrumentation(print_after_all=True, timing=True, statistics=True),
    )
    err = capfd.readouterr().err
    for expected in (
        "IR Dump After CSEPass: cse",
        "IR Dump After ReportAddsPass: test-report-adds",
        "Number of operations CSE'd",
        "(S) 1 adds",
        "Execution time report",
    ):
        assert expected in err
    assert err.index("Execution time report") < err.rindex("ReportAddsPass")


def test_the_module_is_verified_after_a_python_pass(run):
    with pytest.raises(ir.MLIRError):
        run("test-fail{how=break}")


def test_a_pass_that_raises_is_one_line_with_its_name(run):
    with pytest.raises(PassFailure, match="pass 'test-fail' failed: ValueError: deliberate") as caught:
        run("test-fail")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_builder_prints_pipeline_text(registry):
    pipeline = Pipeline().test_options(pad_keys=8, axes=(1, 2), text="a b").native("canonicalize").cse()
    text = 'builtin.module(test-options{pad-keys=8 text="a b" axes=1,2},canonicalize,cse)'
    assert str(pipeline.native("func.func(cse)")).startswith(text[:-1])
    assert Pipeline.parse(str(pipeline)) == pipeline
    assert str(Pipeline().cse() + Pipeline().canonicalize()) == "builtin.module(cse,canonicalize)"


def test_builder_completes_and_documents_methods(registry):
    assert {"test_options", "test_report_adds", "test_pipeline", "cse"} <= set(dir(Pipeline()))
    method = Pipeline().test_options
    assert method.__doc__ == "Take options of every type."
    assert inspect.signature(method).parameters["pad_keys"].default == 16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.test_options(pad_key=1), "no option 'pad_key'; did you mean 'pad_keys'?"),
        (lambda p: p.test_options(pad_keys="x"), "option 'pad-keys' takes an integer, not 'x'"),
        (lambda p: p.native("cse("), "unbalanced"),
        (lambda p: p.native("csee").run(ADD), "did you mean 'cse'"),
        (lambda p: p.run("no_such_file.mlir"), "cannot open 'no_such_file.mlir'"),
        (lambda p: p.run("not mlir\n"), "<text>"),
    ],
)
def test_builder_refuses_mistakes(call, message, registry):
    with pytest.raises(PrepassError, match=message.replace("?", r"\?")):
        call(Pipeline())


def test_builder_names_the_nearest_method(registry):
    with pytest.raises(AttributeError, match="did you mean 'test_options'"):
        _ = Pipeline().test_option


def test_result_has_module_remarks_counters_and_diff(registry):
    result = Pipeline().test_report_adds().cse().run(ADD)
    assert result.counters == {"adds": 2}
    assert len(result.remarks) == 2
    assert str(result.module).count("arith.addf") == 1
    assert "-    %1 = arith.addf %arg0, %arg1" in result.diff
    assert Pipeline().test_report_adds().run(ADD).diff == ""


def test_result_shows_itself_in_terminals_and_notebooks(registry):
    result = Pipeline().test_report_adds().cse().run(ADD)
    output = io.StringIO()
    Console(file=output, width=120).print(result)
    assert "test-report-adds" in output.getvalue()
    assert "seen for no target" in output.getvalue()
    page = result._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 1
    assert "seen for no target" in page


def test_remarks_name_the_file_they_come_from(registry, add_file):
    for source in (add_file, str(add_file)):
        result = Pipeline().test_report_adds().run(source)
        assert result.remarks[0].location == f"{add_file}:2:8"


def test_the_input_module_is_not_edited(registry, context):
    module = ir.Module.parse(ADD, context)
    Pipeline().cse().run(module)
    assert str(module).count("arith.addf") == 2


@pytest.mark.parametrize(("limit", "marked", "next_op"), [(0, 0, "arith.addf"), (1, 1, "arith.addf"), (2, 2, None)])
def test_a_pass_stops_at_its_limit_of_rewrites(run, limit, marked, next_op):
    module, result = run("test-mark-adds,test-report-adds", control=Control({"test-mark-adds": limit}))
    assert str(module).count("marked") == marked
    # It is the op that would be rewritten next, and later passes run.
    stopped_at = result.passes[0].stopped_at
    assert (stopped_at.name if stopped_at else None) == next_op
    assert result.passes[1].counters["adds"] == 2


def test_passes_can_be_told_another_target(run):
    _, result = run("test-report-adds", control=Control(target=Target("rocm", "gfx942")))
    assert {remark.message for remark in result.remarks} == {"seen for gfx942"}
