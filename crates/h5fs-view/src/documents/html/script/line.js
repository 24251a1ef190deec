// A line: shows the value at the pointer.

/** The horizontal axis: converts an index to a position from 0 to 1, and a position to an index. */
class Along {
  constructor(told, count) {
    this.count = count;
    this.isOverIndex = !("along" in told);
    if (this.isOverIndex) return;
    this.areEdges = "edges" in told;
    const all = count + (this.areEdges ? 1 : 0);
    this.numbers = new Blocks(told.along, all);
    this.texts = "times" in told ? new Blocks(told.times, all) : this.numbers;
    this.range = [Number(told.first), Number(told.last)];
  }

  async number(index) {
    const first = await this.numbers.number(index);
    return this.areEdges ? first / 2 + (await this.numbers.number(index + 1)) / 2 : first;
  }

  /** Returns the horizontal position of a number, from 0 to 1. */
  async shareOf(index) {
    if (this.isOverIndex) return index / Math.max(this.count - 1, 1);
    const [first, last] = this.range;
    return ((await this.number(index)) - first) / (last - first);
  }

  async text(index) {
    if (this.isOverIndex) return "";
    const first = await this.texts.text(index);
    return this.areEdges ? ` from ${first} to ${await this.texts.text(index + 1)}` : ` at ${first}`;
  }

  /** Returns the index of the number that is closest to a horizontal position. */
  async indexAt(share) {
    if (this.isOverIndex) return Math.round(share * (this.count - 1));
    const [first, last] = this.range;
    const wanted = first + share * (last - first);
    return this.count <= BLOCK ? this.nearestOfAll(wanted) : this.nearestInOrder(wanted);
  }

  async nearestOfAll(wanted) {
    if (!this.all) {
      const all = [];
      for (let index = 0; index < this.count; index += 1) all.push(await this.number(index));
      this.all = all;
    }
    let [nearest, least] = [0, Infinity];
    this.all.forEach((number, index) => {
      const apart = Math.abs(number - wanted);
      if (apart < least) [nearest, least] = [index, apart];
    });
    return nearest;
  }

  /** Finds the closest coordinate by bisection. Arrays of more than one block have sorted coordinates. */
  async nearestInOrder(wanted) {
    let [low, high] = [0, this.count - 1];
    const rises = (await this.number(low)) <= (await this.number(high));
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.number(middle)) <= wanted === rises) low = middle;
      else high = middle;
    }
    const [below, above] = [await this.number(low), await this.number(high)];
    return Math.abs(below - wanted) <= Math.abs(above - wanted) ? low : high;
  }
}

class Line {
  constructor(figure, closed) {
    const told = figure.dataset;
    this.count = Number(told.count);
    this.values = new Blocks(told.numbers, this.count);
    this.along = new Along(told, this.count);
    this.drawing = figure.querySelector("svg");
    this.problem = complaint();
    this.latest = new Latest(this.problem.say, figure, closed);
    this.mark = make("div", { className: "mark", hidden: true });
    this.readout = make("output", { className: "value", "aria-live": "polite" });
    this.box = make("div", { className: "overlaid", tabIndex: 0, role: "group", "aria-label": "a line; arrows to read values" });
    wrap(this.drawing, this.box).append(this.mark);
    figure.querySelector("figcaption").before(this.readout, this.problem.line);
    this.box.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.point(event));
    // A finger that moves scrolls the page. A tap reads a value.
    this.box.addEventListener("click", (event) => this.point(event));
    this.box.addEventListener("keydown", (event) => this.press(event));
    const [index] = address.numbers("index") ?? [];
    if (index >= 0 && index < this.count) this.latest.run(() => this.tell(Math.floor(index)));
  }

  point(event) {
    const box = this.drawing.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    this.latest.run(async () => this.tell(await this.along.indexAt(share)));
  }

  press(event) {
    const step = event.shiftKey ? Math.max(1, Math.round(this.count / 100)) : 1;
    const from = this.index ?? -step;
    const ways = { ArrowRight: from + step, ArrowLeft: from - step, Home: 0, End: this.count - 1 };
    if (!(event.key in ways)) return;
    event.preventDefault();
    this.index = Math.min(Math.max(ways[event.key], 0), this.count - 1);
    this.latest.run(async () => this.tell(this.index));
  }

  async tell(index) {
    this.index = index;
    address.set("index", [index]);
    const share = await this.along.shareOf(index);
    const [value, where] = [await this.values.text(index), await this.along.text(index)];
    this.mark.hidden = !Number.isFinite(share);
    this.mark.style.left = `${100 * share}%`;
    this.readout.value = `[${index}] = ${value}${where}`;
  }
}
