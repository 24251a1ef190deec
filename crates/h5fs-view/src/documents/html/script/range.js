// The range of the colours of a picture, with a histogram of the numbers that were read.

/** Number of steps of a range handle. */
const HANDLE = 1000;

/** Number of bars of the histogram. */
const BARS = 64;

class ColourRange {
  constructor(picture, told) {
    this.picture = picture;
    this.begin = { low: Number(told.low), high: Number(told.high), isLog: "log" in told };
    this.now = { ...this.begin };
    const [least, most] = [Number(told.least), Number(told.most)];
    this.reach = [Math.min(least, this.begin.low), Math.max(most, this.begin.high)];
    this.handles = ["low", "high"].map((end) => {
      const handle = make("input", { type: "range", min: 0, max: HANDLE, className: end });
      const field = make("input", { type: "number", step: "any", className: end });
      handle.setAttribute("aria-label", `${end} end of the colours`);
      field.setAttribute("aria-label", `${end} end of the colours, as a number`);
      handle.addEventListener("input", () => {
        this.setEnd(end, valueIn(this.reachAsRange(), Number(handle.value) / HANDLE));
      });
      // An empty field is no number, so the end stays.
      field.addEventListener("change", () => this.setEnd(end, numberIn(field) ?? this.now[end]));
      return { end, handle, field };
    });
    this.log = make("input", { type: "checkbox", className: "log" });
    this.log.addEventListener("change", () => this.setLog(this.log.checked));
    const reset = button("as it was", "the range with which the page began", () => this.set({ ...this.begin }));
    const pairs = this.handles.map(({ end, handle, field }) =>
      make("span", { className: "wide-control" }, end === "low" ? "from " : "to ", handle, field));
    this.histogram = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.histogram.setAttribute("class", "histogram");
    this.histogram.setAttribute("viewBox", `0 0 ${BARS} 1`);
    this.histogram.setAttribute("preserveAspectRatio", "none");
    this.histogram.setAttribute("role", "img");
    this.bars = document.createElementNS("http://www.w3.org/2000/svg", "path");
    this.histogram.append(this.bars);
    this.note = make("p", { className: "note", hidden: true });
    picture.controls.append(this.histogram, ...pairs, make("label", {}, this.log, " by the logarithm"), reset, this.note);
    this.tell();
    this.tellHistogram();
  }

  /** Takes the range from the page's URL. */
  restore() {
    const [low, high] = address.numbers("range") ?? [this.now.low, this.now.high];
    const [log] = address.numbers("log") ?? [Number(this.now.isLog)];
    const isLog = log === 1 && low > 0;
    if (!(low <= high)) return;
    this.now = { low, high, isLog };
    this.tell();
  }

  /** Returns the range within which the handles can be dragged. */
  reachAsRange() {
    const [low, high] = this.reach;
    const { isLog } = this.now;
    return { low: isLog && low <= 0 ? Math.min(this.leastAbove(), this.now.low) : low, high, isLog };
  }

  /** Returns the smallest known number above 0. */
  leastAbove() {
    let least = this.begin.isLog ? this.begin.low : Infinity;
    for (const value of this.picture.whole?.numbers.values ?? []) {
      const number = Number(value);
      if (number > 0 && number < least) least = number;
    }
    return Number.isFinite(least) ? least : this.reach[1] / 1e6;
  }

  setEnd(end, value) {
    const range = { ...this.now, [end]: value };
    if (range.isLog && range.low <= 0) range.low = this.leastAbove();
    if (range.low > range.high) range[end === "low" ? "high" : "low"] = value;
    this.set(range);
  }

  setLog(isLog) {
    const range = { ...this.now, isLog };
    if (isLog && range.high <= 0) {
      this.log.checked = false;
      return;
    }
    if (isLog && range.low <= 0) range.low = Math.min(this.leastAbove(), range.high);
    this.set(range);
  }

  set(range) {
    this.now = range;
    const isSame = (...keys) => keys.every((key) => range[key] === this.begin[key]);
    address.set("range", [range.low, range.high], isSame("low", "high"));
    address.set("log", [Number(range.isLog)], isSame("isLog"));
    this.tell();
    this.tellHistogram();
    if (this.picture.whole) this.picture.repaint();
    else this.picture.load();
  }

  tell() {
    const reach = this.reachAsRange();
    for (const { end, handle, field } of this.handles) {
      handle.value = Math.round(HANDLE * shareIn(reach, this.now[end]));
      field.value = short(this.now[end]);
    }
    this.log.checked = this.now.isLog;
    const ticks = [...this.picture.figure.querySelectorAll(".bar .along span")];
    ticks.forEach((tick, number) => {
      tick.textContent = short(valueIn(this.now, number / Math.max(ticks.length - 1, 1)));
    });
    this.note.hidden = ["low", "high", "isLog"].every((key) => this.now[key] === this.begin[key]);
    const { low, high, isLog } = this.now;
    const by = isLog ? " by the logarithm" : "";
    this.note.textContent = `Now from ${short(low)} to ${short(high)}${by}, as chosen here; the text beneath tells how the page began.`;
  }

  /** Draws the counts of the numbers that were read, in bins of equal width within reach of the handles. */
  tellHistogram() {
    const { whole, look } = this.picture;
    if (!whole) return;
    const { counts, count } = countsIn(whole.numbers.values, this.reachAsRange(), look.missing);
    const most = Math.max(...counts, 1);
    const bars = counts.map((own, bar) => `M${bar} 1v${-own / most}h1V1z`);
    this.bars.setAttribute("d", bars.join(""));
    this.histogram.setAttribute("data-counts", counts.join(" "));
    const { low, high } = this.reachAsRange();
    this.histogram.setAttribute("aria-label", `histogram of ${count} numbers that were read, from ${short(low)} to ${short(high)}`);
  }
}

/** Returns the numbers of values in bins of equal width in a range, as numpy.histogram does. */
function countsIn(values, { low, high, isLog }, missing) {
  const counts = new Array(BARS).fill(0);
  const [first, last] = isLog ? [Math.log10(low), Math.log10(high)] : [low, high];
  const edge = (bin) => (bin === BARS ? last : first + (bin * (last - first)) / BARS);
  let count = 0;
  for (const value of values) {
    const stored = Number(value);
    if (stored === missing) continue;
    const number = isLog ? Math.log10(stored) : stored;
    if (!(number >= first && number <= last)) continue;
    let bin = Math.min(Math.floor(((number - first) / (last - first || 1)) * BARS), BARS - 1);
    if (number < edge(bin)) bin -= 1;
    else if (number >= edge(bin + 1) && bin < BARS - 1) bin += 1;
    counts[bin] += 1;
    count += 1;
  }
  return { counts, count };
}
