// What is pressed, dragged and read.

/** An element with these properties (`data-`, `aria-` and `role` as attributes), and what is in it. */
function make(name, properties = {}, ...inner) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (/^(aria-|data-|role$)/.test(key)) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...inner);
  return element;
}

function button(text, label, press) {
  const own = make("button", { type: "button", textContent: text, title: label });
  own.setAttribute("aria-label", label);
  own.addEventListener("click", press);
  return own;
}

/** A number in a few characters. */
function short(value) {
  const rounded = Number(value.toPrecision(6));
  return Math.abs(rounded) >= 1e7 || (rounded !== 0 && Math.abs(rounded) < 1e-4)
    ? rounded.toExponential()
    : String(rounded);
}

/** Puts `around` where `inner` is, and that into it. */
function wrap(inner, around) {
  inner.replaceWith(around);
  around.prepend(inner);
  return around;
}

/** A line for what went wrong. */
function complaint() {
  const line = make("p", { className: "error", hidden: true, role: "alert" });
  const say = (error) => {
    line.hidden = !error;
    line.textContent = error ? error.message : "";
  };
  return { line, say };
}

/**
 * Runs one piece of work at a time, and of those that come meanwhile the last one alone: what is shown
 * follows what is dragged as fast as it can be had.
 */
class Latest {
  constructor(say) {
    this.say = say;
    this.isBusy = false;
    this.waiting = null;
  }

  async run(work) {
    this.waiting = work;
    if (this.isBusy) return;
    this.isBusy = true;
    while (this.waiting) {
      const next = this.waiting;
      this.waiting = null;
      try {
        await next();
        this.say(null);
      } catch (error) {
        this.say(error);
      }
    }
    this.isBusy = false;
  }
}

/** Whether a key is pressed that another element waits for. */
function isTaken(event) {
  const { target } = event;
  return (
    event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey ||
    target.closest("input, select, textarea, [tabindex='0']") !== null
  );
}
