# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing and printing pipeline text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prepass import PipelineError
from prepass.pipeline.text import NestText, OptionText, PassText, parse_pipeline, unquote


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("builtin.module()", "builtin.module()"),
        (" builtin.module ( cse , canonicalize ) ", "builtin.module(cse,canonicalize)"),
        ("builtin.module(util.func(cse),a{x=1 y})", "builtin.module(util.func(cse),a{x=1 y})"),
        ("builtin.module(a{x={p=1 q=2} y=[1, 2]})", "builtin.module(a{x={p=1 q=2} y=[1, 2]})"),
        ('builtin.module(a{x="b } , c" y=1,2,3})', 'builtin.module(a{x="b } , c" y=1,2,3})'),
        ("builtin.module(a{})", "builtin.module(a)"),
        ("builtin.module(func.func(util.func()))", "builtin.module(func.func(util.func()))"),
    ],
)
def test_prints_what_it_parsed(text, printed):
    assert str(parse_pipeline(text)) == printed
    assert str(parse_pipeline(printed)) == printed


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected a pass or anchor name, the text ends here"),
        ("cse", 1, "the pipeline must be wrapped in 'builtin.module(...)'"),
        ("func.func(cse)", 1, "the pipeline must be wrapped in 'builtin.module(...)'"),
        ("builtin.module(cse", 15, "unbalanced '(': its ')' is missing"),
        ("builtin.module(util.func(cse)", 15, "unbalanced '(': its ')' is missing"),
        ("builtin.module(cse))", 20, "unbalanced ')'"),
        ("builtin.module(cse) x", 21, "unexpected 'x' after the end of the pipeline"),
        ("builtin.module(cse,)", 20, "expected a pass or anchor name, found ')'"),
        ("builtin.module(,cse)", 16, "expected a pass or anchor name, found ','"),
        ("builtin.module(cse cse)", 20, "expected ',' or ')', found 'c'"),
        ("builtin.module(a{x=1)", 17, "unbalanced '{': its '}' is missing"),
        ('builtin.module(a{x="1)', 20, "unbalanced quote"),
        ("builtin.module(a{=1})", 18, "expected an option name, found '='"),
    ],
)
def test_says_where_text_is_wrong(text, column, message):
    with pytest.raises(PipelineError) as caught:
        parse_pipeline(text)
    assert (caught.value.column, caught.value.message) == (column, message)
    assert "\n" not in str(caught.value)


names = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
plain_values = st.from_regex(r"[a-z0-9,.:-]{1,8}", fullmatch=True)
quoted_values = st.from_regex(r'"[a-z0-9 ,(){}=]{0,8}"', fullmatch=True)
nested_values = st.from_regex(r"\{[a-z]=[0-9]( [a-z]=\[[0-9], [0-9]\])?\}", fullmatch=True)
options = st.builds(OptionText, names, st.none() | plain_values | quoted_values | nested_values)
passes = st.builds(PassText, names, st.lists(options, max_size=3).map(tuple))
elements = st.recursive(passes, lambda e: st.builds(NestText, names, st.lists(e, max_size=3).map(tuple)), max_leaves=8)
pipelines = st.builds(NestText, st.just("builtin.module"), st.lists(elements, max_size=4).map(tuple))


@given(pipelines)
def test_any_tree_survives_printing_and_parsing(tree):
    assert parse_pipeline(str(tree)) == tree


@given(st.text(alphabet="ab.,(){}=\"' -", max_size=24))
def test_any_text_parses_or_is_refused_with_a_column_inside_it(text):
    whole = f"builtin.module({text})"
    try:
        tree = parse_pipeline(whole)
    except PipelineError as error:
        assert 1 <= error.column <= len(whole) + 1
    else:
        assert str(parse_pipeline(str(tree))) == str(tree)


@pytest.mark.parametrize(("value", "text"), [('"a b"', "a b"), ("'a'", "a"), ("{a b}", "a b"), ("a", "a"), ('"', '"')])
def test_unquote(value, text):
    assert unquote(value) == text
