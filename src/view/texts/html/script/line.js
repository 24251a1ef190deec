// A line: the value beneath the pointer.

/** Numbers of a line that are asked for at a time. */
const BLOCK = 65536;

/** Such blocks that are kept. */
const BLOCKS = 8;

class Line {
  constructor(figure) {
    this.file = figure.dataset.numbers;
    this.count = Number(figure.dataset.count);
    this.drawing = figure.querySelector("svg");
    this.blocks = new Map();
    this.problem = complaint();
    this.latest = new Latest(this.problem.say);
    this.mark = make("div", { className: "mark", hidden: true });
    this.readout = make("output", { className: "value", "aria-live": "polite" });
    this.box = make("div", { className: "over", tabIndex: 0, role: "group", "aria-label": "a line; arrows to read values" });
    wrap(this.drawing, this.box).append(this.mark);
    figure.querySelector("figcaption").before(this.readout, this.problem.line);
    this.box.addEventListener("pointermove", (event) => this.point(event));
    this.box.addEventListener("keydown", (event) => this.press(event));
  }

  point(event) {
    const box = this.drawing.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    this.tell(Math.round(share * (this.count - 1)));
  }

  press(event) {
    const step = event.shiftKey ? Math.max(1, Math.round(this.count / 100)) : 1;
    const from = this.index ?? -step;
    if (event.key === "ArrowRight") this.tell(from + step);
    else if (event.key === "ArrowLeft") this.tell(from - step);
    else if (event.key === "Home") this.tell(0);
    else if (event.key === "End") this.tell(this.count - 1);
    else return;
    event.preventDefault();
  }

  tell(index) {
    this.index = Math.min(Math.max(index, 0), this.count - 1);
    this.mark.hidden = false;
    this.mark.style.left = `${(100 * this.index) / Math.max(this.count - 1, 1)}%`;
    this.latest.run(async () => {
      const wanted = this.index;
      const number = Math.floor(wanted / BLOCK);
      const block = await this.block(number);
      this.readout.value = `[${wanted}] = ${textOf(block, wanted - number * BLOCK)}`;
    });
  }

  async block(number) {
    const known = this.blocks.get(number);
    if (known) return known;
    const end = Math.min((number + 1) * BLOCK, this.count);
    const block = await numbersOf(this.file, [[number * BLOCK, end]]);
    if (this.blocks.size >= BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
    this.blocks.set(number, block);
    return block;
  }
}
