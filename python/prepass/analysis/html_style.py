# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The style and the script of the HTML report; the page is whole without the script."""

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #5c6670; --line: #d5dae0; --page: #ffffff; --box: #f5f7f9;
  --before: #9aa4af; --after: #1f6feb; --fixed: #1a7f37; --fixable: #b27100; --left: #cf222e;
  --attention: #8250df; --convolution: #d1492e; --contraction: #1f6feb; --reduction: #1a8f4c; --lookup: #0aa2a8;
  --elementwise: #d99a00; --transpose: #d63384; --copy: #7d6608; --other: #57606a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --dim: #98a2ad; --line: #343b44; --page: #101418;
  --box: #1a2027; --before: #6b7682; --after: #58a6ff; --fixed: #3fb950; --fixable: #d9a520; --left: #ff7b72;
  --attention: #b48bff; --convolution: #ff8a65; --contraction: #58a6ff; --reduction: #4fc97f; --lookup: #39d0d6;
  --elementwise: #f2c14e; --transpose: #ff79b0; --copy: #c8b04a; --other: #adb5bd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 32px 64px; max-width: 1280px; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 17px; margin: 36px 0 10px; }
h3 { font-size: 14px; margin: 20px 0 6px; }
p { margin: 4px 0; max-width: 900px; } .dim { color: var(--dim); }
code, .mono { font-family: ui-monospace, monospace; font-size: 12px; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin: 20px 0; }
.card { background: var(--box); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; }
.card b { display: block; font-size: 20px; font-weight: 600; white-space: nowrap; }
table { border-collapse: collapse; width: 100%; } th { font-weight: 500; color: var(--dim); text-align: left; }
th, td { padding: 3px 10px 3px 0; vertical-align: top; } td.n, th.n { text-align: right; white-space: nowrap; }
.kinds td { border-top: 1px solid var(--line); vertical-align: middle; }
.bar { height: 6px; border-radius: 3px; margin: 2px 0; min-width: 1px; }
.bar.before { background: var(--before); } .bar.after { background: var(--after); }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 7px; }
details { border: 1px solid var(--line); border-radius: 8px; margin: 6px 0; background: var(--box); }
summary { cursor: pointer; padding: 7px 12px; list-style-position: inside; }
details > div { padding: 4px 14px 12px; background: var(--page); border-radius: 0 0 8px 8px; overflow-x: auto; }
.issue > summary, .issue-head { display: grid; align-items: center; column-gap: 14px;
  grid-template-columns: minmax(0, 1fr) 60px 130px 130px 165px 90px; list-style: none; }
.issue > summary::-webkit-details-marker { display: none; }
.issue > summary > :first-child::before { content: "▸ "; color: var(--dim); }
.issue[open] > summary > :first-child::before { content: "▾ "; }
.issue-head { padding: 0 13px; color: var(--dim); }
.issue > summary > :not(:first-child), .issue-head > :not(:first-child) { text-align: right; white-space: nowrap; }
.states { display: flex; height: 10px; border-radius: 3px; overflow: hidden; }
.fixed { color: var(--fixed); } .fixable { color: var(--fixable); } .left { color: var(--left); }
.states .fixed { background: var(--fixed); } .states .fixable { background: var(--fixable); }
.states .left { background: var(--left); }
.notes li { margin: 2px 0; } .notes b { font-weight: 600; } .places td { border-top: 1px solid var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: 6px 16px; margin: 8px 0; }
.map { display: block; max-width: 100%; height: auto; margin: 4px 0 10px; }
.rows { display: flex; align-items: flex-start; } .rows svg { flex: none; margin-top: 22px; }
.rows table { table-layout: fixed; } .rows th { height: 22px; padding: 0 10px 0 0; }
.rows td { height: 20px; padding: 0 10px 0 0; line-height: 20px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; font-size: 12px; }
.rows tr.producer td { background: color-mix(in srgb, var(--after) 22%, transparent); }
.rows tr.reader td { background: color-mix(in srgb, var(--elementwise) 22%, transparent); }
.rows tr.here td { background: color-mix(in srgb, var(--dim) 22%, transparent); }
"""

# Pointing at a dispatch marks what it reads and what reads it.
SCRIPT = """
for (const graph of document.querySelectorAll(".graph")) {
  const rows = {};
  for (const row of graph.querySelectorAll("tr[data-n]")) rows[row.dataset.n] = row;
  const mark = (on, row) => {
    row.classList.toggle("here", on);
    for (const kind of ["producer", "reader"])
      for (const n of (row.dataset[kind] || "").split(" "))
        if (rows[n]) rows[n].classList.toggle(kind, on);
  };
  for (const row of Object.values(rows)) {
    row.addEventListener("mouseenter", () => mark(true, row));
    row.addEventListener("mouseleave", () => mark(false, row));
  }
}
for (const cell of document.querySelectorAll(".map a"))
  cell.addEventListener("click", () => {
    for (let at = document.querySelector(cell.getAttribute("href")); at; at = at.parentElement.closest("details"))
      at.open = true;
  });
"""
