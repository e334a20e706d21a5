# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What prepass-analyze prints and writes, and that its page works in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from prepass.analysis.analyze import analyze
from prepass.analysis.html_report import html_report
from prepass.analysis.text_report import amount

from .analysis_cases import CASES
from .conftest import GFX942
from .lookup_cases import LookupCase
from .test_programs import check_one_line

ATTENTION = next(case for case in CASES if case.issue == "decomposed-attention")
# Elements that HTML has no end tags for.
VOID = {"meta", "col"}


@pytest.fixture
def chromium() -> str:
    """A chromium that starts; some systems have a program of the name that only says how to install one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and b"Chrom" in subprocess.run([path, "--version"], capture_output=True, check=False).stdout:
            return path
    pytest.skip("no chromium is installed")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(ATTENTION.text)
    return path


def test_json_has_each_dispatch_and_each_place(program, model):
    result = program("prepass-analyze", model, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["target"] == "gfx942"
    assert document["pipeline"] == "prepass-default"
    assert document["before"]["dispatches"] > document["after"]["dispatches"]
    for side in ("before", "after"):
        graph = document[side]
        assert len(graph["graph"]) == graph["dispatches"] + graph["initializer_dispatches"]
        assert sum(kind["dispatches"] for kind in graph["kinds"].values()) == graph["dispatches"]
        assert sum(kind["read_bytes"] for kind in graph["kinds"].values()) == graph["read_bytes"]
        assert all(reader["number"] > read for reader in graph["graph"] for read in reader["reads"])
    issue = next(issue for issue in document["issues"] if issue["name"] == "decomposed-attention")
    assert (issue["count"], issue["fixed"], issue["fixable"], issue["left"]) == (1, 1, 0, 0)
    # Two contractions, the softmax and the transposed keys, of which one op remains.
    assert issue["before"]["dispatches"] >= 3
    assert issue["after"]["dispatches"] == 1
    (place,) = issue["places"]
    assert place["fix"] == "prepass-raise-attention"
    assert place["before"] == issue["before"]
    assert re.fullmatch(rf"{re.escape(str(model))}:{ATTENTION.lines[0]}:\d+", place["location"])


def test_text_names_issues_passes_and_places(program, model):
    result = program("prepass", "analyze", model, "--prepass-preset=llm", "--places=1")
    assert result.returncode == 0, result.stderr
    text = result.stdout.decode()
    assert "nothing was run" in text
    assert re.search(r"fixed 1 prepass-raise-attention: raised to", text)
    assert f"{model}:{ATTENTION.lines[0]}:" in text
    assert not any(line.endswith(" ") for line in text.splitlines() if not line.startswith(("kind", "issue")))


def test_what_a_pipeline_lacks_is_named_with_the_presets_that_have_it(program, tmp_path):
    path = tmp_path / "convolution.mlir"
    path.write_text(next(case for case in CASES if case.issue == "nchw-convolutions").main)
    text = program("prepass-analyze", path, "--pipeline=builtin.module(cse)").stdout.decode()
    assert "fixable 1 prepass-transpose-convolutions (in prepass-sdxl): channels-last" in text


def test_a_program_without_issues(program, tmp_path):
    path = tmp_path / "plain.mlir"
    path.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
    result = program("prepass-analyze", path, f"--html={tmp_path / 'plain.html'}")
    assert b"No issue was found" in result.stdout
    assert "None was found" in (tmp_path / "plain.html").read_text()


def test_dynamic_sizes_are_told(program, tmp_path):
    path = tmp_path / "dynamic.mlir"
    path.write_text(LookupCase(dynamic=True).module())
    result = program("prepass-analyze", path, "--json")
    assert not json.loads(result.stdout)["before"]["exact"]
    assert b"some sizes are dynamic" in program("prepass-analyze", path, f"--html={path}.html").stdout
    assert "some sizes are dynamic" in (tmp_path / "dynamic.mlir.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.mlir"], "cannot open input 'missing.mlir'"),
        ([], "expected one input file"),
        (["MODEL", "--prepass-preset=prepass-sdlx"], "unknown pipeline 'prepass-sdlx'; did you mean"),
        (["MODEL", "--pipeline=builtin.module(prepass-raise)"], "pass pipeline, column"),
        (["MODEL", "--html=nowhere/report.html"], "cannot open output 'nowhere/report.html'"),
        (["MODEL", "--places=many"], "--places takes a whole number"),
        (["MODEL", "--iree-no-such-flag"], "flag --iree-no-such-flag: unknown"),
    ],
)
def test_mistakes_are_one_line(program, model, arguments, message):
    result = program("prepass-analyze", *(str(model) if a == "MODEL" else a for a in arguments))
    check_one_line(result, message)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (12_345, "12.3 kB"), (999_600, "1.00 MB"), (5 * 10**12, "5.00 TB")],
)
def test_amounts_have_three_digits(number, text):
    assert amount(number, "B") == text


class Page(HTMLParser):
    """The ids, links and open tags of a page."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.rows = [], set(), [], 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            assert values["id"] not in self.ids
            self.ids.add(values["id"])
        self.links += [values[name] for name in ("href", "src", "srcset", "data", "action") if name in values]
        self.rows += "data-n" in values
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        # Table rows may be left open before the table ends, and are not here.
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report():
    return analyze(ATTENTION.text, flags=GFX942)


def test_the_page_is_whole_and_asks_for_nothing(report):
    text = html_report(report)
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.rows == len(report.before.dispatches) + len(report.after.dispatches)
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not re.search(r"https?:|url\(|@import|import\(|fetch\(|XMLHttpRequest|WebSocket", text)


def test_rows_name_the_issues_that_dispatches_have(report):
    rows = re.findall(r'<tr data-n="\d+".*?</tr>', html_report(report))
    before, after = rows[: len(report.before.dispatches)], rows[len(report.before.dispatches) :]
    issue = next(issue for issue in report.issues if issue.name == "decomposed-attention")
    assert sum("decomposed-attention" in row for row in before) == issue.before.dispatches
    assert not any("decomposed-attention" in row for row in after)


# Writes into the page what a reader would see at the width of the window.
PROBE = """<script>
const wide = [...document.querySelectorAll("summary, summary *, .card *, h1, .kinds td")]
  .filter(e => e.getClientRects().length && e.scrollWidth > e.clientWidth + 1)
  .filter(e => getComputedStyle(e).display != "inline");
const row = document.querySelector("tr[data-reader]:not([data-reader=''])");
row.dispatchEvent(new MouseEvent("mouseenter"));
const marked = document.querySelectorAll("tr.reader").length;
for (const d of document.querySelectorAll("details")) d.open = false;
document.querySelector(".map a").dispatchEvent(new MouseEvent("click", {cancelable: true}));
const probe = {page: document.documentElement.scrollWidth, wide: wide.length, marked,
  open: document.querySelector("#before-0").getClientRects().length,
  requests: performance.getEntriesByType("resource").length};
document.body.setAttribute("data-probe", JSON.stringify(probe));
</script></body>"""


def test_the_page_works_in_a_browser(chromium, report, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html_report(report).replace("</body>", PROBE))
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
        "--disable-background-networking", "--disable-sync", "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1280,2000", "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]  # fmt: skip
    command = [chromium, *flags, "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    probe = json.loads(re.search(r'data-probe="([^"]*)"', dom)[1].replace("&quot;", '"'))
    assert probe["page"] <= 1280
    assert probe["wide"] == 0
    assert probe["requests"] == 0
    assert probe["marked"] >= 1
    assert probe["open"] >= 1
