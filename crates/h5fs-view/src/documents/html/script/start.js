// Attaches the features to the page. If one fails, its part of the page stays unchanged.

const STYLE = `
.unready body { visibility: hidden; }
.overlaid { position: relative; }
.overlaid canvas { position: absolute; inset: 0; width: 100%; height: 100%; touch-action: pan-x pan-y; cursor: crosshair; image-rendering: pixelated; }
[aria-busy=true] .overlaid { opacity: .5; }
[aria-busy=true] .overlaid::after, .scrolled[aria-busy=true]::after {
  content: "loading …"; position: absolute; top: .3rem; left: .3rem; padding: 0 .4rem; font-size: .85rem;
  color: var(--text); background: var(--ground); border-radius: .25rem;
}
.scrolled[aria-busy=true] td { color: var(--soft); }
.changed { margin: .5rem 0; padding: .3rem .6rem; background: var(--panel); border-left: 3px solid var(--line); font-size: .9rem; }
.changed > * { margin-right: .8rem; }
.drawn .overlaid img { visibility: hidden; }
.drawn .overlaid canvas { background: repeating-conic-gradient(var(--panel) 0 25%, var(--ground) 0 50%) 0 0 / 16px 16px; }
figure > .side, figure > .value, figure > .error { grid-column: 2; }
.side { width: max(100%, 18rem); }
@media (min-width: 60rem) { .side { width: auto; } }
.controls { overflow-wrap: normal; }
.frames .with-coordinate { flex: 0 0 15rem; }
@media (max-width: 60rem) {
  .frames label { flex-wrap: wrap; }
  .frames .with-coordinate { flex: 1 0 100%; }
}
nav { display: inline-block; margin-right: 1rem; }
.controls { display: flex; flex-wrap: wrap; gap: .4rem .9rem; align-items: center; font-size: .85rem; color: var(--soft); margin: .3rem 0; }
.controls input[type=range] { vertical-align: middle; accent-color: var(--line); }
.controls .wide-control { display: flex; gap: .4rem; align-items: center; flex: 1 1 14rem; }
.controls .wide-control input[type=range] { flex: 1 1 auto; min-width: 5rem; }
.controls input[type=number] { width: 7rem; }
.controls input, .controls button, .controls select, .changed button, .error button, form[role=search] input {
  font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--rule); border-radius: .25rem;
}
.controls button, .changed button, .error button { padding: .05rem .6rem; cursor: pointer; }
.controls .note { flex-basis: 100%; margin: 0; }
.histogram { flex: 1 1 100%; height: 2.5rem; background: var(--panel); }
.histogram path { fill: var(--line); }
.profiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: .3rem 1rem; margin: 0 0 1rem; }
.profiles[hidden] { display: none; }
.profile { min-width: 0; }
.profile svg { height: 6rem; }
.profile .value { font-size: .8rem; }
output.value { display: block; min-height: 1.4em; flex-basis: 100%; font-size: .9rem; color: var(--text); font-variant-numeric: tabular-nums; }
.mark { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--error); pointer-events: none; }
.scrolled { overflow: auto; border: 1px solid var(--rule); overflow-anchor: none; }
.held { position: sticky; top: 0; }
tbody th, thead th:first-child { position: sticky; left: 0; background: var(--ground); box-shadow: 1px 0 var(--rule); }
.covered { visibility: hidden; }
.held thead th { background: var(--ground); }
.held .left { text-align: left; }
.held td { white-space: pre; max-width: 24rem; overflow: hidden; text-overflow: ellipsis; }
form[role=search] { display: inline-block; vertical-align: top; }
form[role=search] input { width: 18rem; max-width: 100%; padding: .25rem .5rem; margin-right: .6rem; }
.found { max-height: 20rem; overflow: auto; font-size: .9rem; }
.found .error { margin-left: .6rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
@media print { .controls, form[role=search] { display: none; } }
`;

const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);
document.adoptedStyleSheets = [sheet];
const own = document.currentScript;

let file = null;
let address = null;
let parts = new AbortController();

// Show the page only when everything is in its place, so that no element moves.
document.documentElement.classList.add("unready");
document.addEventListener("DOMContentLoaded", () => {
  try {
    file = new FileState(own.dataset);
    address = new Address();
    begin();
    new Search(own.dataset.search);
  } finally {
    document.documentElement.classList.remove("unready");
  }
});

function begin() {
  const closed = parts.signal;
  for (const [selector, Part] of [
    ["figure.picture[data-dims]", Picture],
    ["figure.plot[data-numbers]", Line],
    [".wide[data-rows]", Table],
  ]) {
    for (const element of document.querySelectorAll(selector)) {
      if (!Part.isCut || Part.isCut(element)) new Part(element, closed);
    }
  }
  for (const box of document.querySelectorAll(".wide")) hideCovered(box);
}

/** Loads the page in the present state of the file, in the place of the page's content. */
async function renew() {
  const response = await fetch(location.href.split("#")[0], { cache: "no-cache" });
  if (!response.ok) throw new Error(response.statusText);
  // A parsed document runs no scripts, and the page's policy forbids handlers.
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const told = fresh.querySelector("head script[data-search]").dataset;
  for (const image of fresh.querySelectorAll("img")) {
    // The image of the earlier state has the same URL.
    image.src = `${image.getAttribute("src")}?state=${encodeURIComponent(told.state ?? Date.now())}`;
  }
  address.write();
  parts.abort();
  parts = new AbortController();
  const focusable = () => [...document.querySelectorAll("main :is(a, button, input, select, summary, [tabindex])")];
  const focused = focusable().indexOf(document.activeElement);
  document.querySelector("main").replaceWith(document.adoptNode(fresh.querySelector("main")));
  file.take(told);
  begin();
  focusable()[focused]?.focus({ preventScroll: true });
}
