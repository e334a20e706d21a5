# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names, options and anchors of pipelines: what is found and how the rest is refused."""

import textwrap
from pathlib import Path

import pytest

from prepass import PipelineError, PrepassError
from prepass.pipeline.registry import Registry
from prepass.pipeline.resolve import mentions_prepass, python_passes, resolve_pipeline

PASSES_FILE = Path(__file__).with_name("passes_for_tests.py")


@pytest.fixture
def registry():
    registry = Registry()
    registry.add_file(PASSES_FILE)
    return registry


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("builtin.module(cse,test-report-adds)", None),
        ("builtin.module(func.func(cse,test-report-adds,canonicalize))", None),
        ("builtin.module(test-pipeline,cse)", "builtin.module(cse,test-report-adds,cse)"),
        ("builtin.module(test-options{pad-keys=16})", "builtin.module(test-options)"),
        ("builtin.module(test-options{flag})", "builtin.module(test-options{flag=true})"),
        ("builtin.module(test-options{axes=1,2 flag=true})", "builtin.module(test-options{flag=true axes=1,2})"),
        ('builtin.module(test-options{text="a b" limit=3})', None),
        (
            "builtin.module(test-options{scale=0.5 mode=keep limit=none})",
            "builtin.module(test-options{scale=0.5 mode=keep})",
        ),
        ("builtin.module(canonicalize{max-iterations=3},test-module-only)", None),
    ],
)
def test_prints_what_it_resolved(text, printed, registry, context):
    resolved = resolve_pipeline(text, registry, context)
    assert str(resolved) == (printed or text)
    assert str(resolve_pipeline(str(resolved), registry, context)) == str(resolved)


def test_options_have_their_types(registry, context):
    text = 'builtin.module(test-options{flag=1 pad-keys=8 scale=2.5 text="a b" mode=keep axes=3,1 limit=7})'
    (instance,) = python_passes(resolve_pipeline(text, registry, context))
    values = (instance.flag, instance.pad_keys, instance.scale, instance.text, instance.mode, instance.axes)
    assert values == (True, 8, 2.5, "a b", "keep", (3, 1))
    assert instance.limit == 7


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("builtin.module(csee)", 16, "unknown pass 'csee'; did you mean 'cse'?"),
        ("builtin.module(cse,test-report-add)", 20, "unknown pass 'test-report-add'; did you mean 'test-report-adds'?"),
        ("builtin.module(prepass-nothing-like-it)", 16, "unknown pass 'prepass-nothing-like-it'"),
        (
            "builtin.module(test-options{pad-key=1})",
            29,
            "'test-options' has no option 'pad-key'; did you mean 'pad-keys'?",
        ),
        ("builtin.module(test-report-adds{x=1})", 33, "'test-report-adds' has no option 'x'; it takes none"),
        ("builtin.module(test-options{pad-keys=x})", 29, "option 'pad-keys' takes an integer, not 'x'"),
        ("builtin.module(test-options{limit=-1})", 29, "option 'limit' takes an integer or none, from 0, not '-1'"),
        ("builtin.module(test-options{mode=no})", 29, "option 'mode' takes one of strip, keep, not 'no'"),
        (
            "builtin.module(test-options{axes=1,x})",
            29,
            "option 'axes' takes a comma-separated list of an integer, not '1,x'",
        ),
        ("builtin.module(test-options{flag flag})", 34, "option 'flag' is given twice"),
        (
            "builtin.module(func.func(test-module-only))",
            26,
            "'test-module-only' runs on builtin.module, not on func.func",
        ),
        (
            "builtin.module(util.fun(cse))",
            16,
            "'util.fun' is no registered op to nest passes on; did you mean 'util.func'?",
        ),
        ("builtin.module(test-pipeline{x=1})", 30, "pipeline 'test-pipeline' takes no options"),
        (
            "builtin.module(func.func(test-pipeline))",
            26,
            "pipeline 'test-pipeline' runs on builtin.module, not on func.func",
        ),
        (
            "builtin.module(cse,canonicalize{max-iteration=1})",
            33,
            "canonicalize: no option 'max-iteration'; did you mean 'max-iterations'?",
        ),
        (
            "builtin.module(canonicalize{max-iterations=x})",
            29,
            "canonicalize: option 'max-iterations': 'x' value invalid for long argument",
        ),
        (
            "builtin.module(func.func(iree-convert-to-spirv))",
            26,
            "iree-convert-to-spirv: the pass is restricted to 'builtin.module' and cannot run on 'func.func'",
        ),
    ],
)
def test_refuses_with_column_and_nearest_name(text, column, message, registry, context, capfd):
    with pytest.raises(PipelineError) as caught:
        resolve_pipeline(text, registry, context)
    assert (caught.value.column, caught.value.message) == (column, message)
    assert capfd.readouterr().err == ""


def test_mentions_prepass(registry):
    assert mentions_prepass("builtin.module(func.func(test-report-adds))", registry)
    assert mentions_prepass("builtin.module(prepass-misspelt)", registry)
    assert not mentions_prepass("builtin.module(cse,func.func(canonicalize))", registry)


def test_names_are_provided_once(registry):
    with pytest.raises(PrepassError, match="'test-report-adds' is provided twice"):
        registry.add_file(PASSES_FILE)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise ValueError('oh')", "ValueError: oh"),
        ("syntax error", "SyntaxError"),
        (
            """
            from dataclasses import dataclass
            from prepass import Pass
            @dataclass(frozen=True)
            class NamelessPass(Pass):
                pass
            """,
            "NamelessPass has no name",
        ),
    ],
)
def test_a_broken_file_is_one_line(source, message, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(textwrap.dedent(source))
    with pytest.raises(PrepassError, match=message) as caught:
        Registry().add_file(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(PrepassError, match="not a Python file that can be loaded"):
        Registry().add_file(tmp_path / "missing.py")


def test_a_broken_table_entry_is_one_line():
    registry = Registry()
    registry.add_table({"prepass-gone": "prepass.no_such_module:Gone"}, {})
    with pytest.raises(PrepassError, match="'prepass-gone' of prepass cannot be loaded"):
        registry.find_pass("prepass-gone")
