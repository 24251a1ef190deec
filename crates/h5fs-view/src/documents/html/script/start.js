// Attaches the features to the page. If one fails, its part of the page stays unchanged.

const STYLE = `
.unready body { visibility: hidden; }
.overlaid { position: relative; }
.overlaid canvas { position: absolute; inset: 0; width: 100%; height: 100%; touch-action: none; cursor: crosshair; image-rendering: pixelated; }
.drawn .overlaid img { visibility: hidden; }
.drawn .overlaid canvas { background: repeating-conic-gradient(var(--panel) 0 25%, var(--ground) 0 50%) 0 0 / 16px 16px; }
figure > .controls, figure > .value, figure > .error { grid-column: 2; }
.picture > .controls, .picture > .value { width: max(100%, 18rem); }
.controls { display: flex; flex-wrap: wrap; gap: .4rem .9rem; align-items: center; font-size: .85rem; color: var(--soft); margin: .3rem 0; }
.controls input[type=range] { vertical-align: middle; accent-color: var(--line); }
.controls .wide-control { display: flex; gap: .4rem; align-items: center; flex: 1 1 14rem; }
.controls .wide-control input[type=range] { flex: 1 1 auto; min-width: 5rem; }
.controls input[type=number] { width: 7rem; }
.controls input, .controls button, form[role=search] input {
  font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--rule); border-radius: .25rem;
}
.controls button { padding: .05rem .6rem; cursor: pointer; }
.controls .note { flex-basis: 100%; margin: 0; }
output.value { display: block; min-height: 1.4em; flex-basis: 100%; font-size: .9rem; color: var(--text); font-variant-numeric: tabular-nums; }
.mark { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--error); pointer-events: none; }
.scrolled { overflow: auto; border: 1px solid var(--rule); overflow-anchor: none; }
.held { position: sticky; top: 0; }
.held thead th { background: var(--ground); }
.held .left { text-align: left; }
.held td { white-space: pre; max-width: 24rem; overflow: hidden; text-overflow: ellipsis; }
form[role=search] { margin: .6rem 0 0; }
form[role=search] input { width: min(24rem, 100%); padding: .25rem .5rem; margin-right: .6rem; }
.found { max-height: 20rem; overflow: auto; font-size: .9rem; }
.found .error { margin-left: .6rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
@media print { .controls, form[role=search] { display: none; } }
`;

const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);
document.adoptedStyleSheets = [sheet];
const own = document.currentScript;

// Show the page only when everything is in its place, so that no element moves.
document.documentElement.classList.add("unready");
document.addEventListener("DOMContentLoaded", () => {
  try {
    begin();
  } finally {
    document.documentElement.classList.remove("unready");
  }
});

function begin() {
  for (const [selector, Part] of [
    ["figure.picture[data-dims]", Picture],
    ["figure.plot[data-numbers]", Line],
    [".wide[data-rows]", Table],
  ]) {
    for (const element of document.querySelectorAll(selector)) {
      if (!Part.isCut || Part.isCut(element)) new Part(element);
    }
  }
  new Search(own.dataset.search);
}
